#include "os/socket_path.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

namespace uzram::os {
namespace {

constexpr std::size_t kLongestPath = sizeof(sockaddr_un::sun_path) - 1;

enum class Answer : std::uint8_t { none, server, dead_server };

// Whether the process is gone or only waits to be reaped.
bool has_ended(pid_t pid) noexcept {
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) {
    return errno == ESRCH;
  }
  pollfd ended = {fd, POLLIN, 0};
  const bool ready = ::poll(&ended, 1, 0) == 1;
  ::close(fd);
  return ready;
}

// What is behind the socket at `path`; `problem` is the errno of connect when nothing answers.
Answer try_connect(const std::string& path, int& problem) noexcept {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    problem = errno;
    return Answer::none;
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.sun_path);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the interface of sockets
  const int failed = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  problem = failed == 0 ? 0 : errno;
  // The peer's credentials are those of the process that called listen.
  ucred listener{};
  socklen_t size = sizeof listener;
  const bool dead = failed == 0 &&
                    ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &listener, &size) == 0 &&
                    listener.pid > 0 && has_ended(listener.pid);
  ::close(fd);
  if (dead) {
    return Answer::dead_server;
  }
  // A full backlog is an answer too.
  return failed == 0 || problem == EAGAIN || problem == EINPROGRESS ? Answer::server : Answer::none;
}

// A killed process's accepts through io_uring keep its socket listening until the kernel has taken
// the ring apart, which can be after the process was reaped.
Answer wait_while_dead(const std::string& path, int& problem) noexcept {
  constexpr std::chrono::milliseconds kPause{5};
  constexpr int kTries = 1000;
  Answer answer = try_connect(path, problem);
  for (int i = 0; i < kTries && answer == Answer::dead_server; ++i) {
    std::this_thread::sleep_for(kPause);
    answer = try_connect(path, problem);
    if (answer == Answer::server && problem == EAGAIN) {
      // Our own attempts have filled its backlog.
      answer = Answer::dead_server;
    }
  }
  return answer;
}

// `what` names the socket and its path.
Result<void> clear(const std::string& what, const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) {
    return errno == ENOENT ? Result<void>() : system_error(what, errno);
  }
  if (!S_ISSOCK(found.st_mode)) {
    return Error{Errc::exists, 0,
                 what + ": it exists and is no socket; remove it or choose another path"};
  }
  int problem = 0;
  if (wait_while_dead(path, problem) != Answer::none) {
    return Error{Errc::busy, 0,
                 what + ": EBUSY: another server answers there; stop it or choose another path"};
  }
  if (problem != ECONNREFUSED && problem != ENOENT) {
    return system_error(what, problem);
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return system_error(what, errno);
  }
  return {};
}

}  // namespace

Result<SocketPathClaim> SocketPathClaim::claim(std::string_view what_for, const std::string& path) {
  const std::string what = std::string(what_for) + " \"" + path + "\"";
  if (path.empty() || path.size() > kLongestPath || path.find('\0') != std::string::npos) {
    return Error{Errc::invalid_argument, 0,
                 what + ": expected a path of 1 to " + std::to_string(kLongestPath) + " bytes"};
  }
  std::string parent = std::filesystem::path(path).parent_path().string();
  if (parent.empty()) {
    parent = ".";
  }
  const int directory = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) {
    return system_error(what + ": directory \"" + parent + "\"", errno);
  }
  SocketPathClaim claim(directory);
  while (::flock(directory, LOCK_EX) != 0) {
    if (errno != EINTR) {
      return system_error(what + ": lock of its directory", errno);
    }
  }
  if (const auto cleared = clear(what, path); !cleared) {
    return cleared.error();
  }
  return claim;
}

SocketPathClaim::SocketPathClaim(SocketPathClaim&& other) noexcept
    : directory_(std::exchange(other.directory_, -1)) {}

SocketPathClaim::~SocketPathClaim() {
  if (directory_ >= 0) {
    ::close(directory_);
  }
}

FileIdentity identify(const std::string& path) noexcept {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0 ? FileIdentity{found.st_dev, found.st_ino}
                                            : FileIdentity{};
}

void remove_if_same(const std::string& path, const FileIdentity& identity) noexcept {
  const FileIdentity now = identify(path);
  if (now.inode != 0 && now.device == identity.device && now.inode == identity.inode) {
    ::unlink(path.c_str());
  }
}

}  // namespace uzram::os
