// The pagez format: what its tokens, offsets and header are. docs/pagez-format.md says it in words.
//
// Role: constants and conversions that the trainer, the encoders and the decoders share.
// Units: bytes and bits as named. Page sizes are powers of two from 4096 to 65536 bytes.
// Threads: pure functions.
// Source: own design; classes of symbols of equal width in place of Huffman codes follow the idea
// of "tabled" or "escape" codes, laid out so that all lengths are known before any symbol is read.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace uzram::codec::pagez {

// What a match copies from.
enum class Source : std::uint8_t {
  zero = 0,       // zero bytes
  repeat = 1,     // the offset of the last match that had one
  aligned_3 = 2,  // a multiple of 8 up to 64
  aligned_6 = 3,  // a multiple of 8 up to 512
  aligned_9 = 4,  // any other multiple of 8
  any_8 = 5,      // up to 256
  any_12 = 6,     // any other
};
inline constexpr unsigned kSources = 7;

inline constexpr unsigned kMinPageBits = 12;
inline constexpr unsigned kMaxPageBits = 16;

// Bits that follow for an offset. Four of them fit a 64-bit word that begins inside a byte.
constexpr unsigned offset_bits(Source source, unsigned page_bits) noexcept {
  constexpr unsigned kMostBits = 14;
  switch (source) {
    case Source::zero:
    case Source::repeat:
      return 0;
    case Source::aligned_3:
      return 3;
    case Source::aligned_6:
      return 6;
    case Source::aligned_9:
      return page_bits - 3;
    case Source::any_8:
      return 8;
    case Source::any_12:
      return page_bits < kMostBits ? page_bits : kMostBits;
  }
  return 0;
}
constexpr bool is_aligned(Source source) noexcept {
  return source == Source::aligned_3 || source == Source::aligned_6 || source == Source::aligned_9;
}
constexpr bool has_offset(Source source) noexcept { return source >= Source::aligned_3; }

inline constexpr std::uint32_t kMinMatch = 4;
// Of one token. A longer match goes on in further tokens.
inline constexpr std::uint32_t kMaxMatch = 64;
inline constexpr std::uint32_t kMaxLiterals = 32;
// The most that a token with a match has.
inline constexpr std::uint32_t kMaxLiteralsOfMatch = 15;
// Long matches are 128 << 0 ... 128 << 4 bytes.
inline constexpr std::uint32_t kLongMatch = 128;
inline constexpr std::uint32_t kLongMatches = 5;
inline constexpr std::uint32_t kMaxLongMatch = kLongMatch << (kLongMatches - 1);

// `literals` bytes are copied, then `match` bytes.
struct Token {
  std::uint32_t literals = 0;
  std::uint32_t match = 0;
  Source source = Source::zero;
};

// Tokens are numbered: 4 bits literals, 6 bits match - 1, then the source. The slots of matches
// shorter than kMinMatch hold the other tokens: slot 0 of `zero` is literals alone, 1 to 16; slot 1
// is 32 literals alone; slot 2 of `zero` and `repeat` are the long matches.
using TokenId = std::uint16_t;
inline constexpr std::uint32_t kTokenIds = kSources << 10;

constexpr TokenId match_id(std::uint32_t literals, std::uint32_t match, Source source) noexcept {
  return static_cast<TokenId>(literals | (match - 1) << 4 |
                              static_cast<std::uint32_t>(source) << 10);
}
// REQUIRES: 1 <= literals <= 16, or 32.
constexpr TokenId literals_id(std::uint32_t literals) noexcept {
  return static_cast<TokenId>(literals == kMaxLiterals ? 1U << 4 : literals - 1);
}
constexpr TokenId long_match_id(std::uint32_t step, Source source) noexcept {
  return static_cast<TokenId>(step | 2U << 4 | static_cast<std::uint32_t>(source) << 10);
}

// Whether a token has that number; `token` is set if so.
constexpr bool token_of(std::uint32_t id, Token& token) noexcept {
  if (id >= kTokenIds) {
    return false;
  }
  const std::uint32_t low = id & 15;
  const std::uint32_t slot = id >> 4 & 63;
  const auto source = static_cast<Source>(id >> 10);
  if (slot + 1 >= kMinMatch) {
    token = {low, slot + 1, source};
    return true;
  }
  if (slot == 2 && source <= Source::repeat && low < kLongMatches) {
    token = {0, kLongMatch << low, source};
    return true;
  }
  if (source == Source::zero && (slot == 0 || (slot == 1 && low == 0))) {
    token = {slot == 0 ? low + 1 : kMaxLiterals, 0, source};
    return true;
  }
  return false;
}

// Tokens that every code has: all others can be said by two of them.
constexpr bool is_basic(const Token& token) noexcept {
  return token.literals == 0 || token.match == 0;
}

// Symbols are ranked by how often they occur and lie in classes; a class of width w has 2^w of them.
inline constexpr unsigned kTokenClassBits = 4;
inline constexpr unsigned kTokenClasses = 1U << kTokenClassBits;
inline constexpr unsigned kMaxTokenWidth = 12;
inline constexpr unsigned kMinLiteralClassBits = 2;
inline constexpr unsigned kMaxLiteralClassBits = 4;
inline constexpr unsigned kMaxLiteralClasses = 1U << kMaxLiteralClassBits;
inline constexpr unsigned kMaxLiteralWidth = 7;
// Of all widths of a token code, as 2^w.
inline constexpr std::uint32_t kMaxTokenPlaces = 8192;

inline constexpr unsigned kMaxTokenCodes = 8;
// The second half of them is for differences.
inline constexpr unsigned kMaxLiteralCodes = 32;
// In place of a literal code: bytes as they are.
inline constexpr std::uint32_t kPlainLiterals = 63;

// The offset before the first match.
inline constexpr std::uint32_t kFirstOffset = 8;

// Header, from the lowest bit: tokens (page_bits - 1), generation (4), token code (3), literal code
// (6). No tokens: the page follows as it is.
struct ObjectHeader {
  std::uint32_t tokens = 0;
  std::uint32_t generation = 0;
  std::uint32_t token_code = 0;
  std::uint32_t literal_code = 0;
};
inline constexpr unsigned kGenerationBits = 4;
inline constexpr std::uint32_t kGenerations = 1U << kGenerationBits;

constexpr std::uint32_t max_tokens(unsigned page_bits) noexcept {
  return (1U << (page_bits - 1)) - 1;
}
constexpr std::uint32_t header_bytes(unsigned page_bits) noexcept {
  return page_bits == kMinPageBits ? 3 : 4;
}
constexpr std::uint32_t pack_header(const ObjectHeader& header, unsigned page_bits) noexcept {
  return header.tokens | (header.generation | header.token_code << 4 | header.literal_code << 7)
                             << (page_bits - 1);
}
constexpr ObjectHeader unpack_header(std::uint32_t bits, unsigned page_bits) noexcept {
  const std::uint32_t rest = bits >> (page_bits - 1);
  return {bits & max_tokens(page_bits), rest & (kGenerations - 1), rest >> 4 & 7, rest >> 7 & 63};
}

}  // namespace uzram::codec::pagez
