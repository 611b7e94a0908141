// The runner: carries out a plan.
//
// Role: rounds outside, groups within, in each group all targets opened anew and every phase done by
// all of them in turns: a phase is cut into up to kMostStretches stretches, and the targets
// alternate stretch by stretch, in the orders of turns.hpp. So what the machine does
// meanwhile meets all targets alike, and ratios within a round can be trusted.
// Errors: the first target or request that fails ends the run, with a message that names the target.
// Threads: one; jobs have threads of their own (crew.hpp).
#pragma once

#include <atomic>

#include "bench/plan.hpp"
#include "bench/results.hpp"

namespace uzram::bench {

inline constexpr std::uint32_t kMostStretches = 32;

// `stop`: set by a signal, ends the run early; the results then hold what was done and say so.
// `progress_fd`: where progress is shown if it is a terminal. `finished`: gets what had been
// measured when a run fails.
[[nodiscard]] Result<ResultFile> run_plan(const Plan& plan, const std::atomic<bool>& stop,
                                          int progress_fd, ResultFile* finished = nullptr);

}  // namespace uzram::bench
