// Rows of results as cells of text, grouped as people compare them.
//
// Role: what the tables for people and the report have in common: which rows belong together, which
// columns they have, how numbers look.
// Units: in the headings; MB is 10^6 bytes, sizes of memory are binary (K is 1024).
// Threads: pure functions. A RowGroup points into the results it was made from.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "bench/results.hpp"

namespace uzram::bench {

// The rows of one data set, block size and depth, sorted by operation and number of jobs; rows that
// are compared with each other follow each other.
struct RowGroup {
  std::string corpus;
  std::uint64_t block_size = 0;
  std::uint32_t iodepth = 0;
  std::vector<const Row*> rows;
};
[[nodiscard]] std::vector<RowGroup> group_rows(const std::vector<Row>& rows);

// "4K blocks, iodepth 16".
[[nodiscard]] std::string shape_text(const RowGroup& group);
// "cc1plus, 4K blocks, iodepth 16, lz4, 1 job": what all its rows have in common.
[[nodiscard]] std::string group_text(const RowGroup& group);

// `text` without control characters, which could steer a terminal.
[[nodiscard]] std::string printable(std::string_view text);
// A string as it is, anything else as JSON.
[[nodiscard]] std::string value_text(const nlohmann::ordered_json& value);
// "read (holes)".
[[nodiscard]] std::string op_text(const Row& row);
// "zstd-3", or empty.
[[nodiscard]] std::string algorithm_text(const Row& row);
// Algorithms by name alone, so that one target's "lz4" and another's "lz4-1" are the same cell; with
// their level where a target has several of one name.
class AlgorithmNames {
 public:
  explicit AlgorithmNames(const std::vector<const Row*>& rows);
  [[nodiscard]] std::string of(const Row& row) const;

 private:
  std::set<std::string> with_level_;
};
// "1 job", "10 jobs".
[[nodiscard]] std::string jobs_text(std::uint32_t jobs);
// Three digits or more: "0.0123", "1.23", "123", "12345".
[[nodiscard]] std::string number_text(double number);
// A ratio of two: "0.98", "12.3", "0.0012".
[[nodiscard]] std::string factor_text(double factor);
// "950", "12.3k", "1.23M".
[[nodiscard]] std::string count_text(double count);
// number_text of minimum and maximum: "97.1-103".
[[nodiscard]] std::string range_text(const Spread& spread);
// Whether the range of the ratios contains 1.
[[nodiscard]] bool within_noise(const Spread& ratios);
// Whether all ratios are 1: those of the first target to itself.
[[nodiscard]] bool is_reference(const Spread& ratios);

// What the headings of these results mean, a line each.
[[nodiscard]] std::vector<std::string> legend(const std::vector<Row>& rows);
// {LABEL: "function call", …}: how requests get to each target.
[[nodiscard]] nlohmann::ordered_json paths_of(const std::vector<Row>& rows);

struct TextColumn {
  std::string heading;
  bool right = true;
};
struct TextTable {
  std::vector<TextColumn> columns;
  std::vector<std::vector<std::string>> rows;

  // Lines of aligned columns; empty without rows.
  [[nodiscard]] std::string text() const;
};

enum class TablePart { whole, speed, cost };
// Columns that are empty in all rows are left out; so are algorithm and jobs when all rows have the
// same, which group_text tells.
[[nodiscard]] TextTable result_table(const RowGroup& group, TablePart part);

// The latency of submissions, where it is another one than that of requests: a call that waits for
// the completion has one for both.
[[nodiscard]] std::optional<Latency> submission_alone(const Row& row);

enum class LatencyKind { request, submission };
// Rows with latencies only.
[[nodiscard]] TextTable latency_table(const RowGroup& group, LatencyKind kind);

// Rows with hardware counters only, a column for each counter.
[[nodiscard]] TextTable counter_table(const RowGroup& group);

}  // namespace uzram::bench
