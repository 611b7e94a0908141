// Checksums of what the pool holds, for devices that have them.
//
// Role: steps 5 and 6 of both ways of the data path: a sum is taken of what is stored, and compared
// before it is decoded. Objects and fill words in slots carry theirs behind their bytes, within the
// size of the entry. A raw page fills its room, so its sum is beside the pool, at a place of the
// table file that follows from that of the page: PlaceSums. docs/decisions/checksum.md has the reasons.
// Units: bytes; Place as in format.hpp.
// Errors: take_room: no_space.
// Threads: a sum belongs to the owner of the room it is of: whoever was given the room, then whoever
// holds the lock of the entry.
// Invariants: a sum is in place before the entry that it belongs to is published.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "uzram/error.hpp"

#include "base/crc32c.hpp"
#include "engine/format.hpp"
#include "engine/span.hpp"
#include "os/memory_file.hpp"

namespace uzram::engine {

inline constexpr std::uint32_t kSumBytes = 4;

// Puts the sum of the first `size` bytes behind them; returns the size with it.
inline std::uint32_t append_sum(std::byte* bytes, std::uint32_t size) noexcept {
  const std::uint32_t sum = crc32c({bytes, size});
  std::memcpy(bytes + size, &sum, sizeof sum);
  return size + kSumBytes;
}

// Whether bytes that append_sum has completed are what they were.
inline bool sum_holds(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() <= kSumBytes) {
    return false;
  }
  const std::span<const std::byte> summed = bytes.first(bytes.size() - kSumBytes);
  std::uint32_t sum = 0;
  std::memcpy(&sum, summed.data() + summed.size(), sizeof sum);
  return sum == crc32c(summed);
}

class PlaceSums {
 public:
  // One for each system page of the pool.
  static constexpr std::uint64_t kBytesPerSpan = kSpanBytes / os::kSystemPage * kSumBytes;
  // Of the largest pool; what is not taken is a hole of the file.
  static constexpr std::uint64_t kBytes =
      std::uint64_t{kMaxChunks} * kSpansPerChunk * kBytesPerSpan;

  // They lie at `offset` of `file`, which is mapped at `memory` there. Both outlive this.
  PlaceSums(const os::MemoryFile& file, std::uint64_t offset, std::byte* memory) noexcept
      : file_(file), offset_(offset), memory_(memory) {}

  // A range of the sums, in bytes from the first.
  struct Range {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
  };
  // What is to be taken so that spans up to `count` of a chunk have sums when those up to `known` do.
  static Range room_for(std::uint32_t chunk, std::uint32_t known, std::uint32_t count) noexcept;
  // Takes memory for a range.
  Errc take_room(const Range& range) const noexcept;

  // REQUIRES: memory for the span of `place` has been taken; a raw page is or will be there.
  [[nodiscard]] std::uint32_t load(Place place) const noexcept {
    std::uint32_t sum = 0;
    std::memcpy(&sum, memory_ + offset_of(place), sizeof sum);
    return sum;
  }
  void store(Place place, std::uint32_t sum) const noexcept {
    std::memcpy(memory_ + offset_of(place), &sum, sizeof sum);
  }

 private:
  static std::uint64_t offset_of(Place place) noexcept {
    return place / (os::kSystemPage / kPlaceUnit) * kSumBytes;
  }

  const os::MemoryFile& file_;
  const std::uint64_t offset_;
  std::byte* const memory_;
};

}  // namespace uzram::engine
