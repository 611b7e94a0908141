// The options of `uzram serve`: as given, and as understood.
//
// Role: everything between the command line and starting; nothing here touches the system.
// Errors: invalid_argument or unsupported with a message for people.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "uzram/error.hpp"

#include "control/device_option.hpp"
#include "frontend/nbd/server.hpp"

namespace uzram::cli {

// As given. Values stay text, so that all are refused in one place and one form.
struct ServeArguments {
  std::vector<std::string> devices;
  // --size and its like: the key of --device and its value.
  std::map<std::string, std::string> shorthands;
  // Of the same kind, but flags. ublk: empty when it is not given, "true" without an ID.
  bool read_only = false;
  bool train = false;
  std::string ublk;
  // The same: "true" without on or off.
  std::string checksum;
  std::vector<std::string> nbd;
  bool swap = false;
  // Empty: DIR/control.sock.
  std::string control;
  std::string max_connections = "256";
  std::string handshake_timeout = "10";
};

struct ServeOptions {
  // At least one; names are unique.
  std::vector<control::DeviceSettings> devices;
  // Besides the Unix socket NAME.nbd of each device that NBD serves, which is beside the control
  // socket.
  std::vector<nbd::Listener> listeners;
  // The process is to be fit for serving swap.
  bool swap = false;
  std::string control;
  std::uint32_t max_connections = 0;
  std::uint32_t handshake_timeout_ms = 0;
};

// Whether NBD clients get at the device: a block device of the kernel is served by NBD only when an
// address is given.
[[nodiscard]] bool is_nbd_export(const ServeOptions& options,
                                 const control::DeviceSettings& device) noexcept;

Result<ServeOptions> parse_serve_options(const ServeArguments& arguments);

// "tcp:HOST:PORT", "HOST:PORT", ":PORT" (of 127.0.0.1) or "unix:PATH"; an IPv6 HOST is in brackets.
Result<nbd::Listener> parse_listener(std::string_view text);

}  // namespace uzram::cli
