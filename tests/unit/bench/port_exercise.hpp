// What a port to a device must do, for the tests of the targets that have such ports.
//
// Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "uzram/request.hpp"

#include "bench/target.hpp"

namespace uzram::bench::test {

using AlignedBytes = std::unique_ptr<std::byte, decltype(&std::free)>;

// Aligned to 4096 and filled with what `seed` makes of it; does not compress.
[[nodiscard]] AlignedBytes random_bytes(std::size_t size, std::uint64_t seed);

[[nodiscard]] Request make_request(Op op, std::uint64_t offset, std::uint64_t length,
                                   std::byte* buffer);

// Writes blocks of many lengths from the start of the target on, with up to `iodepth` of them in
// flight, flushes, and reads them back by other blocks. Needs 4 MiB. Adds failures to the test.
void check_round_trip(Target& target, std::uint32_t iodepth);

}  // namespace uzram::bench::test
