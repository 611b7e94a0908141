// The data sets of a run, from options.
//
// Role: --corpus and --buffer-… become DataSets; without any, pages of this machine's memory do.
// Errors: name the option, file or process at fault.
// Threads: one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "uzram/error.hpp"

#include "bench/data.hpp"

namespace uzram::bench {

// As given; empty or none: not given. Values stay text so that all are refused in one form.
struct DataOptions {
  // A folder of *.pages and *.pages.zst, or one such file.
  std::string corpus;
  // fio's buffer_pattern, "0x…" hexadecimal or "\"text\"".
  std::string buffer_pattern;
  // fio's buffer_compress_percentage, 0 to 100, and its chunk (default 512).
  std::string buffer_compress_percentage;
  std::string buffer_compress_chunk;
  // That many of 100 pages are same-filled; the others are as the other options say, or random.
  std::string buffer_same_percentage;
  bool buffer_random = false;

  [[nodiscard]] bool empty() const noexcept {
    return corpus.empty() && buffer_pattern.empty() && buffer_compress_percentage.empty() &&
           buffer_compress_chunk.empty() && buffer_same_percentage.empty() && !buffer_random;
  }
};

// The sets that `options` asks for; for each corpus one, sorted by name. REQUIRES: not empty().
// Errors: invalid_argument (values, options that exclude each other), not_found, system.
[[nodiscard]] Result<DataSets> make_data_sets(const DataOptions& options);

// A sample of this machine's memory, taken now: one set called "machine".
[[nodiscard]] Result<std::shared_ptr<const DataSet>> sample_machine();

// For suites' defaults.
[[nodiscard]] Result<std::shared_ptr<const DataSet>> pattern_data(std::string_view pattern);
[[nodiscard]] Result<std::shared_ptr<const DataSet>> compressible_data(std::uint32_t percentage);
[[nodiscard]] Result<std::shared_ptr<const DataSet>> random_data();

}  // namespace uzram::bench
