// The rules of DeviceOptions::reserve_bytes that depend on other options.
//
// Role: one wording for everybody who makes a device or takes its options.
// Errors: invalid_argument, with a message that names the value, what is expected and what to do.
// Threads: pure functions.
#pragma once

#include <cstdint>

#include "uzram/device.hpp"
#include "uzram/error.hpp"

namespace uzram::engine {

[[nodiscard]] Result<void> check_reserve(const DeviceOptions& options);

// The reserve as a pool can hold it: in whole spans. REQUIRES: check_reserve takes the options.
[[nodiscard]] std::uint32_t reserve_spans_of(const DeviceOptions& options) noexcept;

}  // namespace uzram::engine
