// Pages with a structure that tables made for programs' memory fit badly.
//
// Role: tests and benchmarks of training.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace uzram::test {

// Records of 20 bytes: one of a few rare letters many times, numbers of six bits, and pieces of
// earlier records at offsets that are no multiples of 8. The same seed gives the same pages.
[[nodiscard]] std::vector<std::vector<std::byte>> unusual_pages(std::size_t count,
                                                                std::uint64_t seed,
                                                                std::size_t page_bytes = 4096);

}  // namespace uzram::test
