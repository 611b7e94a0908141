#include "support/pagez_objects.hpp"

#include <algorithm>
#include <array>

#include "codec/pagez/recipe.hpp"

namespace uzram::test {
namespace {

using codec::pagez::LiteralCode;
using codec::pagez::Recipe;
using codec::pagez::TokenCode;

class BitWriter {
 public:
  void put(std::uint32_t value, unsigned count) {
    for (unsigned bit = 0; bit < count; ++bit, ++used_) {
      if (used_ % 8 == 0) {
        bytes_.push_back(0);
      }
      bytes_.back() |= static_cast<std::uint8_t>(((value >> bit) & 1U) << (used_ % 8));
    }
  }
  void pad() { used_ = bytes_.size() * 8; }
  [[nodiscard]] std::vector<std::uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<std::uint8_t> bytes_;
  std::size_t used_ = 0;
};

struct Token {
  unsigned symbol_class = 0;
  unsigned width = 0;
  std::uint32_t rank = 0;
  std::uint32_t literals = 0;
  std::uint32_t match = 0;
  unsigned source = 0;
};

Token token_at(const TokenCode& code, std::uint32_t place) {
  Token token;
  token.source = 1;
  if (place < code.symbols.size()) {
    const std::uint32_t number = code.symbols[place];
    const std::uint32_t slot = number / 16 % 64;
    const std::uint32_t low = number % 16;
    token.source = number / 1024;
    token.literals = slot >= 3 ? low : slot == 0 ? low + 1 : slot == 1 ? 32 : 0;
    token.match = slot >= 3 ? slot + 1 : slot == 2 ? 128U << low : 0;
  }
  token.rank = place;
  while (token.rank >= 1U << code.width.at(token.symbol_class)) {
    token.rank -= 1U << code.width.at(token.symbol_class);
    ++token.symbol_class;
  }
  token.width = code.width.at(token.symbol_class);
  return token;
}

std::uint32_t place_of_longest_literals(const TokenCode& code) {
  return static_cast<std::uint32_t>(std::ranges::find(code.symbols, 16) - code.symbols.begin());
}

std::uint32_t places_of(const TokenCode& code) {
  std::uint32_t places = 0;
  for (const unsigned width : code.width) {
    places += 1U << width;
  }
  return places;
}

// Tokens for just `page_bytes`: some of any kind, then the largest that fit.
std::vector<Token> draw_tokens(Random& random, const TokenCode& code, std::uint32_t page_bytes) {
  const std::uint32_t places = places_of(code);
  std::vector<Token> tokens;
  std::uint32_t left = page_bytes;
  if (random.below(8) != 0) {
    // Something for the offsets to reach.
    tokens.push_back(token_at(code, place_of_longest_literals(code)));
    left -= tokens.back().literals;
  }
  for (std::uint64_t draws = random.below(300); draws != 0 && left != 0; --draws) {
    // Mostly of low ranks, which are the short ones to say.
    const std::uint64_t range = std::uint64_t{1} << random.below(13);
    const Token token = token_at(
        code, static_cast<std::uint32_t>(random.below(std::min<std::uint64_t>(places, range))));
    if (token.literals + token.match <= left) {
      left -= token.literals + token.match;
      tokens.push_back(token);
    }
  }
  std::vector<Token> all;
  for (std::uint32_t place = 0; place < code.symbols.size(); ++place) {
    all.push_back(token_at(code, place));
  }
  std::ranges::sort(all, std::greater(),
                    [](const Token& token) { return token.literals + token.match; });
  while (left != 0) {
    const auto fits = std::ranges::find_if(
        all, [&](const Token& token) { return token.literals + token.match <= left; });
    left -= fits->literals + fits->match;
    tokens.push_back(*fits);
  }
  return tokens;
}

unsigned offset_bits(unsigned source, unsigned page_bits) {
  const std::array<unsigned, 7> bits = {0, 0, 3, 6, page_bits - 3, 8, std::min(page_bits, 14U)};
  return bits.at(source);
}

void put_offsets(BitWriter& out, Random& random, const std::vector<Token>& tokens,
                 unsigned page_bits) {
  std::uint32_t before = 0;
  for (const Token& token : tokens) {
    before += token.literals;
    const unsigned bits = offset_bits(token.source, page_bits);
    const std::uint32_t unit = token.source <= 4 ? 8 : 1;
    // One in 2000 may lie before the page.
    const std::uint64_t limit = std::uint64_t{1} << bits;
    const std::uint64_t inside =
        random.below(2000) == 0 ? limit : std::clamp<std::uint64_t>(before / unit, 1, limit);
    out.put(static_cast<std::uint32_t>(random.below(inside)), bits);
    before += token.match;
  }
  out.pad();
}

void put_literals(BitWriter& out, Random& random, std::uint32_t count, const LiteralCode* code) {
  if (code == nullptr) {
    for (; count != 0; --count) {
      out.put(static_cast<std::uint32_t>(random.below(256)), 8);
    }
    return;
  }
  std::vector<unsigned> classes(count);
  for (unsigned& literal_class : classes) {
    literal_class = static_cast<unsigned>(random.below(1U << code->class_bits));
    out.put(literal_class, code->class_bits);
  }
  out.pad();
  for (const unsigned literal_class : classes) {
    out.put(static_cast<std::uint32_t>(random.next()), code->width.at(literal_class));
  }
}

std::size_t size_with_plain_literals(const std::vector<Token>& tokens, unsigned page_bits) {
  std::size_t rank_bits = 0;
  std::size_t offset_bits_sum = 0;
  std::size_t literals = 0;
  for (const Token& token : tokens) {
    rank_bits += token.width;
    offset_bits_sum += offset_bits(token.source, page_bits);
    literals += token.literals;
  }
  return (page_bits == 12 ? 3 : 4) + (tokens.size() + 1) / 2 + (rank_bits + 7) / 8 +
         (offset_bits_sum + 7) / 8 + literals;
}

// Tokens of no bytes until the object is about as large as its page.
void lengthen(std::vector<Token>& tokens, const TokenCode& code, unsigned page_bits) {
  const Token empty = token_at(code, places_of(code) - 1);
  const std::size_t page_bytes = std::size_t{1} << page_bits;
  while (empty.literals + empty.match == 0 && tokens.size() + 1 < page_bytes / 2 &&
         size_with_plain_literals(tokens, page_bits) < page_bytes) {
    const std::size_t missing = page_bytes - size_with_plain_literals(tokens, page_bits);
    tokens.insert(tokens.end(), std::min(missing / 2 + 1, page_bytes / 2 - 1 - tokens.size()),
                  empty);
  }
}

}  // namespace

std::vector<std::uint8_t> forged_pagez_object(Random& random, unsigned page_bits) {
  const Recipe& recipe = codec::pagez::builtin_recipe();
  const auto token_code = static_cast<std::uint32_t>(random.below(recipe.tokens.size()));
  std::vector<Token> tokens = draw_tokens(random, recipe.tokens[token_code], 1U << page_bits);
  const auto literal_code = static_cast<std::uint32_t>(random.below(recipe.literals.size()));
  const bool is_plain = random.below(4) == 0;
  if (is_plain && random.below(4) == 0) {
    lengthen(tokens, recipe.tokens[token_code], page_bits);
  }
  BitWriter out;
  out.put(static_cast<std::uint32_t>(tokens.size()), page_bits - 1);
  out.put(0, 4);
  out.put(token_code, 3);
  out.put(is_plain ? 63 : literal_code, 6);
  out.pad();
  std::uint32_t literals = 0;
  for (const Token& token : tokens) {
    out.put(token.symbol_class, 4);
    literals += token.literals;
  }
  out.pad();
  for (const Token& token : tokens) {
    out.put(token.rank, token.width);
  }
  out.pad();
  put_offsets(out, random, tokens, page_bits);
  put_literals(out, random, literals, is_plain ? nullptr : &recipe.literals[literal_code]);
  return out.take();
}

std::vector<std::uint8_t> damaged_pagez_object(Random& random,
                                               const std::vector<std::uint8_t>& object) {
  std::vector<std::uint8_t> damaged = object;
  switch (random.below(8)) {
    case 0:
      damaged.resize(random.below(object.size()));
      break;
    case 1:
      for (std::uint64_t more = random.below(4) + 1; more != 0; --more) {
        damaged.push_back(static_cast<std::uint8_t>(random.below(256)));
      }
      break;
    default:
      const std::size_t range =
          random.below(3) == 0 ? std::min<std::size_t>(object.size(), 16) : object.size();
      for (std::uint64_t flips = random.below(3) + 1; flips != 0; --flips) {
        damaged[random.below(range)] ^= static_cast<std::uint8_t>(1U << random.below(8));
      }
  }
  return damaged;
}

}  // namespace uzram::test
