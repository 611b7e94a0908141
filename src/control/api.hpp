// Api: what the control socket can be asked, without the socket.
//
//   GET   /v1/version        {"version":"0.1.0"}
//   GET   /v1/devices        an array of device objects
//   GET   /v1/devices/NAME   one device object
//   PATCH /v1/devices/NAME   changes attributes, answers with the device object:
//       mode          "nowait", "async" or "auto"
//       workers       a number, 0 is as many as there are CPUs
//       train         true or false, of a device made to train: go on or pause
//       mem_limit     bytes, or a size such as "512M"; rounded up to a page; 0 is none
//       mem_used_max  0: restart the high-water mark
//       compact       1: compact the pool now
//     All of a PATCH is checked before any of it is done.
// Every error is {"error":{"code":"ENOENT","message":"…"}} with a fitting HTTP status.
//
// Role: the one place that knows the JSON.
// Units: integers are bytes or counts.
// Threads: any number at once.
// Errors: none thrown; every failure is a Reply.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "uzram/device.hpp"
#include "uzram/error.hpp"

#include "control/device_directory.hpp"

namespace uzram::control {

struct Reply {
  int status = 200;
  // JSON and a line end.
  std::string body;
};

class Api {
 public:
  // REQUIRES: the directory outlives the Api.
  explicit Api(const DeviceDirectory& directory) noexcept : directory_(directory) {}

  // `path` is percent-decoded and has no query.
  [[nodiscard]] Reply handle(std::string_view method, std::string_view path,
                             std::string_view body) const noexcept;

 private:
  [[nodiscard]] Reply route(std::string_view method, std::string_view path,
                            std::string_view body) const;

  const DeviceDirectory& directory_;
};

// The flat object of a device. comp_ratio is orig_data_size / mem_used_total, null while the pool
// holds nothing.
[[nodiscard]] nlohmann::ordered_json device_object(const DeviceEntry& entry,
                                                   const DeviceOptions& options,
                                                   const DeviceStats& stats);

[[nodiscard]] Reply error_reply(int status, std::string_view code, std::string_view message);
[[nodiscard]] Reply error_reply(const Error& error);

}  // namespace uzram::control
