// Results: the rows of a run and the file that holds them.
//
// Role: what the runner makes and every output (table, JSON, fio's lines, report, comparison)
// reads.
// Units: in the names; MB is 10^6 bytes. `ratio_to_first` is the speed against the first target of
// the same cell in the same round: above 1 is faster.
// Errors: reading a file names it, the place and what is expected.
// Threads: plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "uzram/error.hpp"

namespace uzram::bench {

// The values of the rounds, in their order.
class Spread {
 public:
  Spread() = default;
  explicit Spread(std::vector<double> values) : values_(std::move(values)) {}
  [[nodiscard]] const std::vector<double>& values() const noexcept { return values_; }
  [[nodiscard]] bool empty() const noexcept { return values_.empty(); }
  // REQUIRES: not empty().
  [[nodiscard]] double median() const;
  [[nodiscard]] double min() const;
  [[nodiscard]] double max() const;

 private:
  std::vector<double> values_;
};

struct Latency {
  std::uint64_t min_ns = 0;
  double avg_ns = 0;
  std::uint64_t p50_ns = 0;
  std::uint64_t p99_ns = 0;
  std::uint64_t p999_ns = 0;
  std::uint64_t max_ns = 0;
};

// One cell: a target, a data set, an operation, a number of jobs, a block size.
struct Row {
  std::string target;  // as given
  std::string label;   // unique among the targets of the cell
  std::string path;
  std::string algorithm;
  std::optional<int> level;
  std::string mode;
  std::optional<std::uint32_t> streams;
  std::string corpus;
  std::string op;
  std::string state;
  std::uint32_t threads = 1;
  std::uint32_t iodepth = 1;
  std::uint64_t block_size = 4096;
  std::uint32_t rounds = 0;

  Spread mb_per_s;
  Spread iops;
  Spread us_per_page;  // of wall time times nothing: elapsed microseconds / (bytes / 4096)
  Spread ratio_to_first;
  Spread ratio_to_codec;  // speed against the codec target of the cell; empty without one
  Spread elapsed_s;
  // Mixed operations: the two directions.
  Spread read_mb_per_s;
  Spread write_mb_per_s;

  // Medians over the rounds, of the generator and of the server together.
  double user_s = 0;
  double sys_s = 0;
  double context_switches = 0;
  // "cycles", "instructions", "cache_misses", "branch_misses", …; empty: unavailable.
  std::map<std::string, double> counters;

  // After the phase, of the last round; none where the target does not tell.
  std::optional<double> compr_ratio;  // orig_data_size / compr_data_size
  std::optional<double> mem_ratio;    // orig_data_size / mem_used_total
  std::optional<std::uint64_t> mem_used;
  std::optional<std::uint64_t> peak_memory;

  // All rounds together; where measured.
  std::optional<Latency> latency;         // from before the submission to the completion
  std::optional<Latency> submit_latency;  // of the submission alone
};

// NOLINTNEXTLINE(bugprone-exception-escape): moving the library's JSON throws nothing
struct ResultFile {
  // uzram's version, date (UTC, ISO 8601), CPU model, CPUs, memory_bytes, kernel.
  nlohmann::ordered_json machine;
  std::string suite;
  nlohmann::ordered_json parameters;
  std::vector<std::string> notes;
  // Stopped before all rounds of all groups were done.
  bool interrupted = false;
  std::vector<Row> rows;
};

// {"format": "uzram-bench-1", "machine", "suite", "parameters", "notes", "interrupted", "rows"}. A
// row is an object with the field names of the member names. A Spread is {"median", "min", "max",
// "values"}, an empty one null; a Latency is "latency_ns" or "submit_latency_ns" {"min", "avg",
// "p50", "p99", "p999", "max"} or null; empty counters are the string "unavailable".
[[nodiscard]] nlohmann::ordered_json to_json(const ResultFile& results);
// All fields must be there, null where unknown; unknown ones are ignored, and of a Spread only
// "values" is read. Errors: invalid_argument, naming the row (from 1) and field.
[[nodiscard]] Result<ResultFile> from_json(const nlohmann::ordered_json& json);
// The same from the text of a file, which may be anyone's: what is nested deeply or has very many
// members is refused. Errors: invalid_argument.
[[nodiscard]] Result<ResultFile> parse_results(std::string_view text);

// Errors: system, invalid_argument.
[[nodiscard]] Result<ResultFile> read_results(const std::string& path);
// Replaces the file in one step. Errors: system, invalid_argument (a folder).
[[nodiscard]] Result<void> write_results(const std::string& path, const ResultFile& results);
// Whether write_results could write there now, for before a long run: leaves everything as it was.
// Errors: those of write_results.
[[nodiscard]] Result<void> check_results_file(const std::string& path);

}  // namespace uzram::bench
