// The CPUs this process may use.
//
// Role: per-CPU structures are sized and indexed by it.
// Threads: any.
// Cost: current_cpu is a few nanoseconds (glibc reads the kernel's restartable-sequence area).
#pragma once

#include <cstdint>

namespace uzram {

// CPUs in the affinity mask of this process (that of its first thread: others may be pinned), at
// least 1. Read at every call.
[[nodiscard]] std::uint32_t usable_cpus() noexcept;

// The number of the CPU the caller runs on at this moment, counted among the CPUs of the affinity
// mask as it was at the first call: below usable_cpus() as it was then. The caller may have moved
// when this returns.
[[nodiscard]] std::uint32_t current_cpu_slot() noexcept;

// Binds the calling thread to the CPU of that slot, counted as above. False when it cannot be: there
// is no such slot, or the system refuses.
bool bind_to_cpu_slot(std::uint32_t slot) noexcept;

// Lets the calling thread run on all CPUs of this process but that of the slot, however the thread
// that started it was bound; on all when there are no others.
void avoid_cpu_slot(std::uint32_t slot) noexcept;

// Has the calling thread wait for a CPU that is free, or for its turn, instead of taking one from a
// thread that runs when it wakes up (SCHED_BATCH).
void never_preempt_on_wakeup() noexcept;

// Has the calling thread run only when its CPU has next to nothing else to do (SCHED_IDLE).
void run_when_idle() noexcept;

}  // namespace uzram
