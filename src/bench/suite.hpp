// Suites: the experiments, from options to a Plan.
//
// Role: each suite knows the parameters of its experiment and lays out groups and phases; nothing
// here runs anything but what the data and the defaults need (sampling, asking what the kernel has).
// Units: bytes, seconds.
// Errors: invalid_argument or unsupported, naming option and value; those of the data.
// Threads: one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "uzram/error.hpp"

#include "bench/data_options.hpp"
#include "bench/plan.hpp"

namespace uzram::bench {

// As given; empty: the suite's default.
struct SuiteOptions {
  std::vector<std::string> targets;
  std::string algorithms;
  std::string size;
  std::string jobs;
  std::string block_sizes;
  std::string iodepth;
  std::string runtime;
  std::string loops;
  std::string rounds;
  std::string modes;
  std::string streams;
  std::string methods;
  std::string ops;
  std::string tree;
  std::string verify;
  bool latency = false;
  // The user agrees that block devices and exports are overwritten.
  bool yes = false;
  DataOptions data;
};

struct SuiteInfo {
  std::string_view name;
  std::string_view help;
  Result<Plan> (*plan)(const SuiteOptions& options);
};

[[nodiscard]] std::span<const SuiteInfo> suites() noexcept;
// REQUIRES: `name` is one of suites(). Also makes sure that every target may be written to.
[[nodiscard]] Result<Plan> make_plan(std::string_view name, const SuiteOptions& options);

[[nodiscard]] Result<Plan> plan_streams(const SuiteOptions& options);
[[nodiscard]] Result<Plan> plan_async(const SuiteOptions& options);
[[nodiscard]] Result<Plan> plan_nowait(const SuiteOptions& options);
[[nodiscard]] Result<Plan> plan_discard(const SuiteOptions& options);
[[nodiscard]] Result<Plan> plan_pages(const SuiteOptions& options);
[[nodiscard]] Result<Plan> plan_ageing(const SuiteOptions& options);

}  // namespace uzram::bench
