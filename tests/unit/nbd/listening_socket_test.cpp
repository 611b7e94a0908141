#include "frontend/nbd/listening_socket.hpp"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace uzram::nbd {
namespace {

class ListeningSocketTest : public testing::Test {
 protected:
  ListeningSocketTest() {
    char name[] = "/tmp/uzram-nbd-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~ListeningSocketTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  [[nodiscard]] std::string path() const { return folder_ + "/a socket"; }

  // What a server that was killed leaves.
  void leave_dead_socket() {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path().data(), path().size());
    ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ::close(fd);
  }

  std::string folder_;
};

TEST_F(ListeningSocketTest, its_file_is_for_the_owner_only_and_goes_with_it) {
  {
    const auto socket = ListeningSocket::open_unix(path());
    ASSERT_TRUE(socket) << socket.error().message;
    struct stat file {};
    ASSERT_EQ(::stat(path().c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 0777U, 0600U & file.st_mode);
    EXPECT_TRUE(S_ISSOCK(file.st_mode));
  }
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(ListeningSocketTest, a_dead_socket_is_replaced) {
  leave_dead_socket();
  const auto socket = ListeningSocket::open_unix(path());
  EXPECT_TRUE(socket) << socket.error().message;
}

TEST_F(ListeningSocketTest, one_that_answers_is_refused_by_name) {
  const auto first = ListeningSocket::open_unix(path());
  ASSERT_TRUE(first);
  const auto second = ListeningSocket::open_unix(path());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::busy);
  EXPECT_NE(second.error().message.find(path()), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(path()));
}

TEST_F(ListeningSocketTest, what_is_no_socket_is_refused_and_left_alone) {
  std::ofstream(path()) << "precious";
  const auto socket = ListeningSocket::open_unix(path());
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().code, Errc::exists);
  EXPECT_EQ(std::filesystem::file_size(path()), 8U);
}

TEST_F(ListeningSocketTest, a_file_that_took_its_place_is_left_alone) {
  {
    const auto socket = ListeningSocket::open_unix(path());
    ASSERT_TRUE(socket);
    // Renamed first, so that the new file cannot get the inode of the old.
    std::filesystem::rename(path(), path() + ".old");
    std::ofstream(path()) << "another";
  }
  EXPECT_TRUE(std::filesystem::exists(path()));
}

TEST_F(ListeningSocketTest, a_path_too_long_or_in_no_folder_is_refused_by_name) {
  const std::string endless = folder_ + "/" + std::string(108, 'x');
  const auto too_long = ListeningSocket::open_unix(endless);
  ASSERT_FALSE(too_long);
  EXPECT_EQ(too_long.error().code, Errc::invalid_argument);
  EXPECT_NE(too_long.error().message.find("107"), std::string::npos);
  const auto nowhere = ListeningSocket::open_unix(folder_ + "/none/socket");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().saved_errno, ENOENT);
  EXPECT_FALSE(ListeningSocket::open_unix(""));
}

TEST_F(ListeningSocketTest, uris_are_percent_encoded) {
  const auto socket = ListeningSocket::open_unix(path());
  ASSERT_TRUE(socket);
  EXPECT_EQ((*socket.value()).uri("a/b?c"),
            "nbd+unix:///a%2Fb%3Fc?socket=" + folder_ + "/a%20socket");
}

TEST_F(ListeningSocketTest, tcp_takes_names_addresses_and_any_free_port) {
  const auto loopback = ListeningSocket::open_tcp("127.0.0.1", 0);
  ASSERT_TRUE(loopback) << loopback.error().message;
  const std::string uri = loopback.value()->uri("x");
  EXPECT_EQ(uri.rfind("nbd://127.0.0.1:", 0), 0U);
  EXPECT_EQ(uri.find(":0/"), std::string::npos);
  const auto everywhere = ListeningSocket::open_tcp("", 0);
  EXPECT_TRUE(everywhere) << everywhere.error().message;
}

TEST_F(ListeningSocketTest, a_taken_port_or_unknown_host_is_refused_by_name) {
  const auto first = ListeningSocket::open_tcp("127.0.0.1", 0);
  ASSERT_TRUE(first);
  const std::string uri = first.value()->uri("x");
  const std::size_t colon = uri.rfind(':');
  const auto port = static_cast<std::uint16_t>(std::stoi(uri.substr(colon + 1)));
  const auto second = ListeningSocket::open_tcp("127.0.0.1", port);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().saved_errno, EADDRINUSE);
  EXPECT_NE(second.error().message.find(std::to_string(port)), std::string::npos);
  const auto nowhere = ListeningSocket::open_tcp("no.such.host.invalid", 0);
  ASSERT_FALSE(nowhere);
  EXPECT_NE(nowhere.error().message.find("no.such.host.invalid"), std::string::npos);
}

}  // namespace
}  // namespace uzram::nbd
