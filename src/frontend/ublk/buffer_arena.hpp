// BufferArena: memory for the data of requests while they are carried out.
//
// Role: under a queue. Requests in flight share one region, so that a queue costs what it works on, not
// its depth times the largest request.
// Units: bytes; what is handed out is a multiple of kUnitBytes and aligned to it.
// Ownership: owns the region; it is neither dumped nor inherited by fork.
// Errors: create: no_space.
// Threads: one at a time.
// Cost: a step for each run of taken units that is passed over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "uzram/error.hpp"

#include "os/memory_file.hpp"

namespace uzram::ublk {

class BufferArena {
 public:
  static constexpr std::size_t kUnitBytes = 4096;

  // All of its memory is taken now when `present`, else as it is used.
  // REQUIRES: bytes is a multiple of kUnitBytes, not 0.
  static Result<std::unique_ptr<BufferArena>> create(std::size_t bytes, bool present);

  // nullptr when there is no such piece now. REQUIRES: 0 < bytes <= size_bytes().
  [[nodiscard]] std::byte* take(std::size_t bytes) noexcept;
  // Takes back what take(bytes) gave.
  void give_back(const std::byte* piece, std::size_t bytes) noexcept;

  [[nodiscard]] std::size_t size_bytes() const noexcept { return region_.size(); }

 private:
  BufferArena(os::Mapping region, std::size_t units);

  // The first unit from `from` on that is taken, or that is not; the number of units if there is none.
  [[nodiscard]] std::size_t next(bool taken, std::size_t from) const noexcept;
  void mark(std::size_t first, std::size_t count, bool taken) noexcept;

  const os::Mapping region_;
  const std::size_t units_;
  // A bit for each unit, set when it is taken.
  std::vector<std::uint64_t> taken_;
};

}  // namespace uzram::ublk
