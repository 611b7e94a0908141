// How much CPU time the control group of this process allows.
//
// Role: how many workers are of use.
// What bounds it: the group of the process and every ancestor that is visible; the tightest counts.
// Version 2: cpu.max; version 1: cpu.cfs_quota_us and cpu.cfs_period_us.
// Errors: what cannot be read or understood does not limit.
// Threads: any. Cost: reads some files, and takes memory from the heap.
// Source: Linux, Documentation/admin-guide/cgroup-v2.rst and scheduler/sched-bwc.rst.
#pragma once

#include <optional>
#include <string>

namespace uzram::os {

// CPUs: 1.5 is one and a half CPUs' time. `proc` is where proc is mounted.
[[nodiscard]] std::optional<double> cpu_quota(const std::string& proc = "/proc") noexcept;

}  // namespace uzram::os
