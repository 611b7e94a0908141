#include "codec/pagez/tables.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "base/mutex.hpp"

namespace uzram::codec::pagez {
namespace {

constexpr std::uint8_t kTooManyBits = 60;

std::uint32_t entry_of(const Token& token, unsigned page_bits) {
  std::uint32_t entry = token.literals | token.match << Entry::kMatchShift |
                        offset_bits(token.source, page_bits) << Entry::kWidthShift;
  if (is_aligned(token.source)) {
    entry |= Entry::kAligned;
  }
  if (has_offset(token.source)) {
    entry |= Entry::kHasOffset;
  }
  if (token.source == Source::zero) {
    entry |= Entry::kZero;
  }
  if (token.literals + token.match > 64) {
    entry |= Entry::kWide;
  }
  return entry;
}

Error refused(const std::string& what) {
  return {Errc::invalid_argument, 0, "tables of pagez: " + what + "; train them anew"};
}

Result<void> check_tokens(const TokenCode& code) {
  std::uint32_t places = 0;
  for (const std::uint8_t width : code.width) {
    if (width > kMaxTokenWidth) {
      return refused("a class of tokens is wider than 12 bits");
    }
    places += 1U << width;
  }
  if (code.symbols.size() > places || places > kMaxTokenPlaces) {
    return refused("classes for " + std::to_string(places) + " tokens, expected " +
                   std::to_string(code.symbols.size()) + " to " + std::to_string(kMaxTokenPlaces));
  }
  // Its class and rank would be kNoCode.
  if (code.width.back() == kMaxTokenWidth && code.symbols.size() == places) {
    return refused("the last place of the last class is taken, which has no code");
  }
  std::vector<bool> seen(kTokenIds);
  for (const TokenId id : code.symbols) {
    Token token;
    if (!token_of(id, token) || seen[id]) {
      return refused("token " + std::to_string(id) + " is unknown or there twice");
    }
    seen[id] = true;
  }
  for (std::uint32_t id = 0; id < kTokenIds; ++id) {
    Token token;
    if (token_of(id, token) && is_basic(token) && !seen[id]) {
      return refused("token " + std::to_string(id) + " is missing");
    }
  }
  return {};
}

Result<void> check_literals(const LiteralCode& code) {
  if (code.class_bits < kMinLiteralClassBits || code.class_bits > kMaxLiteralClassBits) {
    return refused("class bits of literals: expected 2 to 4");
  }
  std::uint32_t places = 0;
  for (unsigned index = 0; index < 1U << code.class_bits; ++index) {
    if (code.width[index] > kMaxLiteralWidth) {
      return refused("a class of literals is wider than 7 bits");
    }
    places += 1U << code.width[index];
  }
  if (places < code.symbols.size()) {
    return refused("classes for fewer than 256 literals");
  }
  std::array<bool, 256> seen{};
  for (const std::uint8_t symbol : code.symbols) {
    if (std::exchange(seen[symbol], true)) {
      return refused("literal " + std::to_string(symbol) + " is there twice");
    }
  }
  return {};
}

}  // namespace

Result<void> check(const Recipe& recipe) {
  if (recipe.tokens.empty() || recipe.tokens.size() > kMaxTokenCodes) {
    return refused("expected 1 to 8 token codes");
  }
  if (recipe.literals.empty() || recipe.literals.size() > kMaxLiteralCodes ||
      recipe.literals.size() % 2 != 0) {
    return refused("expected an even number of literal codes, at most 32");
  }
  for (const TokenCode& code : recipe.tokens) {
    if (Result<void> right = check_tokens(code); !right) {
      return right;
    }
  }
  for (const LiteralCode& code : recipe.literals) {
    if (Result<void> right = check_literals(code); !right) {
      return right;
    }
  }
  return {};
}

Tables::Tables(const Recipe& recipe, unsigned page_bits)
    : page_bits_(page_bits),
      tokens_(recipe.tokens.size()),
      literals_(recipe.literals.size()),
      token_bits_(kTokenIds) {
  for (std::size_t at = 0; at < tokens_.size(); ++at) {
    fill_token_table(recipe.tokens[at], tokens_[at]);
  }
  for (std::size_t at = 0; at < literals_.size(); ++at) {
    fill_literal_table(recipe.literals[at], literals_[at]);
  }
  fill_token_bits();
  fill_literal_bits();
}

Result<std::shared_ptr<const Tables>> Tables::make(const Recipe& recipe, unsigned page_bits) {
  if (Result<void> right = check(recipe); !right) {
    return right.error();
  }
  try {
    return std::shared_ptr<const Tables>(new Tables(recipe, page_bits));
  } catch (const std::bad_alloc&) {
    return system_error("memory for the tables of pagez", ENOMEM);
  }
}

Result<std::shared_ptr<const Tables>> Tables::builtin(unsigned page_bits) {
  static Mutex mutex;
  static std::array<std::weak_ptr<const Tables>, kMaxPageBits + 1> made;
  const MutexLock lock(mutex);
  if (std::shared_ptr<const Tables> tables = made[page_bits].lock()) {
    return tables;
  }
  auto tables = make(builtin_recipe(), page_bits);
  if (tables) {
    made[page_bits] = *tables;
  }
  return tables;
}

void Tables::fill_token_table(const TokenCode& code, TokenTable& table) const {
  table.entry.fill(0);
  table.code.fill(kNoCode);
  std::uint32_t place = 0;
  std::size_t symbol = 0;
  for (unsigned index = 0; index < kTokenClasses; ++index) {
    const std::uint32_t count = 1U << code.width[index];
    table.width[index] = table.width[index + kTokenClasses] = code.width[index];
    table.base[index] = table.base[index + kTokenClasses] = static_cast<std::uint16_t>(place);
    table.mask[index] = static_cast<std::uint16_t>(count - 1);
    for (std::uint32_t rank = 0; rank < count && symbol < code.symbols.size(); ++rank, ++symbol) {
      Token token;
      static_cast<void>(token_of(code.symbols[symbol], token));
      table.entry[place + rank] = entry_of(token, page_bits_);
      table.code[code.symbols[symbol]] = static_cast<std::uint16_t>(index << kMaxTokenWidth | rank);
    }
    place += count;
  }
}

void Tables::fill_literal_table(const LiteralCode& code, LiteralTable& table) {
  table.class_bits = code.class_bits;
  table.width.fill(0);
  table.mask.fill(0);
  table.base.fill(0);
  table.symbol = code.symbols;
  std::uint32_t place = 0;
  for (unsigned index = 0; index < 1U << code.class_bits && place < 256; ++index) {
    const std::uint32_t count = 1U << code.width[index];
    table.width[index] = code.width[index];
    table.mask[index] = static_cast<std::uint8_t>(count - 1);
    table.base[index] = static_cast<std::uint8_t>(place);
    for (std::uint32_t rank = 0; rank < count && place + rank < 256; ++rank) {
      const std::uint8_t symbol = code.symbols[place + rank];
      table.class_of[symbol] = static_cast<std::uint8_t>(index);
      table.rank_of[symbol] = static_cast<std::uint8_t>(rank);
    }
    place += count;
  }
}

void Tables::fill_token_bits() {
  for (std::uint32_t id = 0; id < kTokenIds; ++id) {
    token_bits_[id].fill(kTooManyBits);
  }
  const auto bits = [this](std::size_t at, TokenId id) {
    const std::uint16_t code = tokens_[at].code[id];
    return kTokenClassBits + tokens_[at].width[code >> kMaxTokenWidth];
  };
  for (std::size_t at = 0; at < tokens_.size(); ++at) {
    for (std::uint32_t id = 0; id < kTokenIds; ++id) {
      Token token;
      if (!token_of(id, token)) {
        continue;
      }
      // A token that the code lacks is said by two.
      const unsigned needed = tokens_[at].code[id] != kNoCode
                                  ? bits(at, static_cast<TokenId>(id))
                                  : bits(at, literals_id(token.literals)) +
                                        bits(at, match_id(0, token.match, token.source));
      token_bits_[id][at] = static_cast<std::uint8_t>(needed);
    }
  }
}

void Tables::fill_literal_bits() {
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    literal_bits_[byte].fill(kTooManyBits);
    difference_bits_[byte].fill(kTooManyBits);
    for (std::uint32_t at = 0; at < literal_codes(); ++at) {
      const LiteralTable& table = literals_[at];
      const auto bits =
          static_cast<std::uint16_t>(table.class_bits + table.width[table.class_of[byte]]);
      if (at < first_difference_code()) {
        literal_bits_[byte][at] = bits;
      } else {
        difference_bits_[byte][at - first_difference_code()] = bits;
      }
    }
  }
}

}  // namespace uzram::codec::pagez
