// `uzram sample`: writes pages of processes' memory to a file.
//
// Threads: one.
// Errors: run_sample prints them to standard error.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "uzram/error.hpp"

#include "bench/corpus.hpp"
#include "bench/sample.hpp"

namespace uzram::cli {

// As given; none: not given.
struct SampleArguments {
  // Empty: all processes that the user may read.
  std::vector<std::string> pids;
  std::optional<std::string> pages;
  std::optional<std::string> size;
  std::string out;
  bool force = false;
};

struct SampleOptions {
  bench::SampleRequest request;
  bench::PageFile out;
  bool force = false;
};

// Errors: invalid_argument.
Result<SampleOptions> parse_sample_options(const SampleArguments& arguments);

// What is printed: how many pages, of which processes. Those with most pages come first; beyond the
// first few they are only counted.
std::string format_sample(const std::string& path, const bench::Sample& sample);

// Returns the exit code: 0, 1 for a failure.
int run_sample(const SampleOptions& options);

}  // namespace uzram::cli
