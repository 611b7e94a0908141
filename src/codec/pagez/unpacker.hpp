// Unpacker: an object as tokens, offsets and literals, then as a page.
//
// Role: the decoder of processors without AVX-512; see unpacker_avx512.hpp for the other.
// Units: bytes, bits.
// Errors: corrupt, for anything that no encoder writes and that would lead outside.
// Threads: one at a time for a room.
// Invariants: 1. Nothing outside `object`, the page and the room is read or written, whatever the
// object holds. 2. Accepts and refuses the same objects as every other decoder.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "uzram/error.hpp"

#include "codec/pagez/bytes.hpp"
#include "codec/pagez/tables.hpp"

namespace uzram::codec::pagez {

// Isa has: expand(bits, mask) (PDEP); literals_8(table, ranks, classes, out), eight literals;
// copy_literals(to, from), 32 bytes; copy_match(to, offset, length), which may write up to kOvershoot
// bytes beyond its end.
template <typename Isa, typename Room>
class Unpacker {
 public:
  Unpacker(const Tables& tables, Room& room) noexcept : tables_(tables), room_(room) {}

  // REQUIRES: `size` is at most a page, more than a header; page_bytes fits the room.
  Errc unpack(const std::uint8_t* object, std::uint32_t size, std::uint8_t* page,
              std::uint32_t page_bytes) noexcept {
    std::memcpy(room_.object.data(), object, size);
    std::memset(room_.object.data() + size, 0, Room::kSlack);
    header_ = unpack_header(load<std::uint32_t>(room_.object.data()), tables_.page_bits());
    end_bits_ = std::uint64_t{size} * 8;
    if (header_.token_code >= tables_.token_codes() ||
        (header_.literal_code >= tables_.literal_codes() &&
         header_.literal_code != kPlainLiterals)) {
      return Errc::corrupt;
    }
    std::uint64_t at = std::uint64_t{header_bytes(tables_.page_bits())} * 8;
    if (!read_tokens(at) || literals_ + matched_ != page_bytes || !read_offsets(at) ||
        !read_literals(at) || at != end_bits_) {
      return Errc::corrupt;
    }
    return header_.literal_code >= tables_.first_difference_code() &&
                   header_.literal_code != kPlainLiterals
               ? rebuild<true>(page, page + page_bytes)
               : rebuild<false>(page, page + page_bytes);
  }

 private:
  // 57 bits at least.
  [[nodiscard]] std::uint64_t bits_at(std::uint64_t at) const noexcept {
    return load<std::uint64_t>(room_.object.data() + at / 8) >> at % 8;
  }
  static std::uint64_t whole_bytes(std::uint64_t bits) noexcept { return (bits + 7) & ~7ULL; }

  bool read_tokens(std::uint64_t& at) noexcept {
    const TokenTable& table = tables_.tokens(header_.token_code);
    const std::uint8_t* classes = room_.object.data() + at / 8;
    at += std::uint64_t{header_.tokens + 1} / 2 * 8;
    if (at > end_bits_) {
      return false;
    }
    std::uint32_t with_offset = 0;
    for (std::uint32_t token = 0; token < header_.tokens; token += 4, classes += 2) {
      std::uint64_t four = load<std::uint16_t>(classes);
      std::uint64_t mask = 0;
      std::uint64_t base = 0;
      const std::uint32_t count = std::min(header_.tokens - token, 4U);
      for (std::uint32_t lane = 0; lane < count; ++lane, four >>= 4) {
        mask |= std::uint64_t{table.mask[four & 15]} << 16 * lane;
        base |= std::uint64_t{table.base[four & 15]} << 16 * lane;
      }
      std::uint64_t places = Isa::expand(bits_at(at), mask) + base;
      at += static_cast<unsigned>(std::popcount(mask));
      if (at > end_bits_) {
        return false;
      }
      for (std::uint32_t lane = 0; lane < count; ++lane, places >>= 16) {
        const std::uint32_t entry = table.entry[places & 0xffff];
        room_.entries[token + lane] = entry;
        literals_ += entry & 0xff;
        matched_ += entry >> Entry::kMatchShift & Entry::kMatchMask;
        room_.masks[with_offset] = static_cast<std::uint16_t>(
            (1U << (entry >> Entry::kWidthShift & Entry::kWidthMask)) - 1);
        with_offset += (entry & Entry::kHasOffset) != 0 ? 1 : 0;
      }
    }
    with_offset_ = with_offset;
    at = whole_bytes(at);
    return true;
  }

