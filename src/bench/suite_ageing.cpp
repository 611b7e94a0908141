// The ageing suite: what is left of the memory ratio when a device has long been in use.
//
// For each corpus and algorithm: fill a fresh device, then overwrite its pages in random order by
// pages of other sizes, as many times over as the loops say. What counts is the memory after it: MEM
// beside COMPR, the pool beside the objects in it. Afterwards the device is read in random order, as
// holes have moved the objects about; targets that compact have had the time of a pause for it.
#include "bench/suite_parts.hpp"

namespace uzram::bench {
namespace {

constexpr Defaults kDefaults = {"engine", "512M", "1", "4K", "1", "20", "0"};
constexpr double kPauseSeconds = 2;

std::vector<Phase> phases_of(const Settings& settings, std::uint32_t jobs,
                             std::uint64_t block_size) {
  Phase phase = phase_of(settings, jobs, block_size);
  divide_device(settings, phase);
  std::vector<Phase> phases;
  phase.op = "fill";
  phase.access = Access::write;
  phases.push_back(phase);
  phase.op = "randwrite";
  phase.random = true;
  phase.generation = 1;
  phase.loops = settings.loops;
  phase.runtime_s = settings.runtime_s;
  phases.push_back(phase);
  phase.op = "randread";
  phase.state = "rested";
  phase.access = Access::read;
  phase.loops = 1;
  phase.runtime_s = 0;
  phase.pause_s = kPauseSeconds;
  phases.push_back(phase);
  return phases;
}

}  // namespace

Result<Plan> plan_ageing(const SuiteOptions& options) {
  return plan_of_pages(options, kDefaults, phases_of);
}

}  // namespace uzram::bench
