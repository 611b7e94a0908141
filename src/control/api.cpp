#include "control/api.hpp"

#include <cstdint>
#include <exception>
#include <limits>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/size.hpp"
#include "control/version.hpp"

namespace uzram::control {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kDevices = "/v1/devices";
constexpr std::string_view kVersion = "/v1/version";
constexpr std::string_view kSettable = "mode, workers, train, mem_limit, mem_used_max or compact";

// Names are bytes; what is not UTF-8 in them is shown as U+FFFD.
std::string dump(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

Reply ok_reply(const ordered_json& value) { return {200, dump(value) + "\n"}; }

int http_status(Errc code) noexcept {
  switch (code) {
    case Errc::ok:
      return 200;
    case Errc::invalid_argument:
    case Errc::out_of_range:
      return 400;
    case Errc::read_only:
      return 403;
    case Errc::not_found:
      return 404;
    case Errc::busy:
    case Errc::exists:
      return 409;
    case Errc::unsupported:
      return 501;
    case Errc::no_space:
      return 507;
    case Errc::corrupt:
    case Errc::incompressible:
    case Errc::system:
      return 500;
  }
  return 500;
}

Error bad_value(std::string_view key, const ordered_json& value, std::string_view expected) {
  return {Errc::invalid_argument, 0,
          std::string(key) + " " + dump(value) + ": expected " + std::string(expected)};
}

// What a PATCH asks for.
struct Changes {
  std::optional<Mode> mode;
  std::optional<std::uint32_t> workers;
  std::optional<bool> train;
  std::optional<std::uint64_t> mem_limit;
  bool reset_mem_used_max = false;
  bool compact = false;
};

Result<std::uint64_t> parse_limit(const ordered_json& value, std::uint32_t page_size) {
  constexpr std::string_view kExpected = "a number of bytes or a size such as \"512M\"";
  std::uint64_t bytes = 0;
  if (value.is_number_unsigned()) {
    bytes = value.get<std::uint64_t>();
  } else if (value.is_string()) {
    auto parsed = parse_size("mem_limit", value.get_ref<const std::string&>());
    if (!parsed) {
      return parsed;
    }
    bytes = *parsed;
  } else {
    return bad_value("mem_limit", value, kExpected);
  }
  if (bytes > std::numeric_limits<std::uint64_t>::max() - page_size) {
    return bad_value("mem_limit", value, "less than 16 EiB; 0 is no limit");
  }
  return round_up(bytes, page_size);
}

Result<Changes> parse_changes(std::string_view body, std::uint32_t page_size) {
  const ordered_json request = ordered_json::parse(body, nullptr, false);
  if (!request.is_object() || request.empty()) {
    return Error{Errc::invalid_argument, 0,
                 "body: expected a JSON object with " + std::string(kSettable)};
  }
  Changes changes;
  for (const auto& [key, value] : request.items()) {
    if (key == "mode") {
      changes.mode =
          value.is_string() ? mode_from_name(value.get_ref<const std::string&>()) : std::nullopt;
      if (!changes.mode) {
        return bad_value(key, value, "\"nowait\", \"async\" or \"auto\"");
      }
    } else if (key == "workers") {
      if (!value.is_number_unsigned() || value > kMaxWorkers) {
        return bad_value(key, value, "a number from 1 to 256, or 0 for as many as there are CPUs");
      }
      changes.workers = value.get<std::uint32_t>();
    } else if (key == "train") {
      if (!value.is_boolean()) {
        return bad_value(key, value, "true or false");
      }
      changes.train = value.get<bool>();
    } else if (key == "mem_limit") {
      const auto limit = parse_limit(value, page_size);
      if (!limit) {
        return limit.error();
      }
      changes.mem_limit = *limit;
    } else if (key == "mem_used_max") {
      if (!value.is_number_integer() || value != 0) {
        return bad_value(key, value, "0, which restarts the high-water mark");
      }
      changes.reset_mem_used_max = true;
    } else if (key == "compact") {
      if (!value.is_number_integer() || value != 1) {
        return bad_value(key, value, "1, which compacts the pool now");
      }
      changes.compact = true;
    } else {
      return Error{Errc::invalid_argument, 0,
                   "attribute " + dump(key) + " cannot be set: expected " + std::string(kSettable)};
    }
  }
  return changes;
}

ordered_json object_of(const DeviceEntry& entry) {
  return device_object(entry, entry.device->options(), entry.device->stats());
}

Reply patch_device(const DeviceEntry& entry, std::string_view body) {
  Device& device = *entry.device;
  const auto changes = parse_changes(body, device.page_size_bytes());
  if (!changes) {
    return error_reply(changes.error());
  }
  const bool trained_before = device.options().train;
  // First: they are those that can fail.
  if (changes->train) {
    if (auto set = device.set_training(*changes->train); !set) {
      return error_reply(set.error());
    }
  }
  if (changes->mode || changes->workers) {
    const DeviceOptions now = device.options();
    if (auto set = device.set_mode(changes->mode.value_or(now.mode),
                                   changes->workers.value_or(now.workers));
        !set) {
      if (changes->train) {
        // All or nothing.
        static_cast<void>(device.set_training(trained_before));
      }
      return error_reply(set.error());
    }
  }
  if (changes->mem_limit) {
    device.set_mem_limit(*changes->mem_limit);
  }
  if (changes->compact) {
    device.compact();
  }
  // Last, so that the mark restarts at what compaction left.
  if (changes->reset_mem_used_max) {
    device.reset_mem_used_max();
  }
  return ok_reply(object_of(entry));
}

Reply wrong_method(std::string_view method, std::string_view path, std::string_view expected) {
  return error_reply(405, "ENOTSUP",
                     "method " + std::string(method) + " on " + std::string(path) + ": expected " +
                         std::string(expected));
}

}  // namespace

Reply error_reply(int status, std::string_view code, std::string_view message) {
  return {status, dump({{"error", {{"code", code}, {"message", message}}}}) + "\n"};
}

Reply error_reply(const Error& error) {
  return error_reply(http_status(error.code), errno_name(error.code), error.message);
}

ordered_json device_object(const DeviceEntry& entry, const DeviceOptions& options,
                           const DeviceStats& stats) {
  ordered_json object;
  object["name"] = entry.name;
  object["algorithm"] = options.algorithm;
  // A device fills its level in.
  object["level"] = options.level.value_or(0);
  object["disksize"] = options.disksize_bytes;
  object["page_size"] = options.page_size_bytes;
  object["mode"] = mode_name(options.mode);
  object["workers"] = options.workers;
  object["streams"] = options.max_comp_streams;
  object["train"] = options.train;
  object["orig_data_size"] = stats.orig_data_size;
  object["compr_data_size"] = stats.compr_data_size;
  object["mem_used_total"] = stats.mem_used_total;
  object["mem_limit"] = stats.mem_limit;
  object["mem_used_max"] = stats.mem_used_max;
  object["reserve"] = options.reserve_bytes;
  object["checksum"] = options.checksum;
  object["same_pages"] = stats.same_pages;
  object["pages_compacted"] = stats.pages_compacted;
  object["huge_pages"] = stats.huge_pages;
  object["huge_pages_since"] = stats.huge_pages_since;
  object["failed_reads"] = stats.failed_reads;
  object["failed_writes"] = stats.failed_writes;
  object["invalid_io"] = stats.invalid_io;
  object["notify_free"] = stats.notify_free;
  object["corrupt_pages"] = stats.corrupt_pages;
  object["table_bytes"] = stats.table_bytes;
  object["generations"] = stats.generations;
  if (stats.trained_saving) {
    object["trained_saving"] = *stats.trained_saving;
  } else {
    object["trained_saving"] = nullptr;
  }
  if (stats.orig_data_size != 0 && stats.mem_used_total != 0) {
    object["comp_ratio"] =
        static_cast<double>(stats.orig_data_size) / static_cast<double>(stats.mem_used_total);
  } else {
    object["comp_ratio"] = nullptr;
  }
  if (entry.node.empty()) {
    object["node"] = nullptr;
  } else {
    object["node"] = entry.node;
  }
  object["exports"] = entry.exports;
  return object;
}

Reply Api::handle(std::string_view method, std::string_view path,
                  std::string_view body) const noexcept {
  try {
    return route(method == "HEAD" ? "GET" : method, path, body);
  } catch (const std::exception&) {
    // bad_alloc is all that can come here; this reply is small enough to be tried again.
    return {500, "{\"error\":{\"code\":\"ENOMEM\",\"message\":\"no memory for the answer\"}}\n"};
  }
}

Reply Api::route(std::string_view method, std::string_view path, std::string_view body) const {
  if (path == kVersion) {
    return method == "GET" ? ok_reply({{"version", version()}}) : wrong_method(method, path, "GET");
  }
  if (path == kDevices) {
    if (method != "GET") {
      return wrong_method(method, path, "GET");
    }
    ordered_json devices = ordered_json::array();
    for (const DeviceEntry& entry : directory_.list()) {
      devices.push_back(object_of(entry));
    }
    return ok_reply(devices);
  }
  if (path.starts_with(kDevices) && path.size() > kDevices.size() + 1 &&
      path[kDevices.size()] == '/') {
    const std::string_view name = path.substr(kDevices.size() + 1);
    const auto entry = directory_.find(name);
    if (!entry) {
      return error_reply(
          404, "ENOENT",
          "device \"" + std::string(name) + "\": there is none of this name; see GET /v1/devices");
    }
    if (method == "GET") {
      return ok_reply(object_of(*entry));
    }
    return method == "PATCH" ? patch_device(*entry, body)
                             : wrong_method(method, path, "GET or PATCH");
  }
  return error_reply(
      404, "ENOENT",
      "\"" + std::string(path) + "\": expected /v1/version, /v1/devices or /v1/devices/NAME");
}

}  // namespace uzram::control
