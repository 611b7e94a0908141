// Contents for random operations: what real pages are made of, and what hurts.
//
// Role: model tests. Every sector can be told apart from every other by its stamp, except in the
// same-filled kinds. Threads: one Random per thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/random.hpp"

namespace uzram::test {

// Fills `bytes` (a multiple of 512) with one of: zeroes, a fill word of either form, a fill word
// that fits no entry, random bytes, text-like bytes at several densities.
inline void fill_with_content(Random& random, std::span<std::byte> bytes) {
  const std::uint64_t kind = random.below(10);
  if (kind < 3) {
    const std::uint64_t words[] = {0, 0x4141414141414141, random.next()};
    for (std::size_t i = 0; i < bytes.size(); i += 8) {
      std::memcpy(bytes.data() + i, &words[kind], 8);
    }
    return;
  }
  random.fill(bytes);
  if (kind < 5) {
    return;
  }
  // Runs of a letter between random bytes; the share decides how far a page shrinks.
  const std::size_t share = 8 + random.below(56);
  for (std::size_t i = 0; i < bytes.size(); i += 64) {
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(i), share, std::byte{'u'});
  }
}

}  // namespace uzram::test
