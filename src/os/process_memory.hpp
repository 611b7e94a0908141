// ProcessMemory: the pages of a process that a swap device would get.
//
// Role: samples of real memory. Those pages are the present ones of private mappings that are
// anonymous: not the page cache, nothing shared, locked or huge. They are found by /proc/PID/smaps
// and /proc/PID/pagemap and read by /proc/PID/mem. Where the kernel has no pagemap or does not let
// it be read, all pages of writable private mappings count; those never touched read as zeroes.
// Mappings of 1 TiB and more, the shadow memory of sanitizers, are left out: looking for their few
// pages would take minutes.
// The process runs on: a page is read as it is at that moment, and may be gone.
// Units: pages of 4096 bytes, whatever the system's page is.
// Ownership: holds one descriptor.
// Errors: not_found (no such process), system with EACCES (the user may not read it; says whose it
// is), system.
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "uzram/error.hpp"

namespace uzram::os {

inline constexpr std::size_t kProcessPage = 4096;

// Consecutive pages.
struct PageRun {
  std::uint64_t address = 0;
  std::uint64_t pages = 0;
};

class ProcessMemory {
 public:
  // Finds the pages as they are now. `proc` is where proc is mounted.
  static Result<std::unique_ptr<ProcessMemory>> open(pid_t pid, const std::string& proc = "/proc");
  ~ProcessMemory();
  ProcessMemory(const ProcessMemory&) = delete;
  ProcessMemory& operator=(const ProcessMemory&) = delete;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  // As the kernel knows it, printable.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  // In the order of addresses; none for a process that has ended, or a thread of the kernel.
  [[nodiscard]] const std::vector<PageRun>& runs() const noexcept { return runs_; }
  // Of all runs.
  [[nodiscard]] std::uint64_t pages() const noexcept { return pages_; }

  // Reads the page at `address`. False when it is gone. REQUIRES: kProcessPage bytes.
  [[nodiscard]] bool read(std::uint64_t address, std::span<std::byte> into) const noexcept;

 private:
  ProcessMemory() = default;

  pid_t pid_ = 0;
  int fd_ = -1;
  std::string name_;
  std::vector<PageRun> runs_;
  std::uint64_t pages_ = 0;
};

// All processes, ascending. Errors: system.
[[nodiscard]] Result<std::vector<pid_t>> list_processes(const std::string& proc = "/proc");

}  // namespace uzram::os
