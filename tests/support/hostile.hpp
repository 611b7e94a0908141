// Hostile inputs: pages made to hurt a compressor.
//
// Role: tests, fuzzers' seeds and benchmarks of the worst case.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace uzram::test {

struct HostilePage {
  // What it is, for messages: "single bit at 4095".
  std::string name;
  std::vector<std::byte> bytes;
};

// Zeroes, all ones, single bits, long runs, random bytes, random bytes with short or far matches,
// random bytes but for a compressible end, few distinct symbols, counters. The same for the same
// seed. REQUIRES: page_size_bytes is a multiple of 512.
[[nodiscard]] std::vector<HostilePage> hostile_pages(std::size_t page_size_bytes,
                                                     std::uint64_t seed);

}  // namespace uzram::test
