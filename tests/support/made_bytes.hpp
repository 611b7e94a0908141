// Bytes made by lot, the same ones for a seed.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.hpp"

namespace uzram::test {

inline std::vector<std::byte> random_bytes(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> bytes(size);
  Random(seed).fill(bytes);
  return bytes;
}

// Half random, half a repeated letter: compresses about 2:1.
inline std::vector<std::byte> compressible_bytes(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> bytes = random_bytes(size, seed);
  for (std::size_t at = 0; at < size; ++at) {
    if (at / 64 % 2 == 0) {
      bytes[at] = std::byte{'x'};
    }
  }
  return bytes;
}

}  // namespace uzram::test
