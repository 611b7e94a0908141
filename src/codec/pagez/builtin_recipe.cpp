#include "codec/pagez/recipe.hpp"

namespace uzram::codec::pagez {
namespace {

struct TokenCodeData {
  std::array<std::uint8_t, kTokenClasses> width;
  std::uint32_t count;
  std::array<TokenId, kMaxTokenPlaces / 2> symbols;
};

#include "codec/pagez/builtin_recipe.inc"

}  // namespace

const Recipe& builtin_recipe() {
  static const Recipe recipe = [] {
    Recipe made;
    for (const TokenCodeData& code : kTokenCodes) {
      made.tokens.push_back(
          {code.width, {code.symbols.begin(), code.symbols.begin() + code.count}});
    }
    made.literals.assign(std::begin(kLiteralCodes), std::end(kLiteralCodes));
    return made;
  }();
  return recipe;
}

}  // namespace uzram::codec::pagez
