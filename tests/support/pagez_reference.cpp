#include "support/pagez_reference.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace uzram::test {
namespace {

using codec::pagez::LiteralCode;
using codec::pagez::Recipe;
using codec::pagez::TokenCode;

constexpr unsigned kPlainLiterals = 63;
constexpr unsigned kSourceZero = 0;
constexpr unsigned kSourceRepeat = 1;
constexpr std::uint32_t kFirstOffset = 8;

// Bits of an object, the lowest of each byte first; empty when it ends before them.
class BitReader {
 public:
  BitReader(std::span<const std::uint8_t> object, std::uint32_t begin_byte)
      : object_(object), at_(std::size_t{begin_byte} * 8) {}

  [[nodiscard]] std::optional<std::uint32_t> take(unsigned count) {
    std::uint32_t value = 0;
    for (unsigned bit = 0; bit < count; ++bit, ++at_) {
      if (at_ / 8 >= object_.size()) {
        return std::nullopt;
      }
      const std::uint32_t set = (object_[at_ / 8] >> (at_ % 8)) & 1U;
      value |= set << bit;
    }
    return value;
  }

  // The first byte that begins behind what was taken.
  [[nodiscard]] std::uint32_t byte() const { return static_cast<std::uint32_t>((at_ + 7) / 8); }

 private:
  std::span<const std::uint8_t> object_;
  std::size_t at_;
};

// A place of a list: the symbols of all classes before `symbol_class`, and `rank`.
template <typename Code>
std::uint32_t place_of(const Code& code, unsigned symbol_class, std::uint32_t rank) {
  std::uint32_t place = rank;
  for (unsigned before = 0; before < symbol_class; ++before) {
    place += 1U << code.width.at(before);
  }
  return place;
}

class Decoder {
 public:
  Decoder(std::span<const std::uint8_t> object, unsigned page_bits, const Recipe& recipe)
      : object_(object), page_bits_(page_bits), recipe_(recipe) {}

