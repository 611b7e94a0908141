// Tables: a recipe in the forms that encoders and decoders look things up in.
//
// Role: made once for a recipe and a page size; read by all streams.
// Units: bits, bytes.
// Errors: at set-up only.
// Threads: immutable.
// Cost: 50 KiB for each token code, 1.2 KiB for each literal code, 70 KiB besides; a page uses one
// code of each kind.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "uzram/error.hpp"

#include "codec/pagez/format.hpp"
#include "codec/pagez/recipe.hpp"

namespace uzram::codec::pagez {

// What a decoder needs of a token, in 32 bits: 8 literals, 12 match, 4 offset bits, flags.
struct Entry {
  static constexpr std::uint32_t kMatchShift = 8;
  static constexpr std::uint32_t kMatchMask = 0xfff;
  static constexpr std::uint32_t kWidthShift = 20;
  static constexpr std::uint32_t kWidthMask = 0xf;
  // The offset is a multiple of 8.
  static constexpr std::uint32_t kAligned = 1U << 24;
  static constexpr std::uint32_t kHasOffset = 1U << 25;
  static constexpr std::uint32_t kZero = 1U << 26;
  // Literals and match are more than 64 bytes together.
  static constexpr std::uint32_t kWide = 1U << 27;
};

// A token's code: class in the upper 4 bits, rank in the lower 12.
inline constexpr std::uint16_t kNoCode = 0xffff;

struct alignas(64) TokenTable {
  // Twice the 16 classes, as vpermw looks them up.
  std::array<std::uint16_t, 32> width;
  std::array<std::uint16_t, 32> base;
  // (1 << width) - 1.
  std::array<std::uint16_t, 16> mask;
  // By class base + rank; places without a symbol are tokens of no bytes.
  alignas(64) std::array<std::uint32_t, kMaxTokenPlaces> entry;
  // By token id.
  alignas(64) std::array<std::uint16_t, kTokenIds> code;
};

struct alignas(64) LiteralTable {
  alignas(64) std::array<std::uint8_t, 256> symbol;
  alignas(64) std::array<std::uint8_t, 256> class_of;
  alignas(64) std::array<std::uint8_t, 256> rank_of;
  std::array<std::uint8_t, kMaxLiteralClasses> width;
  std::array<std::uint8_t, kMaxLiteralClasses> mask;
  std::array<std::uint8_t, kMaxLiteralClasses> base;
  std::uint32_t class_bits;
};

class Tables {
 public:
  // Errors: invalid_argument (see check), system (ENOMEM).
  static Result<std::shared_ptr<const Tables>> make(const Recipe& recipe, unsigned page_bits);
  // Those of the built-in recipe. They stay as long as anybody has them.
  static Result<std::shared_ptr<const Tables>> builtin(unsigned page_bits);

  [[nodiscard]] unsigned page_bits() const noexcept { return page_bits_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return sizeof *this + tokens_.size() * sizeof(TokenTable) +
           literals_.size() * sizeof(LiteralTable) + token_bits_.size() * sizeof(TokenBits);
  }
  [[nodiscard]] std::uint32_t token_codes() const noexcept {
    return static_cast<std::uint32_t>(tokens_.size());
  }
  [[nodiscard]] std::uint32_t literal_codes() const noexcept {
    return static_cast<std::uint32_t>(literals_.size());
  }
  // Literal codes from this one on are for differences.
  [[nodiscard]] std::uint32_t first_difference_code() const noexcept { return literal_codes() / 2; }

  [[nodiscard]] const TokenTable& tokens(std::uint32_t code) const noexcept {
    return tokens_[code];
  }
  [[nodiscard]] const LiteralTable& literals(std::uint32_t code) const noexcept {
    return literals_[code];
  }
  // Bits that a token takes, in each code. Codes that are not there cost too much.
  using TokenBits = std::array<std::uint8_t, kMaxTokenCodes>;
  [[nodiscard]] const TokenBits& token_bits(TokenId id) const noexcept { return token_bits_[id]; }
  // Bits that a byte takes in each literal code of a half; codes that are not there cost too much.
  using LiteralBits = std::array<std::uint16_t, kMaxLiteralCodes / 2>;
  [[nodiscard]] const LiteralBits& literal_bits(std::uint8_t byte) const noexcept {
    return literal_bits_[byte];
  }
  [[nodiscard]] const LiteralBits& difference_bits(std::uint8_t byte) const noexcept {
    return difference_bits_[byte];
  }

 private:
  Tables(const Recipe& recipe, unsigned page_bits);
  void fill_token_table(const TokenCode& code, TokenTable& table) const;
  static void fill_literal_table(const LiteralCode& code, LiteralTable& table);
  void fill_token_bits();
  void fill_literal_bits();

  const unsigned page_bits_;
  std::vector<TokenTable> tokens_;
  std::vector<LiteralTable> literals_;
  std::vector<TokenBits> token_bits_;
  alignas(64) std::array<LiteralBits, 256> literal_bits_{};
  alignas(64) std::array<LiteralBits, 256> difference_bits_{};
};

}  // namespace uzram::codec::pagez
