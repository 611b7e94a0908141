// Packer: sequences as the bytes of an object.
//
// Role: the second half of the encoder: chooses the codes that suit the page, then writes classes
// and ranks, each kind in one run, so that a decoder knows all lengths before it decodes.
// Units: bytes, bits.
// Errors: pack returns 0 when the result is no smaller than the page.
// Threads: as Sequences.
// Invariant: the object of given sequences does not depend on Isa.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "codec/pagez/bytes.hpp"
#include "codec/pagez/sequences.hpp"
#include "codec/pagez/tables.hpp"

namespace uzram::codec::pagez {

// Appends up to 56 bits at a time, the lowest first. Writes up to 8 bytes beyond them.
class BitWriter {
 public:
  explicit BitWriter(std::uint8_t* to) noexcept : to_(to) {}
  void put(std::uint64_t bits, unsigned count) noexcept {
    pending_ |= bits << filled_;
    store(to_, pending_);
    filled_ += count;
    to_ += filled_ / 8;
    pending_ >>= filled_ & ~7U;
    filled_ &= 7;
  }
  // The first byte after them.
  [[nodiscard]] std::uint8_t* end() const noexcept { return to_ + (filled_ + 7) / 8; }

 private:
  std::uint8_t* to_;
  std::uint64_t pending_ = 0;
  unsigned filled_ = 0;
};

// What a packer works in, of one workspace.
class PackRoom {
 public:
  explicit PackRoom(std::uint32_t page_bytes)
      : codes(page_bytes + Sequences::kSlack),
        masks(page_bytes + Sequences::kSlack),
        classes(page_bytes + 2 * Sequences::kSlack),
        ranks(page_bytes + 2 * Sequences::kSlack),
        rank_masks(page_bytes + 2 * Sequences::kSlack),
        object(std::size_t{page_bytes} * 4 + Sequences::kSlack) {}

  // By token: class and rank; the rank's bits. A token that the code lacks takes two places.
  std::vector<std::uint16_t> codes;
  std::vector<std::uint16_t> masks;
  // By literal.
  std::vector<std::uint8_t> classes;
  std::vector<std::uint8_t> ranks;
  std::vector<std::uint8_t> rank_masks;
  // Large enough for any sequences, before it is known whether they are worth it.
  std::vector<std::uint8_t> object;
};

// The smallest of some sums, the first one where there are several.
struct Least {
  std::uint32_t sum = 0;
  std::uint32_t index = 0;
};

// Isa has: compress(value, mask), the bits of value that mask has, side by side (PEXT);
// literal_codes(table, literals, classes, ranks, masks), those of 64 literals; TokenSums and
// LiteralSums, which add up rows of Tables.
template <typename Isa>
class Packer {
 public:
  Packer(const Tables& tables, std::uint32_t generation, PackRoom& room,
         const Sequences& sequences) noexcept
      : tables_(tables), room_(room), sequences_(sequences) {
    header_.generation = generation;
  }

  // Returns the size of the object in room.object; 0: not smaller than `limit`.
  std::uint32_t pack(std::uint32_t limit) noexcept {
    choose_token_code();
    if (!choose_literal_code(limit) || !map_tokens()) {
      return 0;
    }
    std::uint8_t* to = room_.object.data();
    store(to, pack_header(header_, tables_.page_bits()));
    to = put_tokens(to + header_bytes(tables_.page_bits()));
    to = put_offsets(to);
    to = put_literals(to);
    const auto size = static_cast<std::uint32_t>(to - room_.object.data());
    return size < limit ? size : 0;
  }

 private:
  // So many tokens and literals, evenly spread, tell which code to take.
  static constexpr std::uint32_t kSample = 128;

  void choose_token_code() noexcept {
    const std::uint32_t count = sequences_.token_count();
    const std::uint32_t step = 1 + count / kSample;
    typename Isa::TokenSums sums;
    for (std::uint32_t at = 0; at < count; at += step) {
      sums.add(tables_.token_bits(sequences_.tokens()[at]));
    }
    header_.token_code = sums.least().index;
  }

  // Returns false when literals alone would take more than `limit`.
  bool choose_literal_code(std::uint32_t limit) noexcept {
    const std::uint32_t count = sequences_.literal_count();
    const std::uint32_t step = 1 + count / kSample;
    typename Isa::LiteralSums plain;
    typename Isa::LiteralSums difference;
    std::uint32_t sampled = 0;
    for (std::uint32_t at = 0; at < count; at += step, ++sampled) {
      plain.add(tables_.literal_bits(sequences_.literals()[at]));
      if (sequences_.has_differences()) {
        difference.add(tables_.difference_bits(sequences_.differences()[at]));
      }
    }
    const Least best_plain = plain.least();
    std::uint32_t bits = 8 * sampled;
    header_.literal_code = kPlainLiterals;
    if (best_plain.sum < bits) {
      bits = best_plain.sum;
      header_.literal_code = best_plain.index;
    }
    // Differences take longer to decode: they have to save more than a little.
    if (sequences_.has_differences()) {
      const Least best_difference = difference.least();
      if (best_difference.sum + bits / 16 < bits) {
        bits = best_difference.sum;
        header_.literal_code = tables_.first_difference_code() + best_difference.index;
      }
    }
    return sampled == 0 || std::uint64_t{bits} * count / sampled / 8 < limit;
  }

