// A target made slower on purpose.
//
// Role: shows whether a run can tell a known difference ("slowdown=5" of --target): after every few
// requests its ports wait for that share of the time the requests took.
// Threads: as Target and Port.
#pragma once

#include <memory>

#include "bench/target.hpp"

namespace uzram::bench {

[[nodiscard]] std::unique_ptr<Target> make_slow_target(std::unique_ptr<Target> target,
                                                       double percent);

}  // namespace uzram::bench
