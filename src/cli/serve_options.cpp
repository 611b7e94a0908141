#include "cli/serve_options.hpp"

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

Result<std::vector<control::DeviceSettings>> parse_devices(const ServeArguments& arguments) {
  std::vector<control::DeviceSettings> devices;
  if (!arguments.shorthands.empty()) {
    control::DeviceSettings device;
    for (const auto& [key, value] : arguments.shorthands) {
      if (!arguments.devices.empty()) {
        return Error{Errc::invalid_argument, 0,
                     fmt::format("--{0} \"{1}\": it cannot be combined with --device; write "
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
