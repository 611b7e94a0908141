// The ageing suite: what is left of the memory ratio when a device has long been in use.
//
// For each corpus and algorithm: fill a fresh device, then overwrite its pages in random order by
// pages of other sizes, as many times over as the loops say. What counts is the memory after it: MEM
// beside COMPR, the pool beside the objects in it. Afterwards the device is read in random order, as
// holes have moved the objects about; targets that compact have had the time of a pause for it.
#include <utility>

#include "bench/suite_parts.hpp"

namespace uzram::bench {
namespace {

constexpr Defaults kDefaults = {"engine", "512M", "1", "4K", "1", "20", "0"};
constexpr double kPauseSeconds = 2;

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
