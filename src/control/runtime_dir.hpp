// The directory of the sockets: DIR/control.sock and one DIR/NAME.nbd for each device.
//
// Role: where the server puts its sockets when nothing else is said and where clients look for
// them. DIR is /run/uzram for root, else $XDG_RUNTIME_DIR/uzram, else /tmp/uzram-UID.
// Errors: everything but a directory of our own is refused: whoever owns the directory could put a
// socket of theirs in the place of ours.
// Threads: call before other threads change the environment.
#pragma once

#include <string>

#include <sys/types.h>

#include "uzram/error.hpp"

namespace uzram::control {

// DIR for a user. `xdg_runtime_dir` may be nullptr; as its specification demands, it counts only
// when it is an absolute path.
[[nodiscard]] std::string runtime_dir_of(uid_t user, const char* xdg_runtime_dir);

// DIR of the caller.
[[nodiscard]] std::string default_runtime_dir();

// DIR/control.sock of the caller.
[[nodiscard]] std::string default_control_path();

// Makes the directory with mode 0700; one that exists gets this mode.
// Errors: exists when the path is no directory (a symbolic link is none), read_only when it belongs
// to someone else, system.
Result<void> make_runtime_dir(const std::string& path);

// For clients: refuses a directory that belongs to someone else. An absent one is not an error.
Result<void> check_runtime_dir(const std::string& path);

}  // namespace uzram::control
