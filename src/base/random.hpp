// Random: seeded pseudo-random data, the same on every machine and standard library.
//
// Role: made-up data of measurements and tests. The generator is SplitMix64, 8 bytes of state.
// Threads: one Random per thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace uzram {

class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(seed) {}

  [[nodiscard]] std::uint64_t next() noexcept {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31);
  }

  // A number in [0, limit); with the bias of the modulo. REQUIRES: limit != 0.
  [[nodiscard]] std::uint64_t below(std::uint64_t limit) noexcept { return next() % limit; }

  [[nodiscard]] std::byte byte() noexcept { return static_cast<std::byte>(next() >> 56); }

  void fill(std::span<std::byte> bytes) noexcept {
    while (!bytes.empty()) {
      const std::uint64_t word = next();
      const std::size_t count = bytes.size() < sizeof word ? bytes.size() : sizeof word;
      std::memcpy(bytes.data(), &word, count);
      bytes = bytes.subspan(count);
    }
  }

 private:
  std::uint64_t state_;
};

}  // namespace uzram
