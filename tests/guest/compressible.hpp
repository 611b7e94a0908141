// Memory whose pages compress to about a quarter of their size, and are known by their number.
//
// Role: what the programs of the guest write to memory and find again when it has been swapped.
// Threads: pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <sys/mman.h>

#include "base/random.hpp"

namespace uzram {

inline constexpr std::size_t kPageBytes = 4096;

// 1 KiB at random, the rest one word: what a page holds depends on its number and the round alone.
inline void fill_page(std::span<std::byte> page, std::uint64_t number, std::uint64_t round) {
  Random random(number * 1000 + round);
  random.fill(page.first(page.size() / 4));
  std::fill(page.begin() + static_cast<std::ptrdiff_t>(page.size() / 4), page.end(), random.byte());
}

// The number of the first page that is not as fill_page left it; pages.size() when all are.
inline std::size_t first_wrong_page(std::span<const std::byte> memory, std::uint64_t round) {
  std::byte expected[kPageBytes];
  const std::size_t pages = memory.size() / kPageBytes;
  for (std::size_t i = 0; i < pages; ++i) {
    fill_page(expected, i, round);
    if (!std::ranges::equal(expected, memory.subspan(i * kPageBytes, kPageBytes))) {
      return i;
    }
  }
  return pages;
}

inline void fill_memory(std::span<std::byte> memory, std::uint64_t round) {
  for (std::size_t i = 0; i < memory.size() / kPageBytes; ++i) {
    fill_page(memory.subspan(i * kPageBytes, kPageBytes), i, round);
  }
}

// Private memory of this process; empty when there is none.
inline std::span<std::byte> map_memory(std::size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? std::span<std::byte>() : std::span(static_cast<std::byte*>(at), bytes);
}

}  // namespace uzram
