// Sizes as people write and read them.
//
// Role: options, attributes and listings. Units are binary: K is 1024.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "uzram/error.hpp"

namespace uzram {

// Parses what zram's disksize takes: a decimal number and at most one of K M G T P, either case,
// with an optional "iB" or "B" after it ("512M", "1GiB", "4096"). `what` names the option in the
// message. Errors: invalid_argument when it is not of that form or does not fit 64 bits.
Result<std::uint64_t> parse_size(std::string_view what, std::string_view text);

// zramctl's form: one decimal and a unit letter, no decimal when it is 0: "4K", "1.5G", "12B".
std::string format_size(std::uint64_t bytes);

// REQUIRES: multiple is not 0.
constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace uzram
