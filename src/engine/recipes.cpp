#include "engine/recipes.hpp"

#include <cstring>
#include <string>
#include <utility>

#include "codec/trainable.hpp"
#include "engine/format.hpp"

namespace uzram::engine {

static_assert(kRecipeSlots == codec::kMostGenerations);

Result<void> load_recipes(std::span<const std::byte> table_file, codec::Codec& codec) {
  const auto damaged = [](const std::string& what) {
    return Error{Errc::corrupt, 0, "recipes of the table file: " + what};
  };
  Header header = {};
  if (table_file.size() < sizeof header) {
    return damaged("the file has no whole header");
  }
  std::memcpy(&header, table_file.data(), sizeof header);
  if (header.recipe_count == 0) {
    return {};
  }
  codec::TrainableCodec* const trainable = codec.trainable();
  if (trainable == nullptr) {
    return damaged("there are some, but " + std::string(codec.name()) + " cannot be trained");
  }
  const std::uint64_t bytes = std::uint64_t{header.recipe_count} * header.recipe_slot_bytes;
  if (header.recipe_count > kRecipeSlots || header.recipes_offset > table_file.size() ||
      bytes > table_file.size() - header.recipes_offset) {
    return damaged("they do not lie in the file");
  }
  for (std::uint32_t at = 0; at < header.recipe_count; ++at) {
    const auto slot =
        table_file.subspan(header.recipes_offset + std::uint64_t{at} * header.recipe_slot_bytes,
                           header.recipe_slot_bytes);
    auto tables = trainable->load(slot);
    if (!tables) {
      return std::move(tables).error();
    }
    trainable->publish(*std::move(tables));
  }
  return {};
}

}  // namespace uzram::engine
