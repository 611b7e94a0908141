#include "os/socket_path.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace uzram::os {
namespace {

constexpr std::size_t kLongestPath = sizeof(sockaddr_un::sun_path) - 1;

// 0 when something accepts or will accept connections at `path`, else the errno of connect.
int try_connect(const std::string& path) noexcept {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return errno;
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.sun_path);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the interface of sockets
  const int failed = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  const int problem = failed == 0 ? 0 : errno;
  ::close(fd);
  // A full backlog is an answer too.
  return problem == EAGAIN || problem == EINPROGRESS ? 0 : problem;
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
  const int problem = try_connect(path);
  if (problem == 0) {
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
