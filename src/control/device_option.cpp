#include "control/device_option.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/option_value.hpp"
#include "base/size.hpp"
#include "codec/codec.hpp"
#include "engine/reserve_option.hpp"
#include "engine/train_option.hpp"

namespace uzram::control {
namespace {

constexpr std::size_t kLongestName = 64;
constexpr std::uint32_t kMostPerCpu = 4096;
static_assert(kMostPerCpu == ublk::kMostQueues);
// Minor numbers end there.
constexpr std::uint32_t kLargestUblkId = (1U << 20) - 1;

Result<void> set_name(DeviceSettings& device, std::string_view option, std::string_view value) {
  const bool clean = std::all_of(value.begin(), value.end(), [](char byte) {
    return byte >= ' ' && byte <= '~' && byte != '/';
  });
  // It names a socket, and is part of URIs and JSON.
  if (value.empty() || value.size() > kLongestName || !clean || value == "." || value == "..") {
    return refuse_option(option, value,
                         "1 to 64 printable ASCII characters without \"/\", not \".\" or \"..\"");
  }
  device.options.name = value;
  return {};
}

// A size rounded up to a page.
Result<std::uint64_t> parse_rounded(std::string_view option, std::string_view value,
                                    std::uint64_t greatest) {
  auto bytes = parse_size(option, value);
  if (bytes && *bytes > greatest) {
    return refuse_option(option, value, "at most " + format_size(greatest));
  }
  return bytes ? round_up(*bytes, kDefaultPageSize) : bytes;
}

Result<void> set_size(DeviceSettings& device, std::string_view option, std::string_view value) {
  const auto bytes = parse_rounded(option, value, kMaxDiskSize);
  if (!bytes) {
    return bytes.error();
  }
  if (*bytes == 0) {
    return refuse_option(option, value, "a size greater than 0, such as 512M");
  }
  device.options.disksize_bytes = *bytes;
  return {};
}

// More than any machine has, and far from overflow.
constexpr std::uint64_t kGreatestMemory = std::uint64_t{1} << 60;

Result<void> set_mem_limit(DeviceSettings& device, std::string_view option,
                           std::string_view value) {
  const auto bytes = parse_rounded(option, value, kGreatestMemory);
  if (!bytes) {
    return bytes.error();
  }
  device.options.mem_limit_bytes = *bytes;
  return {};
}

Result<void> set_reserve(DeviceSettings& device, std::string_view option, std::string_view value) {
  const auto bytes = parse_rounded(option, value, kGreatestMemory);
  if (!bytes) {
    return bytes.error();
  }
  device.options.reserve_bytes = *bytes;
  return {};
}

Result<void> set_mode(DeviceSettings& device, std::string_view option, std::string_view value) {
  const std::optional<Mode> mode = mode_from_name(value);
  if (!mode) {
    return refuse_option(option, value, "nowait, async or auto");
  }
  device.options.mode = *mode;
  return {};
}

Result<void> set_switch(bool& into, std::string_view option, std::string_view value) {
  if (value != "on" && value != "off") {
    return refuse_option(option, value, "on or off");
  }
  into = value == "on";
  return {};
}

Result<void> set_workers(DeviceSettings& device, std::string_view option, std::string_view value) {
  std::uint32_t workers = 0;
  if (!take_number(value, workers) || workers > kMaxWorkers) {
    return refuse_option(option, value,
                         "a number from 1 to 256, or 0 for as many as there are CPUs");
  }
  device.options.workers = workers;
  return {};
}

// One of whatever it is for each CPU when 0.
Result<void> set_per_cpu_number(std::uint32_t& into, std::string_view option,
                                std::string_view value) {
  std::uint32_t number = 0;
  if (!take_number(value, number) || number > kMostPerCpu) {
    return refuse_option(option, value, "a number from 1 to 4096, or 0 for one per CPU");
  }
  into = number;
  return {};
}

Result<void> set_block_size(DeviceSettings& device, std::string_view option,
                            std::string_view value) {
  if (value != "512" && value != "4096") {
    return refuse_option(option, value, "512 or 4096");
  }
  device.logical_block_bytes = value == "512" ? 512 : 4096;
  return {};
}

Result<void> set_read_only(DeviceSettings& device, std::string_view option,
                           std::string_view value) {
  if (!value.empty()) {
    return refuse_option(option, value, "no value");
  }
  device.read_only = true;
  return {};
}

// What it means depends on the algorithm, which has been set before.
Result<void> set_level(DeviceSettings& device, std::string_view option, std::string_view value) {
  // The kernel's zram may have algorithms that are not in this program.
  static constexpr codec::CodecInfo kUnknown;
  const codec::CodecInfo* const info = codec::find(device.options.algorithm);
  const codec::CodecInfo& codec = info != nullptr ? *info : kUnknown;
  const std::optional<int> level = codec::level_from(codec, value);
  if (!level) {
    return refuse_option(option, value,
                         codec::level_forms(codec) + " for algorithm " + device.options.algorithm);
  }
  device.options.level = level;
  return {};
}

Result<void> set_ublk(DeviceSettings& device, std::string_view option, std::string_view value) {
  std::uint32_t id = 0;
  if (!value.empty()) {
    if (!take_number(value, id) || id > kLargestUblkId) {
      return refuse_option(option, value,
                           "the N of /dev/ublkbN, or nothing for the first free one");
    }
    device.ublk_options.id = id;
  }
  device.ublk = true;
  return {};
}

Result<void> set_depth(DeviceSettings& device, std::string_view option, std::string_view value) {
  std::uint32_t& depth = device.ublk_options.depth;
  if (!take_number(value, depth) || depth == 0 || depth > ublk::kDeepest) {
    return refuse_option(option, value, "a number from 1 to 4096");
  }
  return {};
}

Result<void> set_max_io(DeviceSettings& device, std::string_view option, std::string_view value) {
  const auto bytes = parse_rounded(option, value, ublk::kLargestMaxIoBytes);
  if (!bytes) {
    return bytes.error();
  }
  if (*bytes == 0) {
    return refuse_option(option, value, "a size from 4K to 32M");
  }
  device.ublk_options.max_io_bytes = static_cast<std::uint32_t>(*bytes);
  return {};
}

}  // namespace

Result<void> set_device_key(DeviceSettings& device, std::string_view option, std::string_view key,
                            std::string_view value) {
  if (key == "name") {
    return set_name(device, option, value);
  }
  if (key == "size") {
    return set_size(device, option, value);
  }
  if (key == "algorithm") {
    if (codec::find(value) == nullptr) {
      return refuse_option(option, value, "one of " + codec::names());
    }
    device.options.algorithm = value;
    return {};
  }
  if (key == "level") {
    return set_level(device, option, value);
  }
  if (key == "mode") {
    return set_mode(device, option, value);
  }
  if (key == "workers") {
    return set_workers(device, option, value);
  }
  if (key == "background") {
    return set_switch(device.options.background, option, value);
  }
  if (key == "train") {
    return set_switch(device.options.train, option, value.empty() ? "on" : value);
  }
  if (key == "mem-limit") {
    return set_mem_limit(device, option, value);
  }
  if (key == "reserve") {
    return set_reserve(device, option, value);
  }
  if (key == "checksum") {
    // Named alone it is meant.
    return set_switch(device.options.checksum, option, value.empty() ? "on" : value);
  }
  if (key == "max-comp-streams") {
    return set_per_cpu_number(device.options.max_comp_streams, option, value);
  }
  if (key == "block-size") {
    return set_block_size(device, option, value);
  }
  if (key == "read-only") {
    return set_read_only(device, option, value);
  }
  if (key == "ublk") {
    return set_ublk(device, option, value);
  }
  if (key == "queues") {
    return set_per_cpu_number(device.ublk_options.queues, option, value);
  }
  if (key == "depth") {
    return set_depth(device, option, value);
  }
  if (key == "max-io") {
    return set_max_io(device, option, value);
  }
  return Error{
      Errc::invalid_argument, 0,
      std::string(option) + ": there is no such key; expected " + std::string(kDeviceKeys)};
}

bool is_flag_key(std::string_view key) noexcept {
  return key == "checksum" || key == "read-only" || key == "train" || key == "ublk";
}

Result<void> finish_device(DeviceSettings& device, std::size_t index) {
  DeviceOptions& options = device.options;
  if (options.name.empty()) {
    options.name = "uzram" + std::to_string(index);
  }
  const std::string what = "device \"" + options.name + "\": ";
  if (options.disksize_bytes == 0) {
    return Error{Errc::invalid_argument, 0, what + "it has no size; expected such as size=512M"};
  }
  if (options.mode == Mode::nowait && options.workers != 0) {
    return Error{
        Errc::invalid_argument, 0,
        what + "workers " + std::to_string(options.workers) +
            " have nothing to do in mode nowait; expected mode async or auto, or no workers"};
  }
  const ublk::ServerOptions& kernel = device.ublk_options;
  if (!device.ublk && (kernel.queues != 0 || kernel.depth != ublk::kDefaultDepth ||
                       kernel.max_io_bytes != ublk::kDefaultMaxIoBytes)) {
    return Error{Errc::invalid_argument, 0,
                 what +
                     "queues, depth and max-io are of a block device of the kernel; expected ublk "
                     "with them, or none of them"};
  }
  const auto of_device = [&what](Error error) {
    error.message.insert(0, what);
    return error;
  };
  if (auto checked = engine::check_reserve(options); !checked) {
    return of_device(std::move(checked).error());
  }
  if (auto checked = engine::check_train(options); !checked) {
    return of_device(std::move(checked).error());
  }
  // The registry words what is wrong with a level, as it knows the range.
  if (const auto made = codec::make(options.algorithm, options.level, options.page_size_bytes);
      !made) {
    return of_device(made.error());
  }
  return {};
}

Result<DeviceSettings> parse_device(std::string_view text, std::size_t index) {
  DeviceSettings device;
  device.options.name.clear();
  std::vector<std::string_view> seen;
  // Set last, as it depends on the algorithm.
  std::optional<std::string_view> level;
  while (true) {
    const std::string_view item = text.substr(0, text.find(','));
    const std::size_t equals = item.find('=');
    const std::string_view key = item.substr(0, equals);
    const std::string option = "--device " + std::string(key);
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      return Error{Errc::invalid_argument, 0, option + ": given twice; expected it once"};
    }
    seen.push_back(key);
    if (equals == std::string_view::npos && is_flag_key(key)) {
      if (auto set = set_device_key(device, option, key, {}); !set) {
        return set.error();
      }
    } else if (equals == std::string_view::npos) {
      return Error{Errc::invalid_argument, 0,
                   "--device \"" + std::string(item) +
                       "\": expected KEY=VALUE, separated by commas, with the keys " +
                       std::string(kDeviceKeys)};
    } else if (key == "level") {
      level = item.substr(equals + 1);
    } else if (auto set = set_device_key(device, option, key, item.substr(equals + 1)); !set) {
      return set.error();
    }
    if (item.size() == text.size()) {
      break;
    }
    text.remove_prefix(item.size() + 1);
  }
  if (level) {
    if (auto set = set_device_key(device, "--device level", "level", *level); !set) {
      return set.error();
    }
  }
  if (auto finished = finish_device(device, index); !finished) {
    return finished.error();
  }
  return device;
}

}  // namespace uzram::control
