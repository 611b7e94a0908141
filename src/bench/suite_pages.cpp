// The pages suite: pages of real programs through each algorithm.
//
// For each corpus, algorithm, block size and number of jobs: fill a fresh device, overwrite every page
// by another one, read in order and at random. Jobs share the device between them. With the target
// "codec" among them, every row says how far it is from the bare codec.
#include <utility>

#include "bench/suite_parts.hpp"

namespace uzram::bench {
namespace {

constexpr Defaults kDefaults = {"codec,engine", "512M", "1", "4K", "1", "1", "0"};

std::vector<Phase> phases_of(const Settings& settings, std::uint32_t jobs,
                             std::uint64_t block_size) {
  Phase phase;
  phase.jobs = jobs;
  phase.block_size = block_size;
  phase.iodepth = settings.iodepth;
  phase.latency = settings.latency;
  phase.verify = settings.verify;
  phase.job_bytes = settings.size_bytes / jobs / block_size * block_size;
  phase.job_stride = phase.job_bytes;
  std::vector<Phase> phases;
  phase.op = "fill";
  phase.access = Access::write;
  phases.push_back(phase);
  phase.loops = settings.loops;
  phase.runtime_s = settings.runtime_s;
  phase.op = "write";
  phase.generation = 1;
  phases.push_back(phase);
  phase.op = "read";
  phase.access = Access::read;
  phases.push_back(phase);
  phase.op = "randread";
  phase.random = true;
  phases.push_back(phase);
  return phases;
}

}  // namespace

Result<Plan> plan_pages(const SuiteOptions& options) {
  auto settings = read_settings(options, kDefaults);
  if (!settings) {
    return std::move(settings).error();
  }
  auto algorithms = read_algorithms(options, "lz4");
  if (!algorithms) {
    return std::move(algorithms).error();
  }
  auto data = data_or_machine(options);
  if (!data) {
    return std::move(data).error();
  }
  const std::vector<TargetConfig> targets = settings->targets;
  return make_groups(*std::move(settings), options, *data, *algorithms, targets, phases_of);
}

}  // namespace uzram::bench