  PagezDecoded decode() {
    out_.corrupt = parse();
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::uint32_t page_bytes() const { return 1U << page_bits_; }

  // Each of these returns why the object is corrupt, or nothing.
  std::string parse() {
    if (std::string why = read_header(); !why.empty()) {
      return why;
    }
    if (out_.header.tokens == 0) {
      return take_stored_page();
    }
    if (std::string why = choose_codes(); !why.empty()) {
      return why;
    }
    if (std::string why = read_tokens(); !why.empty()) {
      return why;
    }
    if (std::string why = count_bytes(); !why.empty()) {
      return why;
    }
    if (std::string why = read_offsets(); !why.empty()) {
      return why;
    }
    if (std::string why = read_literals(); !why.empty()) {
      return why;
    }
    if (out_.literal_ranks.end != object_.size()) {
      return "something follows the literals";
    }
    return write_page();
  }

  std::string read_header() {
    PagezHeader& header = out_.header;
    header.bytes = page_bits_ == 12 ? 3 : 4;
    if (object_.size() < header.bytes) {
      return "the header is cut short";
    }
    BitReader bits(object_, 0);
    header.tokens = *bits.take(page_bits_ - 1);
    header.generation = *bits.take(4);
    header.token_code = *bits.take(3);
    header.literal_code = *bits.take(6);
    return {};
  }

  std::string take_stored_page() {
    const PagezHeader& header = out_.header;
    const auto header_bytes = object_.first(header.bytes);
    if (std::ranges::any_of(header_bytes, [](std::uint8_t byte) { return byte != 0; })) {
      return "a stored page with a header that is not 0";
    }
    if (object_.size() - header.bytes != page_bytes()) {
      return "a stored page of another size";
    }
    out_.page.assign(object_.begin() + header.bytes, object_.end());
    return {};
  }

  std::string choose_codes() {
    const PagezHeader& header = out_.header;
    if (object_.size() >= page_bytes()) {
      return "a coded object that is not smaller than its page";
    }
    if (header.generation != 0) {
      return "tables of an unknown generation";
    }
    if (header.token_code >= recipe_.tokens.size()) {
      return "a token code that is not there";
    }
    out_.plain_literals = header.literal_code == kPlainLiterals;
    if (!out_.plain_literals && header.literal_code >= recipe_.literals.size()) {
      return "a literal code that is not there";
    }
    out_.differences = !out_.plain_literals && header.literal_code >= recipe_.literals.size() / 2;
    return {};
  }

  std::string read_tokens() {
    const TokenCode& code = recipe_.tokens[out_.header.token_code];
    BitReader classes(object_, out_.header.bytes);
    for (std::uint32_t count = 0; count < out_.header.tokens; ++count) {
      const auto symbol_class = classes.take(4);
      if (!symbol_class) {
        return "the classes are cut short";
      }
      PagezToken token;
      token.symbol_class = *symbol_class;
      token.rank_bits = code.width.at(*symbol_class);
      out_.tokens.push_back(token);
    }
    out_.classes = {out_.header.bytes, classes.byte()};
    BitReader ranks(object_, out_.classes.end);
    for (PagezToken& token : out_.tokens) {
      const auto rank = ranks.take(token.rank_bits);
      if (!rank) {
        return "the ranks are cut short";
      }
      token.rank = *rank;
      name_token(code, token);
    }
    out_.ranks = {out_.classes.end, ranks.byte()};
    return {};
  }

  static void name_token(const TokenCode& code, PagezToken& token) {
    const std::uint32_t place = place_of(code, token.symbol_class, token.rank);
    if (place >= code.symbols.size()) {
      token.source = kSourceRepeat;
      return;
    }
    token.number = code.symbols[place];
    const std::uint32_t low = token.number % 16;
    const std::uint32_t slot = token.number / 16 % 64;
    token.source = token.number / 1024;
    if (slot >= 3) {
      token.literals = low;
      token.match = slot + 1;
    } else if (slot == 2) {
      token.match = 128U << low;
    } else {
      token.literals = slot == 1 ? 32 : low + 1;
    }
  }

  std::string count_bytes() const {
    std::uint64_t bytes = 0;
    for (const PagezToken& token : out_.tokens) {
      bytes += token.literals + token.match;
    }
    if (bytes != page_bytes()) {
      return bytes < page_bytes() ? "tokens for less than a page" : "tokens for more than a page";
    }
    return {};
  }

  [[nodiscard]] unsigned offset_bits(unsigned source) const {
    switch (source) {
      case 2:
        return 3;
      case 3:
        return 6;
      case 4:
        return page_bits_ - 3;
      case 5:
        return 8;
      case 6:
        return page_bits_ < 14 ? page_bits_ : 14;
      default:
        return 0;
    }
  }

  std::string read_offsets() {
    BitReader offsets(object_, out_.ranks.end);
    for (PagezToken& token : out_.tokens) {
      token.offset_bits = offset_bits(token.source);
      const auto stored = offsets.take(token.offset_bits);
      if (!stored) {
        return "the offsets are cut short";
      }
      token.stored_offset = *stored;
      if (token.offset_bits != 0) {
        const bool is_aligned = token.source <= 4;
        token.offset = is_aligned ? (*stored + 1) * 8 : *stored + 1;
      }
    }
    out_.offsets = {out_.ranks.end, offsets.byte()};
    return {};
  }

  std::string read_literals() {
    for (const PagezToken& token : out_.tokens) {
      out_.literals.resize(out_.literals.size() + token.literals);
    }
    return out_.plain_literals ? read_plain_literals() : read_packed_literals();
  }

  std::string read_plain_literals() {
    BitReader bytes(object_, out_.offsets.end);
    for (PagezLiteral& literal : out_.literals) {
      const auto byte = bytes.take(8);
      if (!byte) {
        return "the literals are cut short";
      }
      literal.symbol = static_cast<std::uint8_t>(*byte);
    }
    out_.literal_classes = {out_.offsets.end, out_.offsets.end};
    out_.literal_ranks = {out_.offsets.end, bytes.byte()};
    return {};
  }

  std::string read_packed_literals() {
    const LiteralCode& code = recipe_.literals[out_.header.literal_code];
    BitReader classes(object_, out_.offsets.end);
    for (PagezLiteral& literal : out_.literals) {
      const auto symbol_class = classes.take(code.class_bits);
      if (!symbol_class) {
        return "the classes of the literals are cut short";
      }
      literal.symbol_class = *symbol_class;
      literal.rank_bits = code.width.at(*symbol_class);
    }
    out_.literal_classes = {out_.offsets.end, classes.byte()};
    BitReader ranks(object_, out_.literal_classes.end);
    for (PagezLiteral& literal : out_.literals) {
      const auto rank = ranks.take(literal.rank_bits);
      if (!rank) {
        return "the ranks of the literals are cut short";
      }
      literal.rank = *rank;
      literal.symbol = code.symbols.at(place_of(code, literal.symbol_class, *rank) % 256);
    }
    out_.literal_ranks = {out_.literal_classes.end, ranks.byte()};
    return {};
  }

  std::string write_page() {
    std::vector<std::uint8_t>& page = out_.page;
    std::size_t literal = 0;
    std::uint32_t last_offset = kFirstOffset;
    for (PagezToken& token : out_.tokens) {
      token.begin = static_cast<std::uint32_t>(page.size());
      for (std::uint32_t k = 0; k < token.literals; ++k) {
        std::uint32_t byte = out_.literals[literal++].symbol;
        if (out_.differences && last_offset <= token.begin) {
          byte += page[token.begin - last_offset + k % last_offset];
        }
        page.push_back(static_cast<std::uint8_t>(byte));
      }
      if (token.source == kSourceZero) {
        page.resize(page.size() + token.match);
        continue;
      }
      if (token.source == kSourceRepeat) {
        token.offset = last_offset;
      }
      last_offset = token.offset;
      if (token.offset > page.size()) {
        return "an offset to before the page";
      }
      for (std::uint32_t k = 0; k < token.match; ++k) {
        page.push_back(page[page.size() - token.offset]);
      }
    }
    return {};
  }

  std::span<const std::uint8_t> object_;
  unsigned page_bits_;
  const Recipe& recipe_;
  PagezDecoded out_;
};

}  // namespace

PagezDecoded decode_pagez(std::span<const std::uint8_t> object, unsigned page_bits,
                          const codec::pagez::Recipe& recipe) {
  return Decoder(object, page_bits, recipe).decode();
}

}  // namespace uzram::test
