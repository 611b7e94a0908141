// Recipes: the trained tables that a device's files hold, for whoever reads them.
//
// Role: the load side of PageTable::add_recipe. A reader makes the codec that the header names, has
// it load the recipes, and can then decode every object.
// Errors: corrupt when header or recipes are damaged, whatever they hold; system (ENOMEM).
// Threads: pure but for the codec, which nobody else uses meanwhile.
#pragma once

#include <cstddef>
#include <span>

#include "uzram/error.hpp"

#include "codec/codec.hpp"

namespace uzram::engine {

// Publishes all recipes of the table file as the codec's generations. REQUIRES: the file begins with
// a header of this format, and the codec, of its priority 0, is fresh. After an error some may be
// published.
Result<void> load_recipes(std::span<const std::byte> table_file, codec::Codec& codec);

}  // namespace uzram::engine