  bool read_offsets(std::uint64_t& at) noexcept {
    std::memset(&room_.masks[with_offset_], 0, 8);
    for (std::uint32_t offset = 0; offset < with_offset_; offset += 4) {
      const auto mask = load<std::uint64_t>(&room_.masks[offset]);
      store(&room_.offsets[offset], Isa::expand(bits_at(at), mask));
      at += static_cast<unsigned>(std::popcount(mask));
      if (at > end_bits_) {
        return false;
      }
    }
    at = whole_bytes(at);
    return true;
  }

  bool read_literals(std::uint64_t& at) noexcept {
    if (header_.literal_code == kPlainLiterals) {
      if (at + literals_ * 8 > end_bits_) {
        return false;
      }
      std::memcpy(room_.literals.data(), room_.object.data() + at / 8, literals_);
      at += literals_ * 8;
      return true;
    }
    const LiteralTable& table = tables_.literals(header_.literal_code);
    const std::uint64_t class_of_each = ((1U << table.class_bits) - 1) * 0x0101010101010101ULL;
    const std::uint8_t* classes = room_.object.data() + at / 8;
    at += whole_bytes(literals_ * table.class_bits);
    if (at > end_bits_) {
      return false;
    }
    for (std::uint32_t literal = 0; literal < literals_; literal += 8) {
      std::uint64_t eight = Isa::expand(load<std::uint64_t>(classes), class_of_each);
      classes += table.class_bits;
      std::uint64_t mask = Isa::literal_masks(table, eight);
      if (literals_ - literal < 8) {
        mask &= (std::uint64_t{1} << (literals_ - literal) * 8) - 1;
      }
      Isa::literals_8(table, Isa::expand(bits_at(at), mask), eight, &room_.literals[literal]);
      at += static_cast<unsigned>(std::popcount(mask));
      if (at > end_bits_) {
        return false;
      }
    }
    at = whole_bytes(at);
    return true;
  }

  // Adds the bytes that `count` literals at `to` are differences to.
  void add_reference(std::uint8_t* to, std::uint32_t count, std::uint64_t offset) const noexcept {
    for (std::uint32_t at = 0; at < count; ++at) {
      to[at] = static_cast<std::uint8_t>(
          to[at] +
          to[static_cast<std::ptrdiff_t>(at % offset) - static_cast<std::ptrdiff_t>(offset)]);
    }
  }

  // The tokens fill the page: their lengths have been added up.
  template <bool kDifferences>
  Errc rebuild(std::uint8_t* const page, std::uint8_t* const end) noexcept {
    std::uint8_t* to = page;
    const std::uint8_t* literal = room_.literals.data();
    const std::uint16_t* next_offset = room_.offsets.data();
    std::uint64_t offset = kFirstOffset;
    for (std::uint32_t token = 0; token < header_.tokens; ++token) {
      const std::uint32_t entry = room_.entries[token];
      const std::uint32_t literals = entry & 0xff;
      const std::uint32_t match = entry >> Entry::kMatchShift & Entry::kMatchMask;
      const bool roomy =
          end - to >= static_cast<std::ptrdiff_t>(kMaxLiterals + match + Isa::kOvershoot);
      if (roomy) [[likely]] {
        Isa::copy_literals(to, literal);
      } else {
        std::memcpy(to, literal, literals);
      }
      if (kDifferences && offset <= static_cast<std::uint64_t>(to - page)) {
        add_reference(to, literals, offset);
      }
      literal += literals;
      to += literals;
      if ((entry & Entry::kZero) != 0) {
        std::memset(to, 0, match);
        to += match;
        continue;
      }
      if ((entry & Entry::kHasOffset) != 0) {
        const std::uint64_t bits = *next_offset++;
        offset = (entry & Entry::kAligned) != 0 ? (bits + 1) * 8 : bits + 1;
      }
      if (offset > static_cast<std::uint64_t>(to - page)) {
        return Errc::corrupt;
      }
      if (roomy) [[likely]] {
        Isa::copy_match(to, offset, match);
      } else {
        for (std::uint32_t at = 0; at < match; ++at) {
          to[at] = to[static_cast<std::ptrdiff_t>(at) - static_cast<std::ptrdiff_t>(offset)];
        }
      }
      to += match;
    }
    return Errc::ok;
  }

  const Tables& tables_;
  Room& room_;
  ObjectHeader header_;
  std::uint64_t end_bits_ = 0;
  std::uint64_t literals_ = 0;
  std::uint64_t matched_ = 0;
  std::uint32_t with_offset_ = 0;
};

}  // namespace uzram::codec::pagez
