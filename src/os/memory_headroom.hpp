// MemoryHeadroom: how many bytes this process may still take before something bad happens.
//
// Role: asked by the pool before it takes room from the system (step 6 of the data path, slow
// side). At the limit of a control group the kernel kills instead of returning an error, so the
// answer has to come before the memory is touched.
// What bounds it: the limits of the process's control group and of every ancestor that is visible
// (version 2: the lesser of memory.max and memory.high against memory.current; version 1:
// memory.limit_in_bytes against memory.usage_in_bytes; page cache of files counts as free), and
// MemAvailable of the whole system. The tightest one counts.
// Margin: kept below each bound for everything that is charged besides the pool (stacks, socket
// buffers, page tables, the kernel's per-CPU batches):
//   control group: 8 MiB + 1/16 of the limit, at most 1 GiB (24 MiB of 256 MiB);
//   system:        1/64 of MemTotal, at least 64 MiB, at most 1 GiB.
// Units: bytes.
// Ownership: holds descriptors of the files it reads until it is destroyed.
// Errors: only open() fails. Later, a group whose files are gone or not there yet (its memory
// controller is not enabled) bounds nothing until they appear; if MemAvailable cannot be read any
// more, the answer is 0.
// Threads: bytes() and tightest() may be called by any number of threads; an internal mutex
// serialises them.
// Cost: bytes() makes one pread for each file and takes nothing from the heap, unless the process
// was moved to another group since the last call. Tens of microseconds.
// Invariants: 1. Limits and use are read anew at every call. 2. Membership too: a process moved to
// another group is bounded by the new one from the next call on.
// The membership is that of the process that called open(), also when a forked child asks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "uzram/error.hpp"

namespace uzram::os {

class MemoryHeadroom {
 public:
  struct Paths {
    // Where proc is mounted; meminfo, self/cgroup and self/mountinfo are read below it.
    std::string proc = "/proc";
  };

  // Errors: system when PROC/meminfo cannot be read, unsupported when it has no MemTotal or
  // MemAvailable. Absent control groups are not an error.
  static Result<std::unique_ptr<MemoryHeadroom>> open(const Paths& paths);
  static Result<std::unique_ptr<MemoryHeadroom>> open() { return open(Paths{}); }
  ~MemoryHeadroom();
  MemoryHeadroom(const MemoryHeadroom&) = delete;
  MemoryHeadroom& operator=(const MemoryHeadroom&) = delete;

  // What may bound: everything, or control groups alone, for those whom the kernel does not let run
  // into the end of the system's memory.
  enum class Scope : std::uint8_t { system_too, groups };
  // Bytes that may be taken now, the margin already deducted; 0 when there is nothing left.
  [[nodiscard]] std::uint64_t bytes(Scope scope = Scope::system_too) noexcept;

  // What bounds bytes() now, for messages: "control group /x: 256M", "system memory: 24G".
  [[nodiscard]] std::string tightest() const;

 private:
  struct Impl;
  explicit MemoryHeadroom(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace uzram::os
