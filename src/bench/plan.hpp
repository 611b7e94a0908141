// Plan: what a run does, as data.
//
// Role: a suite turns options into a Plan; the runner carries it out without knowing the suite.
// A plan is a list of groups; in each group all targets do the same phases, interleaved.
// Units: bytes, seconds.
// Threads: plain values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "bench/data.hpp"
#include "bench/target_config.hpp"

namespace uzram::bench {

enum class Access { read, write, read_write, discard, write_zeroes };

// One thing that all jobs of all targets of a group do.
struct Phase {
  // "fill", "write", "read", "randread", "randwrite", "rw", "randrw", "discard", "randdiscard" …
  std::string op;
  // What the range holds before: "holes", "stored", or empty where there is no choice.
  std::string state;
  Access access = Access::read;
  bool random = false;
  std::uint64_t block_size = 4096;
  std::uint32_t jobs = 1;
  std::uint32_t iodepth = 1;
  // Job j works on the job_bytes from j * job_stride on.
  std::uint64_t job_bytes = 0;
  std::uint64_t job_stride = 0;
  // How often it goes over its range; with a runtime, as long as that takes.
  std::uint32_t loops = 1;
  double runtime_s = 0;
  // Of the data that writes store, see data.hpp.
  std::uint32_t generation = 0;
  // Of random orders and mixes, beside what the phase is; the runner changes it each round.
  std::uint64_t seed = 0;
  // Untimed phases prepare and are not in the results.
  bool timed = true;
  // Take the time of every request.
  bool latency = false;
  // Compare what is read by its CRC32C.
  bool verify = false;
  // Each pass over the range finds it written: between passes it is, not timed.
  bool refill = false;
  // Nothing is asked of the targets for so long before it.
  double pause_s = 0;
  // Ask the target for a flush at the end, within the time.
  bool flush = false;
  // Another thread discards the whole device meanwhile: each pass lasts as long as that takes.
  // REQUIRES: refill.
  bool beside_discard = false;
};

// What a target does of a phase: one whose requests all come from one thread has that many more of
// them in flight there.
[[nodiscard]] inline Phase phase_for(const TargetConfig& target, Phase phase) noexcept {
  if (target.one_thread) {
    phase.iodepth *= phase.jobs;
    phase.job_bytes *= phase.jobs;
    phase.job_stride = 0;
    phase.jobs = 1;
  }
  return phase;
}

// Whether several jobs work on the same bytes.
[[nodiscard]] inline bool shares_range(const Phase& phase) noexcept {
  return phase.jobs > 1 && phase.job_stride < phase.job_bytes;
}

struct Group {
  std::shared_ptr<const DataSet> data;
  std::vector<TargetConfig> targets;
  // The first target of the run is not among them: there is nothing to give ratios to.
  bool lacks_first = false;
  // The first target has its rows in another group and is here to be compared with.
  bool first_is_repeated = false;
  std::uint64_t size_bytes = 0;
  std::vector<Phase> phases;
};

// Whether what phase `index` writes is to be known: it or one after it verifies.
[[nodiscard]] inline bool keeps_contents(const Group& group, std::size_t index) noexcept {
  return std::any_of(group.phases.begin() + static_cast<std::ptrdiff_t>(index), group.phases.end(),
                     [](const Phase& phase) { return phase.verify; });
}

// NOLINTNEXTLINE(bugprone-exception-escape): moving the library's JSON throws nothing
struct Plan {
  std::string suite;
  // As the results show them: the options in force.
  nlohmann::ordered_json parameters;
  std::uint32_t rounds = 5;
  std::vector<Group> groups;
  // What was left out and why, for people: "zram has no zstd".
  std::vector<std::string> notes;
};

}  // namespace uzram::bench
