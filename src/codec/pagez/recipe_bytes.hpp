// Recipes as bytes: how a device keeps the tables that it has trained.
//
// Role: docs/pagez-format.md, "Recipes of a device", says the same in words.
// Units: bytes.
// Errors: corrupt, for bytes that are no recipe, whatever they are.
// Threads: pure functions.
// Invariants: 1. A recipe that parse_recipe returns has passed check(). 2. It has one form in bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "uzram/error.hpp"

#include "codec/pagez/recipe.hpp"

namespace uzram::codec::pagez {

// Bytes of a recipe with so many codes, each token code of so many symbols.
[[nodiscard]] std::size_t recipe_size_bytes(std::size_t token_codes, std::size_t literal_codes,
                                            std::size_t symbols) noexcept;

// REQUIRES: check(recipe). Errors: bad_alloc.
[[nodiscard]] std::vector<std::byte> recipe_bytes(const Recipe& recipe);

// `bytes` may go on after the recipe. Errors: corrupt; bad_alloc.
[[nodiscard]] Result<Recipe> parse_recipe(std::span<const std::byte> bytes);

}  // namespace uzram::codec::pagez
