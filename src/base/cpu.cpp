#include "base/cpu.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include <sched.h>
#include <unistd.h>

namespace uzram {
namespace {

constexpr std::size_t kMaxCpus = std::size_t{1} << 16;

// The place of each CPU among those of an affinity mask.
struct CpuSlots {
  std::uint32_t count = 1;
  std::array<std::uint16_t, kMaxCpus> slot{};
};

// Calls visit(set, bytes) with this process's affinity mask, in a set large enough for the machine.
template <typename Visit>
void with_affinity(Visit visit) noexcept {
  for (std::size_t cpus = CPU_SETSIZE; cpus <= kMaxCpus; cpus *= 4) {
    cpu_set_t* const set = CPU_ALLOC(cpus);
    if (set == nullptr) {
      return;
    }
    const std::size_t bytes = CPU_ALLOC_SIZE(cpus);
    const bool known = sched_getaffinity(::getpid(), bytes, set) == 0;
    if (known) {
      visit(set, bytes);
    }
    CPU_FREE(set);
    if (known) {
      return;
    }
  }
}

const CpuSlots& cpu_slots() noexcept {
  static const CpuSlots slots = [] {
    CpuSlots made;
    std::uint32_t count = 0;
    with_affinity([&](const cpu_set_t* set, std::size_t bytes) {
      for (std::size_t cpu = 0; cpu < bytes * 8; ++cpu) {
        // A CPU outside the mask, should the mask change, shares the slot that comes next.
        made.slot[cpu] = static_cast<std::uint16_t>(count);
        count += CPU_ISSET_S(cpu, bytes, set) ? 1 : 0;
      }
    });
    made.count = std::max(count, 1U);
    return made;
  }();
  return slots;
}

}  // namespace

std::uint32_t usable_cpus() noexcept {
  int count = 0;
  with_affinity([&](const cpu_set_t* set, std::size_t bytes) { count = CPU_COUNT_S(bytes, set); });
  return static_cast<std::uint32_t>(std::max(count, 1));
}

std::uint32_t current_cpu_slot() noexcept {
  const CpuSlots& slots = cpu_slots();
  const int cpu = sched_getcpu();
  if (cpu < 0 || static_cast<std::size_t>(cpu) >= kMaxCpus) {
    return 0;
  }
  return std::min<std::uint32_t>(slots.slot[static_cast<std::size_t>(cpu)], slots.count - 1);
}

bool bind_to_cpu_slot(std::uint32_t slot) noexcept {
  bool bound = false;
  with_affinity([&](cpu_set_t* set, std::size_t bytes) {
    std::uint32_t passed = 0;
    for (std::size_t cpu = 0; cpu < bytes * 8; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes, set) && passed++ == slot) {
        CPU_ZERO_S(bytes, set);
        CPU_SET_S(cpu, bytes, set);
        bound = sched_setaffinity(0, bytes, set) == 0;
        return;
      }
    }
  });
  return bound;
}

void avoid_cpu_slot(std::uint32_t slot) noexcept {
  with_affinity([slot](cpu_set_t* set, std::size_t bytes) {
    std::uint32_t passed = 0;
    for (std::size_t cpu = 0; cpu < bytes * 8 && CPU_COUNT_S(bytes, set) > 1; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes, set) && passed++ == slot) {
        CPU_CLR_S(cpu, bytes, set);
        break;
      }
    }
    sched_setaffinity(0, bytes, set);
  });
}

void never_preempt_on_wakeup() noexcept {
  const sched_param none{};
  // Needs no privilege; refused by filters at most, and then things are as they were.
  sched_setscheduler(0, SCHED_BATCH, &none);
}

void run_when_idle() noexcept {
  const sched_param none{};
  sched_setscheduler(0, SCHED_IDLE, &none);
}

}  // namespace uzram
