// Whether a plan fits the machine.
//
// Role: all targets of a group hold their data at once; a kernel device that takes too much brings
// the whole machine down, so that is found out before.
// Units: bytes.
// Errors: no_space, naming what is needed, what there is and what to do.
// Threads: pure functions, but for reading what is free.
#pragma once

#include "bench/plan.hpp"

namespace uzram::bench {

// The share of its size that a page of `data` takes when lz4 has compressed it, 0 to 1, from up to
// 256 of its pages.
[[nodiscard]] double stored_share(const DataSet& data);

// What one target takes of this machine's memory when it holds `size_bytes` of `data`.
[[nodiscard]] double memory_needed(const TargetConfig& target, std::uint64_t size_bytes,
                                   const DataSet& data);

// What may be taken now.
[[nodiscard]] std::uint64_t memory_available();

[[nodiscard]] Result<void> check_memory(const Plan& plan);

}  // namespace uzram::bench
