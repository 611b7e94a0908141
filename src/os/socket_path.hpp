// Who owns the path of a Unix socket.
//
// Role: before a server binds its socket. A path where a server answers is refused, one that a dead
// server left behind is taken (after waiting for the kernel to finish with that server, when it still
// answers in its place), anything that is no socket is left alone.
// Threads: any; two processes that claim in the same directory wait for each other.
#pragma once

#include <string>
#include <string_view>

#include <sys/types.h>

#include "uzram/error.hpp"

namespace uzram::os {

// Holds the directory of a path locked from the look at it until it is bound, so that of two
// servers started at once one sees the other. Destroying it releases the lock.
class SocketPathClaim {
 public:
  // Returns with `path` free to be bound. `what_for` begins the messages: "control socket".
  // Errors: invalid_argument when the path is empty or longer than a socket's address holds; busy
  // when a server answers there; exists when it is no socket; system.
  static Result<SocketPathClaim> claim(std::string_view what_for, const std::string& path);
  ~SocketPathClaim();
  SocketPathClaim(SocketPathClaim&& other) noexcept;
  SocketPathClaim& operator=(SocketPathClaim&&) = delete;

 private:
  explicit SocketPathClaim(int directory) noexcept : directory_(directory) {}
  int directory_;
};

// Which file a path names, to remove it later only if it is still the same.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
};

// {0, 0} when there is none.
[[nodiscard]] FileIdentity identify(const std::string& path) noexcept;
// Removes `path` if it is still `identity`.
void remove_if_same(const std::string& path, const FileIdentity& identity) noexcept;

}  // namespace uzram::os
