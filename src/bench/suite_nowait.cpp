// The nowait experiment: requests finished in the submitter's context.
//
// First one job verifies a tenth of the device: random writes and then reads, 16 in flight. Then,
// on a device written once over (not timed), many jobs with 2 requests in flight each write and read
// all of it at random for a time. The rounds repeat it all.
#include <algorithm>
#include <utility>

#include "bench/suite_parts.hpp"

namespace uzram::bench {
namespace {

constexpr Defaults kDefaults = {"engine", "20G", "48", "4K", "2", "1", "60"};
constexpr std::uint32_t kVerifyDepth = 16;

Result<DataSets> data_of(const SuiteOptions& options) {
  if (!options.data.empty()) {
    return make_data_sets(options.data);
  }
  auto random = random_data();
  if (!random) {
    return std::move(random).error();
  }
  return DataSets{*std::move(random)};
}

void add_verify(const Settings& settings, std::uint64_t block_size, std::vector<Phase>& phases) {
  Phase phase;
  phase.op = "randwrite";
  phase.access = Access::write;
  phase.random = true;
  phase.block_size = block_size;
  phase.iodepth = std::max(settings.iodepth, kVerifyDepth);
  phase.job_bytes = std::max(block_size, settings.size_bytes / 10 / block_size * block_size);
  phase.latency = true;
  phases.push_back(phase);
  phase.op = "verify";
  phase.access = Access::read;
  phase.verify = true;
  phases.push_back(phase);
}

std::vector<Phase> phases_of(const Settings& settings, std::uint32_t jobs,
                             std::uint64_t block_size) {
  std::vector<Phase> phases;
  // One job, whatever --jobs says, so once is enough.
  if (jobs == settings.jobs.front()) {
    add_verify(settings, block_size, phases);
  }
  Phase fill;
  fill.op = "fill";
  fill.access = Access::write;
  fill.block_size = block_size;
  fill.job_bytes = settings.size_bytes / block_size * block_size;
  fill.timed = false;
  fill.generation = 1;
  phases.push_back(fill);
  Phase phase = fill;
  phase.op = "randwrite";
  phase.state = "stored";
  phase.random = true;
  phase.jobs = jobs;
  phase.iodepth = settings.iodepth;
  phase.loops = settings.loops;
  phase.runtime_s = settings.runtime_s;
  phase.latency = true;
  phase.timed = true;
  phase.generation = 2;
  phases.push_back(phase);
  phase.op = "randread";
  phase.access = Access::read;
  phase.verify = settings.verify;
  phases.push_back(phase);
  return phases;
}

}  // namespace

Result<Plan> plan_nowait(const SuiteOptions& given) {
  SuiteOptions options = given;
  if (options.modes.empty()) {
    options.modes = "nowait,async";
  }
  auto settings = read_settings(options, kDefaults);
  if (!settings) {
    return std::move(settings).error();
  }
  auto algorithms = read_algorithms(options, "lz4");
  auto modes = parse_words("--mode", options.modes);
  auto data = data_of(options);
  if (const Error* const error = first_error(algorithms, modes, data)) {
    return *error;
  }
  auto variants = with_variants(settings->targets, "mode", *modes);
  if (!variants) {
    return std::move(variants).error();
  }
  return make_groups(*std::move(settings), options, *data, *algorithms, *variants, phases_of);
}

}  // namespace uzram::bench
