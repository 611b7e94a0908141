// Counts what the calling thread takes from the heap.
//
// Role: tests that a call allocates nothing. It works by replacing malloc and its kin in the
// program (with a sanitizer, by the sanitizer's hooks), so libraries are counted too.
#pragma once

#include <cstddef>

namespace uzram::test {

// Allocations of this thread since it began.
[[nodiscard]] std::size_t allocation_count() noexcept;

}  // namespace uzram::test
