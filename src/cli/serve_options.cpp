#include "cli/serve_options.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/option_value.hpp"

namespace uzram::cli {
namespace {

constexpr std::string_view kAddressForms =
    "tcp:HOST:PORT, HOST:PORT, :PORT or unix:PATH, with an IPv6 HOST in brackets";

Result<std::uint32_t> parse_count(std::string_view option, std::string_view text,
                                  std::uint32_t greatest) {
  std::uint32_t number = 0;
  if (!take_number(text, number) || number == 0 || number > greatest) {
    return refuse_option(option, text, "a number from 1 to " + std::to_string(greatest));
  }
  return number;
}

// What is kept free for swap unless somebody says how much: a sixteenth of the device, which is much for
// a moment and little for a machine.
void set_swap_reserve(DeviceOptions& options) noexcept {
  constexpr std::uint64_t kLeast = std::uint64_t{16} << 20;
  constexpr std::uint64_t kMost = std::uint64_t{256} << 20;
  if (options.reserve_bytes != 0) {
    return;
  }
  options.reserve_bytes =
      std::min(std::clamp(options.disksize_bytes / 16, kLeast, kMost), options.disksize_bytes);
  if (options.mem_limit_bytes != 0) {
    options.reserve_bytes = std::min(options.reserve_bytes, options.mem_limit_bytes);
  }
}

Result<void> check_swap(control::DeviceSettings& device) {
  const std::string what = "--swap: device \"" + device.options.name + "\": ";
  if (device.read_only) {
    return Error{Errc::invalid_argument, 0, what + "it is read-only; expected one to write to"};
  }
  if (!device.options.background) {
    return Error{
        Errc::invalid_argument, 0,
        what + "background is off; expected on, for memory has to be taken ahead of writes"};
  }
  set_swap_reserve(device.options);
  device.ublk_options.present_buffers = true;
  return {};
}

std::map<std::string, std::string> shorthands_of(const ServeArguments& arguments) {
  std::map<std::string, std::string> shorthands = arguments.shorthands;
  if (arguments.read_only) {
    shorthands["read-only"] = "";
  }
  if (!arguments.checksum.empty()) {
    shorthands["checksum"] = arguments.checksum == "true" ? "" : arguments.checksum;
  }
  if (arguments.train) {
    shorthands["train"] = "";
  }
  if (!arguments.ublk.empty()) {
    shorthands["ublk"] = arguments.ublk == "true" ? "" : arguments.ublk;
  }
  return shorthands;
}

Result<std::vector<control::DeviceSettings>> parse_devices(const ServeArguments& arguments) {
  std::vector<control::DeviceSettings> devices;
  const std::map<std::string, std::string> shorthands = shorthands_of(arguments);
  if (!shorthands.empty()) {
    control::DeviceSettings device;
    for (const auto& [key, value] : shorthands) {
      if (!arguments.devices.empty()) {
        return Error{Errc::invalid_argument, 0,
                     value.empty()
                         ? fmt::format("--{0}: it cannot be combined with --device; write --device "
                                       "…,{0}",
                                       key)
                         : fmt::format("--{0} \"{1}\": it cannot be combined with --device; write "
                                       "--device …,{0}={1}",
                                       key, value)};
      }
      if (auto set = control::set_device_key(device, "--" + key, key, value); !set) {
        return set.error();
      }
    }
    if (auto finished = control::finish_device(device, 0); !finished) {
      return finished.error();
    }
    devices.push_back(std::move(device));
  }
  for (const std::string& text : arguments.devices) {
    auto device = control::parse_device(text, devices.size());
    if (!device) {
      return device.error();
    }
    devices.push_back(std::move(*device));
  }
  if (devices.empty()) {
    return Error{Errc::invalid_argument, 0,
                 "there is no device to serve; expected --size SIZE or --device size=SIZE,…"};
  }
  std::set<std::string_view> names;
  for (const control::DeviceSettings& device : devices) {
    if (!names.insert(device.options.name).second) {
      return Error{Errc::exists, 0,
                   "device \"" + device.options.name +
                       "\": there are two of this name; expected different names"};
    }
  }
  return devices;
}

}  // namespace

Result<nbd::Listener> parse_listener(std::string_view text) {
  const Error refusal{
      Errc::invalid_argument, 0,
      "--nbd \"" + std::string(text) + "\": expected " + std::string(kAddressForms)};
  nbd::Listener listener;
  if (text.starts_with("unix:")) {
    listener.unix_path = text.substr(5);
    return listener.unix_path.empty() ? Result<nbd::Listener>(refusal) : listener;
  }
  if (text.starts_with("tcp:")) {
    text.remove_prefix(4);
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return refusal;
  }
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of(":[]/") != std::string_view::npos) {
    return refusal;
  }
  if (!host.empty()) {
    listener.tcp_host = host;
  }
  if (!take_number(port, listener.tcp_port)) {
    Error bad_port = refusal;
    bad_port.message += "; PORT is a number from 0 (any free one) to 65535";
    return bad_port;
  }
  return listener;
}

bool is_nbd_export(const ServeOptions& options, const control::DeviceSettings& device) noexcept {
  return !device.ublk || !options.listeners.empty();
}

Result<ServeOptions> parse_serve_options(const ServeArguments& arguments) {
  constexpr std::uint32_t kMostConnections = 65536;
  constexpr std::uint32_t kLongestTimeout = 3600;
  ServeOptions options;
  auto devices = parse_devices(arguments);
  if (!devices) {
    return devices.error();
  }
  options.devices = std::move(*devices);
  for (const std::string& text : arguments.nbd) {
    auto listener = parse_listener(text);
    if (!listener) {
      return listener.error();
    }
    options.listeners.push_back(std::move(*listener));
  }
  options.swap = arguments.swap;
  for (control::DeviceSettings& device : options.devices) {
    device.ublk_options.logical_block_bytes = device.logical_block_bytes;
    device.ublk_options.read_only = device.read_only;
    if (options.swap) {
      if (auto fit = check_swap(device); !fit) {
        return fit.error();
      }
    }
  }
  options.control = arguments.control;
  const auto connections =
      parse_count("--max-connections", arguments.max_connections, kMostConnections);
  if (!connections) {
    return connections.error();
  }
  options.max_connections = *connections;
  const auto timeout =
      parse_count("--handshake-timeout", arguments.handshake_timeout, kLongestTimeout);
  if (!timeout) {
    return timeout.error();
  }
  options.handshake_timeout_ms = *timeout * 1000;
  return options;
}

}  // namespace uzram::cli