  // Returns false when there are more tokens than an object can have.
  bool map_tokens() noexcept {
    const TokenTable& table = tables_.tokens(header_.token_code);
    std::uint16_t* code = room_.codes.data();
    std::uint16_t* mask = room_.masks.data();
    const auto append = [&](std::uint16_t next) {
      *code++ = next;
      *mask++ = table.mask[next >> kMaxTokenWidth];
    };
    const TokenId* const end = sequences_.tokens() + sequences_.token_count();
    for (const TokenId* id = sequences_.tokens(); id != end; ++id) {
      std::uint16_t next = table.code[*id];
      if (next == kNoCode) [[unlikely]] {
        Token token;
        static_cast<void>(token_of(*id, token));
        append(table.code[literals_id(token.literals)]);
        next = table.code[match_id(0, token.match, token.source)];
      }
      append(next);
    }
    // Up to a whole group of four.
    std::memset(code, 0, 8);
    std::memset(mask, 0, 8);
    header_.tokens = static_cast<std::uint32_t>(code - room_.codes.data());
    return header_.tokens <= max_tokens(tables_.page_bits());
  }

  std::uint8_t* put_tokens(std::uint8_t* classes) noexcept {
    constexpr std::uint64_t kClassOfEach = 0xf000f000f000f000;
    BitWriter ranks(classes + (header_.tokens + 1) / 2);
    std::uint32_t at = 0;
    for (; at + 4 <= header_.tokens; at += 4) {
      const auto codes = load<std::uint64_t>(&room_.codes[at]);
      const auto masks = load<std::uint64_t>(&room_.masks[at]);
      store(classes + at / 2, static_cast<std::uint16_t>(Isa::compress(codes, kClassOfEach)));
      ranks.put(Isa::compress(codes, masks), static_cast<unsigned>(std::popcount(masks)));
    }
    if (at < header_.tokens) {
      const auto codes = load<std::uint64_t>(&room_.codes[at]);
      const auto masks = load<std::uint64_t>(&room_.masks[at]);
      const std::uint64_t last = Isa::compress(codes, kClassOfEach);
      std::memcpy(classes + at / 2, &last, (header_.tokens - at + 1) / 2);
      ranks.put(Isa::compress(codes, masks), static_cast<unsigned>(std::popcount(masks)));
    }
    return ranks.end();
  }

  std::uint8_t* put_offsets(std::uint8_t* to) noexcept {
    BitWriter writer(to);
    const OffsetField* const fields = sequences_.offsets();
    const std::uint32_t count = sequences_.offset_count();
    std::uint32_t at = 0;
    for (; at + 2 <= count; at += 2) {
      // Bits, mask, bits, mask.
      const auto two = load<std::uint64_t>(fields + at);
      const std::uint64_t masks = two >> 16 & 0x0000ffff0000ffff;
      writer.put(Isa::compress(two, masks), static_cast<unsigned>(std::popcount(masks)));
    }
    if (at < count) {
      writer.put(fields[at].bits, static_cast<unsigned>(std::popcount(fields[at].mask)));
    }
    return writer.end();
  }

  std::uint8_t* put_literals(std::uint8_t* to) noexcept {
    const std::uint32_t count = sequences_.literal_count();
    if (header_.literal_code == kPlainLiterals) {
      std::memcpy(to, sequences_.literals(), count);
      return to + count;
    }
    const LiteralTable& table = tables_.literals(header_.literal_code);
    const std::uint8_t* const literals = header_.literal_code < tables_.first_difference_code()
                                             ? sequences_.literals()
                                             : sequences_.differences();
    for (std::uint32_t at = 0; at < count; at += kBlock) {
      Isa::literal_codes(table, literals + at, &room_.classes[at], &room_.ranks[at],
                         &room_.rank_masks[at]);
    }
    // The last group may be of fewer than eight.
    std::memset(&room_.classes[count], 0, 8);
    std::memset(&room_.rank_masks[count], 0, 8);
    // Eight classes are class_bits bytes; what is stored beyond them is written again.
    const std::uint64_t class_of_each = ((1U << table.class_bits) - 1) * 0x0101010101010101ULL;
    std::uint8_t* classes = to;
    for (std::uint32_t at = 0; at < count; at += 8, classes += table.class_bits) {
      store(classes, Isa::compress(load<std::uint64_t>(&room_.classes[at]), class_of_each));
    }
    BitWriter ranks(to + (count * table.class_bits + 7) / 8);
    for (std::uint32_t at = 0; at < count; at += 8) {
      const auto mask = load<std::uint64_t>(&room_.rank_masks[at]);
      ranks.put(Isa::compress(load<std::uint64_t>(&room_.ranks[at]), mask),
                static_cast<unsigned>(std::popcount(mask)));
    }
    return ranks.end();
  }

  static constexpr std::uint32_t kBlock = 64;

  const Tables& tables_;
  PackRoom& room_;
  const Sequences& sequences_;
  ObjectHeader header_;
};

}  // namespace uzram::codec::pagez
