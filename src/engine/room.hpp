// Room: leave to take memory from the system.
//
// Role: at a control group's limit, and when the machine runs out, the kernel kills instead of
// returning an error. So table and pool ask here before they take memory, and a write fails in time.
// All devices of the process draw on the same guard.
// Units: bytes.
// Cost: reads the limits when the credit of the last reading is used up (tens of microseconds for
// every kCreditBytes taken), under a mutex. Slow path only.
// Threads: any. What has been granted and not been taken yet counts as taken, so that threads that
// ask at once cannot all be granted the same memory.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "base/mutex.hpp"
#include "os/memory_headroom.hpp"

namespace uzram::engine {

class Room {
 public:
  // The guard of this process. The first call opens the system's files; when that fails a warning is
  // logged and nothing is limited.
  static Room& process() noexcept;

  // `headroom` may be null: then nothing is limited.
  explicit Room(std::unique_ptr<os::MemoryHeadroom> headroom) noexcept
      : headroom_(std::move(headroom)) {}

  // Leave to take some memory, to be kept until it has been taken. False when it was refused.
  class Grant {
   public:
    Grant(Room* room, std::uint64_t bytes) noexcept : room_(room), bytes_(bytes) {}
    ~Grant() {
      if (room_ != nullptr) {
        room_->settle(bytes_);
      }
    }
    Grant(const Grant&) = delete;
    Grant& operator=(const Grant&) = delete;
    explicit operator bool() const noexcept { return room_ != nullptr; }

   private:
    Room* room_;
    std::uint64_t bytes_;
  };
  using Scope = os::MemoryHeadroom::Scope;
  [[nodiscard]] Grant ask(std::uint64_t bytes, Scope scope = Scope::system_too) noexcept;

 private:
  static constexpr std::uint64_t kCreditBytes = std::uint64_t{1} << 20;

  void settle(std::uint64_t bytes) noexcept;

  std::unique_ptr<os::MemoryHeadroom> headroom_;
  Mutex mutex_;
  // What may still be granted without reading the limits again.
  std::uint64_t credit_bytes_ UZRAM_GUARDED_BY(mutex_) = 0;
  std::uint64_t in_flight_bytes_ UZRAM_GUARDED_BY(mutex_) = 0;
};

}  // namespace uzram::engine
