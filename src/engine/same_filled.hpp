// Same-filled pages: one 8-byte word, repeated.
//
// Role: step 4 of the data path.
// Cost: two loads for most pages; the C library's vectorised memcmp and memset for the rest.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

namespace uzram::engine {

// REQUIRES: page.size() is a multiple of 8 and at least 16.
inline bool same_filled(std::span<const std::byte> page, std::uint64_t& word) noexcept {
  std::uint64_t last = 0;
  std::memcpy(&word, page.data(), sizeof word);
  std::memcpy(&last, page.data() + page.size() - sizeof last, sizeof last);
  // The page equals itself shifted by a word exactly when all words are equal.
  return word == last &&
         std::memcmp(page.data(), page.data() + sizeof word, page.size() - sizeof word) == 0;
}

// Writes `word`, repeated, as it stands from byte `from` of a page on. REQUIRES: out is not empty.
inline void write_fill(std::uint64_t word, std::size_t from, std::span<std::byte> out) noexcept {
  constexpr std::uint64_t kByteOnes = 0x0101010101010101;
  if (word == (word & 0xff) * kByteOnes) {
    std::memset(out.data(), static_cast<int>(word & 0xff), out.size());
    return;
  }
  const std::size_t turn = from % sizeof word * 8;
  const std::uint64_t turned = turn == 0 ? word : word >> turn | word << (64 - turn);
  std::size_t done = 0;
  for (; done + sizeof turned <= out.size(); done += sizeof turned) {
    std::memcpy(out.data() + done, &turned, sizeof turned);
  }
  std::memcpy(out.data() + done, &turned, out.size() - done);
}

}  // namespace uzram::engine
