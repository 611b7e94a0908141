// Recipe: what the tables of pagez are made of.
//
// Role: the output of training and the input of Tables; the built-in one is generated
// (builtin_recipe.inc), a device may train others.
// Units: widths in bits.
// Threads: values.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "uzram/error.hpp"

#include "codec/pagez/format.hpp"

namespace uzram::codec::pagez {

struct TokenCode {
  std::array<std::uint8_t, kTokenClasses> width{};
  // By rank: the classes' symbols one class after the other.
  std::vector<TokenId> symbols;
};

struct LiteralCode {
  std::uint8_t class_bits = 0;
  // Of 1 << class_bits classes.
  std::array<std::uint8_t, kMaxLiteralClasses> width{};
  std::array<std::uint8_t, 256> symbols{};
};

struct Recipe {
  std::vector<TokenCode> tokens;
  // An even number: the first half codes bytes, the second half differences.
  std::vector<LiteralCode> literals;
};

// Whether the format allows it: counts, widths, each symbol once, all basic tokens there.
// Errors: invalid_argument, which names what is wrong.
[[nodiscard]] Result<void> check(const Recipe& recipe);

// Trained on the programs of bench/train/collect.
[[nodiscard]] const Recipe& builtin_recipe();

}  // namespace uzram::codec::pagez
