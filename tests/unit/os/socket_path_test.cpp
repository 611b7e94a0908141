#include "os/socket_path.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/temporary_folder.hpp"

namespace uzram::os {
namespace {

namespace fs = std::filesystem;

// A socket bound to `path`; nobody listens on it.
int bound_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.sun_path);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

TEST(SocketPath, a_free_path_is_claimed) {
  const test::TemporaryFolder folder;
  EXPECT_TRUE(SocketPathClaim::claim("control socket", folder / "control.sock").has_value());
}

TEST(SocketPath, a_dead_socket_is_removed) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "control.sock";
  ::close(bound_socket(path));
  ASSERT_TRUE(fs::exists(path));
  const auto claim = SocketPathClaim::claim("control socket", path);
  ASSERT_TRUE(claim.has_value()) << claim.error().message;
  EXPECT_FALSE(fs::exists(path));
}

TEST(SocketPath, an_answering_socket_is_refused_and_left_alone) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "control.sock";
  const int fd = bound_socket(path);
  ASSERT_EQ(::listen(fd, 0), 0);
  const auto claim = SocketPathClaim::claim("control socket", path);
  ASSERT_FALSE(claim.has_value());
  EXPECT_EQ(claim.error().code, Errc::busy);
  EXPECT_NE(claim.error().message.find("EBUSY"), std::string::npos);
  EXPECT_NE(claim.error().message.find(path), std::string::npos);
  // With its backlog full it answers no more, but lives.
  for (int attempt = 0; attempt < 3; ++attempt) {
    EXPECT_FALSE(SocketPathClaim::claim("control socket", path).has_value());
  }
  EXPECT_TRUE(fs::exists(path));
  ::close(fd);
}

// As after kill -9 of a server whose accepts the kernel has not taken apart yet: the socket answers,
// but the process that listened has ended.
TEST(SocketPath, a_socket_that_outlives_its_server_is_waited_for) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "control.sock";
  const int fd = bound_socket(path);
  const pid_t server = ::fork();
  if (server == 0) {
    ::_exit(::listen(fd, 8) == 0 ? 0 : 1);
  }
  int status = 0;
  // Not reaped: a server that only waits for its parent is dead too.
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(server), nullptr, WEXITED | WNOWAIT), 0);
  std::thread kernel([fd] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ::close(fd);
  });
  const auto claim = SocketPathClaim::claim("control socket", path);
  kernel.join();
  EXPECT_TRUE(claim.has_value()) << claim.error().message;
  EXPECT_FALSE(fs::exists(path));
  ASSERT_EQ(::waitpid(server, &status, 0), server);
  EXPECT_EQ(status, 0);
}

TEST(SocketPath, what_is_no_socket_is_refused_and_left_alone) {
  const test::TemporaryFolder folder;
  const std::string file = folder / "file";
  std::ofstream(file) << "x";
  const std::string link = folder / "link";
  fs::create_symlink(folder / "nowhere", link);
  for (const std::string& path : {file, link}) {
    const auto claim = SocketPathClaim::claim("control socket", path);
    ASSERT_FALSE(claim.has_value());
    EXPECT_EQ(claim.error().code, Errc::exists);
    EXPECT_TRUE(fs::exists(fs::symlink_status(path)));
  }
}

TEST(SocketPath, a_path_longer_than_an_address_is_refused) {
  const std::string longest(107, 'a');
  const auto claim = SocketPathClaim::claim("control socket", "/tmp/" + longest);
  ASSERT_FALSE(claim.has_value());
  EXPECT_EQ(claim.error().code, Errc::invalid_argument);
  EXPECT_NE(claim.error().message.find("107"), std::string::npos);
  EXPECT_FALSE(SocketPathClaim::claim("control socket", "").has_value());
}

TEST(SocketPath, a_missing_directory_is_named) {
  const test::TemporaryFolder folder;
  const auto claim = SocketPathClaim::claim("control socket", folder / "missing/control.sock");
  ASSERT_FALSE(claim.has_value());
  EXPECT_NE(claim.error().message.find("missing\""), std::string::npos);
}

TEST(SocketPath, only_the_same_file_is_removed) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "file";
  std::ofstream(path) << "first";
  const FileIdentity first = identify(path);
  // Kept under another name, so that its inode is not given to the second file.
  fs::rename(path, folder / "kept");
  std::ofstream(path) << "second";
  remove_if_same(path, first);
  EXPECT_TRUE(fs::exists(path));
  remove_if_same(path, identify(path));
  EXPECT_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace uzram::os
