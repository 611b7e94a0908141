// The ublk devices of this machine, whoever serves them.
//
// Role: for the commands that list and remove them, which also reach devices whose server has died.
// Errors: as Control.
// Threads: as Control.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "uzram/error.hpp"

#include "frontend/ublk/abi.hpp"
#include "frontend/ublk/control.hpp"

namespace uzram::ublk {

// Their numbers, ascending, from the character devices in `folder`, which is that of the kernel's
// nodes but in tests.
[[nodiscard]] std::vector<std::uint32_t> device_ids(std::string_view folder = "/dev");

// "dead", "live", "quiesced" or "fail-io".
[[nodiscard]] std::string_view state_name(DeviceState state) noexcept;

// Whether the block device is mounted, used as swap or held by another device: the kernel refuses an
// exclusive claim on what somebody has claimed.
[[nodiscard]] bool is_in_use(const std::string& node) noexcept;

// Stops the device and removes it, whatever uses it; requests on their way are finished where its
// server lives and fail where it does not. Errors: as Control::stop and remove.
Result<void> stop_and_remove(Control& control, std::uint32_t id);

}  // namespace uzram::ublk
