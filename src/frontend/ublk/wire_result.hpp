// What the driver is told of a request that is done.
//
// Role: the one table from error codes to the errnos of ublk's protocol.
// Threads: pure functions.
#pragma once

#include <cstdint>

#include "uzram/error.hpp"

namespace uzram::ublk {

// A negative errno that the kernel turns into a status of the block layer; 0 for ok.
[[nodiscard]] std::int32_t wire_error(Errc code) noexcept;

}  // namespace uzram::ublk
