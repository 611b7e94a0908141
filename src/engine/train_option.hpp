// The rules of DeviceOptions::train that depend on other options.
//
// Role: one wording for everybody who makes a device or takes its options.
// Errors: invalid_argument, with a message that names the value, what is expected and what to do.
// Threads: pure functions.
#pragma once

#include "uzram/device.hpp"
#include "uzram/error.hpp"

namespace uzram::engine {

[[nodiscard]] Result<void> check_train(const DeviceOptions& options);

}  // namespace uzram::engine
