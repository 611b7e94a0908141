// RandomOrder: a permutation of the numbers below n, without a table.
//
// Role: random access that visits every block once in each pass, as fio's random map does.
// Method: an invertible mixing of the numbers below the next power of two (exclusive-or with a key,
// shifts, multiplications by odd numbers); a result of n or more is mixed again until it is below n.
// Cost: a few nanoseconds, no memory.
// Threads: immutable.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace uzram::bench {

class RandomOrder {
 public:
  // REQUIRES: n >= 1.
  RandomOrder(std::uint64_t n, std::uint64_t seed) noexcept
      : n_(n),
        mask_(std::bit_ceil(n) - 1),
        shift_(std::max(1, static_cast<int>(std::bit_width(mask_)) / 2)),
        key_(seed * 0x9e3779b97f4a7c15U + 0x632be59bd9b4e019U) {}

  // REQUIRES: i < n.
  [[nodiscard]] std::uint64_t at(std::uint64_t i) const noexcept {
    do {
      i = mix(i);
    } while (i >= n_);
    return i;
  }

 private:
  [[nodiscard]] std::uint64_t mix(std::uint64_t x) const noexcept {
    x ^= key_ & mask_;
    x ^= x >> shift_;
    x = x * 0xbf58476d1ce4e5b9U & mask_;
    x ^= x >> shift_;
    x = x * 0x94d049bb133111ebU & mask_;
    x ^= x >> shift_;
    x = (x + (key_ >> 32U)) & mask_;
    return x;
  }

  std::uint64_t n_;
  std::uint64_t mask_;
  int shift_;
  std::uint64_t key_;
};

}  // namespace uzram::bench
