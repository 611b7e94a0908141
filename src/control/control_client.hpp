// Asks a running server over its control socket.
//
// Role: `uzram stat`.
// Errors: not_found when no server answers at the path, system when the answer breaks off, and
// what the server's own error says.
// Threads: any.
#pragma once

#include <string>

#include "uzram/error.hpp"

namespace uzram::control {

// The body of GET `resource` ("/v1/devices").
Result<std::string> get(const std::string& control_path, const std::string& resource);

}  // namespace uzram::control
