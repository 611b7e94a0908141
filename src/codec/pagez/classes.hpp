// Classes: the widths of classes that code given symbols in the fewest bits.
//
// Role: step of training.
// Threads: pure function.
// Cost: classes * symbols * (most_width + 1) steps.
#pragma once

#include <cstdint>
#include <vector>

namespace uzram::codec::pagez {

// `frequencies` by rank, the highest first. Class n takes the next 2^width[n] symbols, each of which
// costs width[n] bits besides the class. Returns `classes` widths that cover all symbols; empty when
// none do.
[[nodiscard]] std::vector<std::uint8_t> best_widths(const std::vector<double>& frequencies,
                                                    unsigned classes, unsigned most_width);

// Bits that ranks take with these widths, without the classes.
[[nodiscard]] double rank_bits(const std::vector<double>& frequencies,
                               const std::vector<std::uint8_t>& widths);

}  // namespace uzram::codec::pagez
