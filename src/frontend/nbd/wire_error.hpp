// What the engine's errors are called on the wire.
//
// Role: the one table between Errc and NBD's error numbers.
// Threads: pure functions.
#pragma once

#include "uzram/error.hpp"

#include "frontend/nbd/protocol.hpp"

namespace uzram::nbd {

// The error a client sees when `command` ended with `code`.
[[nodiscard]] WireError wire_error(Errc code, Command command) noexcept;

}  // namespace uzram::nbd
