#include "control/runtime_dir.hpp"

#include <cerrno>
#include <cstdlib>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace uzram::control {
namespace {

constexpr mode_t kMode = 0700;

Result<void> check_owner(const std::string& path, const struct stat& found) {
  if (!S_ISDIR(found.st_mode)) {
    return Error{
        Errc::exists, 0,
        "directory \"" + path + "\": it is no directory; remove it or set XDG_RUNTIME_DIR"};
  }
  if (found.st_uid != ::geteuid()) {
    return Error{Errc::read_only, 0,
                 "directory \"" + path + "\": it belongs to user " + std::to_string(found.st_uid) +
                     ", expected user " + std::to_string(::geteuid()) +
                     "; remove it or set XDG_RUNTIME_DIR"};
  }
  return {};
}

// Works on a descriptor that followed no link, so that what is checked is what is changed.
Result<void> restrict_open(int fd, const std::string& path) {
  struct stat found {};
  if (::fstat(fd, &found) == 0) {
    if (auto owned = check_owner(path, found); !owned) {
      return owned;
    }
    if ((found.st_mode & 07777) == kMode || ::fchmod(fd, kMode) == 0) {
      return {};
    }
  }
  return system_error("directory \"" + path + "\"", errno);
}

}  // namespace

std::string runtime_dir_of(uid_t user, const char* xdg_runtime_dir) {
  if (user == 0) {
    return "/run/uzram";
  }
  if (xdg_runtime_dir != nullptr && xdg_runtime_dir[0] == '/') {
    return std::string(xdg_runtime_dir) + "/uzram";
  }
  return "/tmp/uzram-" + std::to_string(user);
}

std::string default_runtime_dir() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing in this project changes the environment
  return runtime_dir_of(::geteuid(), ::secure_getenv("XDG_RUNTIME_DIR"));
}

std::string default_control_path() { return default_runtime_dir() + "/control.sock"; }

Result<void> make_runtime_dir(const std::string& path) {
  const std::string what = "directory \"" + path + "\"";
  if (::mkdir(path.c_str(), kMode) != 0 && errno != EEXIST) {
    return system_error(what, errno);
  }
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) {
    return system_error(what, errno);
  }
  if (auto owned = check_owner(path, found); !owned) {
    return owned;
  }
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) {
    return system_error(what, errno);
  }
  auto result = restrict_open(fd, path);
  ::close(fd);
  return result;
}

Result<void> check_runtime_dir(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) {
    return {};
  }
  return check_owner(path, found);
}

}  // namespace uzram::control
