// The CPUs this process may use.
//
// Role: per-CPU structures are sized and indexed by it. Threads: any. Cost: current_cpu is a few
// nanoseconds (glibc reads the kernel's restartable-sequence area).
#pragma once

#include <cstdint>

namespace uzram {

// CPUs in this process's affinity mask, at least 1. Read at every call.
[[nodiscard]] std::uint32_t usable_cpus() noexcept;

// The CPU the caller runs on at this moment; it may have moved when this returns. The numbers are
// the machine's, so they may exceed usable_cpus(): take them modulo the size of the structure.
[[nodiscard]] std::uint32_t current_cpu() noexcept;

}  // namespace uzram
