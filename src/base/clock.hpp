// The clock that durations are measured by.
//
// Threads: any. Cost: some 25 ns, no system call.
#pragma once

#include <chrono>
#include <cstdint>

namespace uzram {

// Nanoseconds of the steady clock.
[[nodiscard]] inline std::int64_t now_ns() noexcept {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

}  // namespace uzram
