// The pages suite: pages of real programs through each algorithm.
//
// For each corpus, algorithm, block size and number of jobs: fill a fresh device, overwrite every page
// by another one, read in order and at random. Jobs share the device between them. With the target
// "codec" among them, every row says how far it is from the bare codec.
#include "bench/suite_parts.hpp"

namespace uzram::bench {
namespace {

constexpr Defaults kDefaults = {"codec,engine", "512M", "1", "4K", "1", "1", "0"};

std::vector<Phase> phases_of(const Settings& settings, std::uint32_t jobs,
                             std::uint64_t block_size) {
  Phase phase = phase_of(settings, jobs, block_size);
  divide_device(settings, phase);
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
  return plan_of_pages(options, kDefaults, phases_of);
}

}  // namespace uzram::bench
