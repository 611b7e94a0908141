// Objects of pagez that no encoder makes.
//
// Role: what the decoders are compared on. A forged object is put together from the document like
// tests/support/pagez_reference.hpp, from tokens drawn by lot, and is often sound; a damaged one
// often is not.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.hpp"

namespace uzram::test {

// Tokens of any kind that make one page, with offsets, most of them to inside the page, and
// literals of any code; with the tables of the program. Some are about as large as their page. REQUIRES: page_bits is 12 to 16.
[[nodiscard]] std::vector<std::uint8_t> forged_pagez_object(Random& random, unsigned page_bits);

// `object` with one to three bits flipped, in the whole or near its start, or cut short, or longer.
// REQUIRES: object is not empty.
[[nodiscard]] std::vector<std::uint8_t> damaged_pagez_object(
    Random& random, const std::vector<std::uint8_t>& object);

}  // namespace uzram::test
