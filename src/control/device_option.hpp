// One device of `uzram serve`, from "key=value,key=value,read-only" or from the shorthand
// options.
//
// Role: the only place that knows the keys; --size and its like are the same keys without
// commas.
// Units: bytes.
// Errors: invalid_argument or unsupported, with a message that names the option, the value and
// what is expected.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "uzram/device.hpp"
#include "uzram/error.hpp"

#include "frontend/ublk/server.hpp"

namespace uzram::control {

struct DeviceSettings {
  DeviceOptions options;
  std::uint32_t logical_block_bytes = 4096;
  bool read_only = false;
  // As a block device of the kernel, too: its ID, queues, depth and largest request. What is above
  // holds for it as well.
  bool ublk = false;
  ublk::ServerOptions ublk_options{};
};

// The keys of this build, for help and messages.
inline constexpr std::string_view kDeviceKeys =
    "name, size, algorithm, level, mode, workers, background, mem-limit, reserve, "
    "checksum, max-comp-streams, train, block-size, read-only, ublk, queues, depth, max-io";

// Whether the key says something without a value, too: "checksum", "read-only", "train", "ublk".
[[nodiscard]] bool is_flag_key(std::string_view key) noexcept;

// Sets one key. `option` is how messages call it: "--size" or "--device size". A flag without a value
// has an empty one.
Result<void> set_device_key(DeviceSettings& device, std::string_view option, std::string_view key,
                            std::string_view value);

// Checks what depends on more than one key. Until then the device's name may be empty: it becomes
// uzramN, with N its `index`.
Result<void> finish_device(DeviceSettings& device, std::size_t index);

// The text of one --device.
Result<DeviceSettings> parse_device(std::string_view text, std::size_t index);

}  // namespace uzram::control
