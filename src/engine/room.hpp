// Room: leave to take memory from the system.
//
// Role: at a control group's limit, and when the machine runs out, the kernel kills instead of
// returning an error. So table and pool ask here before they take memory, and a write fails in
// time. All devices of the process draw on the same guard. Units: bytes. Cost: reads the limits
// when the credit of the last reading is used up (tens of microseconds for every kCreditBytes
// taken), else one atomic subtraction. Slow path only. Threads: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "os/memory_headroom.hpp"

namespace uzram::engine {

class Room {
 public:
  // The guard of this process. The first call opens the system's files; when that fails a warning
  // is logged and nothing is limited.
  static Room& process() noexcept;

  // `headroom` may be null: then nothing is limited.
  explicit Room(std::unique_ptr<os::MemoryHeadroom> headroom) noexcept
      : headroom_(std::move(headroom)) {}

  // Whether `bytes` may be taken now.
  [[nodiscard]] bool may_take(std::uint64_t bytes) noexcept;

 private:
  static constexpr std::uint64_t kCreditBytes = std::uint64_t{1} << 20;

  std::unique_ptr<os::MemoryHeadroom> headroom_;
  // What may still be taken without reading the limits again.
  std::atomic<std::int64_t> credit_bytes_{0};
};

}  // namespace uzram::engine
