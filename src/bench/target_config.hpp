// TargetConfig: one target of a run, from "engine:algorithm=zstd:level=3" and its like.
//
// Role: the only place that knows the syntax of --target.
// Errors: invalid_argument or unsupported, naming the target, the key and what is expected.
// Threads: pure functions; place_of looks at the files that a target names.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "uzram/error.hpp"

#include "control/device_option.hpp"

namespace uzram::bench {

enum class TargetKind { engine, codec, zram, block_device, nbd };

// How a block device is reached.
enum class IoPath {
  automatic,  // pread/pwrite for one request at a time, io_uring for more
  psync,      // pread/pwrite
  uring,
};

struct TargetConfig {
  TargetKind kind = TargetKind::engine;
  // As given.
  std::string given;
  // What tables call it; unique among the targets of a run, and says what a suite has varied:
  // "engine", "engine:streams=4", "engine#2".
  std::string label;
  // engine: all of it; codec and zram: algorithm and level. The size is the suite's.
  control::DeviceSettings device;
  // Whether the text of the target said so: then --algorithm and the suites leave it alone.
  bool algorithm_given = false;
  bool level_given = false;
  bool streams_given = false;
  bool mode_given = false;
  // The path of a block device or a file, or an NBD URI.
  std::string address;
  IoPath io = IoPath::automatic;
  // All jobs of a phase are done by one thread, with all their requests in flight.
  bool one_thread = false;
  // Waits this much longer than the work took, on purpose: to see whether a run can tell.
  double slowdown_percent = 0;
};

// One target: engine, codec, zram, each with ":KEY=VALUE" as often as wanted; a path that begins
// with "/", with ":io=…" and ":slowdown=…" only; a URI that begins with "nbd", without keys.
Result<TargetConfig> parse_target(std::string_view text);

// Targets separated by commas. Labels are made unique.
Result<std::vector<TargetConfig>> parse_targets(const std::vector<std::string>& lists);

// Appends "#2", "#3" … to labels that an earlier target has.
void make_labels_unique(std::vector<TargetConfig>& targets);

// Where the export of an NBD URI is.
struct NbdAddress {
  // A server on this machine: behind a Unix socket, or by TCP at localhost.
  bool local = false;
  // Of a Unix socket; else empty.
  std::string socket;
  // In lower case, without brackets; "localhost" for all its names.
  std::string host;
  std::string port;
  // Of the export, without a slash before it.
  std::string name;
};
[[nodiscard]] NbdAddress parse_nbd_address(std::string_view uri);

// Two targets with the same place are one device or export; empty for what is made for the run.
// What one server has under several names or addresses is not seen to be one.
[[nodiscard]] std::string place_of(const TargetConfig& config);

// Whether the compressor takes the level; the kernel's says so itself when it is opened.
Result<void> check_level(const TargetConfig& config);

// Sets one key as the text would: `algorithm`, `level`, `streams`, `mode`, `workers`, …; for the
// variants of suites. Appends it to the label.
Result<void> vary(TargetConfig& config, std::string_view key, std::string_view value);

}  // namespace uzram::bench
