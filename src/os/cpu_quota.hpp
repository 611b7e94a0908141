// How much CPU time the control group of this process allows.
//
// Role: how many workers are of use; asked anew from time to time while a device runs.
// What bounds it: the group of the process and every ancestor that is visible; the tightest counts.
// Version 2: cpu.max; version 1: cpu.cfs_quota_us and cpu.cfs_period_us.
// Units: CPUs; 1.5 is one and a half CPUs' time.
// Errors: none. A file that is missing, cannot be read or holds anything but what the kernel writes
// there does not limit; other groups still do. Without memory to read them nothing does.
// Threads: any. Cost: reads some files, and takes memory from the heap.
// Invariants: 1. The membership, the mounts and the limits are read anew at every call.
// Source: Linux, Documentation/admin-guide/cgroup-v2.rst and scheduler/sched-bwc.rst.
#pragma once

#include <optional>
#include <string>

namespace uzram::os {

// Nothing when nothing limits. `proc` is where proc is mounted; self/cgroup and self/mountinfo are
// read below it.
[[nodiscard]] std::optional<double> cpu_quota(const std::string& proc = "/proc") noexcept;

}  // namespace uzram::os
