#include "base/cpu.hpp"

#include <algorithm>

#include <sched.h>

namespace uzram {

std::uint32_t usable_cpus() noexcept {
  // Masks of machines with more CPUs than cpu_set_t holds are asked for with growing sets.
  for (int cpus = CPU_SETSIZE; cpus <= (1 << 16); cpus *= 4) {
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(cpus));
    if (set == nullptr) {
      break;
    }
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(cpus));
    const int failed = sched_getaffinity(0, bytes, set);
    const int count = failed == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (failed == 0) {
      return static_cast<std::uint32_t>(std::max(count, 1));
    }
  }
  return 1;
}

std::uint32_t current_cpu() noexcept {
  const int cpu = sched_getcpu();
  return cpu < 0 ? 0 : static_cast<std::uint32_t>(cpu);
}

}  // namespace uzram
