// PerfCounters: hardware counters of one thread.
//
// Role: measurements. Counts cycles, instructions, cache misses and branch misses of the thread that
// made it, in the kernel as well where that is allowed, by perf_event_open.
// Errors: none; what the machine does not count (most virtual ones) is left out.
// Threads: all calls by the thread that made it, except counts(), which any may call once the
// thread has stopped counting.
// Cost: a system call for each counter at start and stop.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace uzram::os {

class PerfCounters {
 public:
  PerfCounters() noexcept;
  ~PerfCounters();
  PerfCounters(const PerfCounters&) = delete;
  PerfCounters& operator=(const PerfCounters&) = delete;

  void start() noexcept;
  void stop() noexcept;

  // By name ("cycles", "instructions", "cache_misses", "branch_misses"), from all starts to stops.
  // Empty: unavailable. Scaled up when the counter had to be shared with others.
  [[nodiscard]] std::map<std::string, double> counts() const;

 private:
  static constexpr std::size_t kEvents = 4;
  std::array<int, kEvents> descriptors_;
};

}  // namespace uzram::os
