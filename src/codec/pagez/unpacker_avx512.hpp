// UnpackerAvx512: the decoder by AVX-512 with VBMI.
//
// Role: as unpacker.hpp, whose contract it keeps. Nothing is read symbol by symbol: the widths of a
// block's ranks are added up inside the registers, and VPMULTISHIFTQB takes each rank from where it
// begins. Pages are rebuilt without branches on data: the last 64 bytes are kept in a register,
// and one permutation of it and of the literals gives the 64 bytes after each token, so that a match
// near by waits for no store.
// Units: bytes, bits.
// Errors: as unpacker.hpp.
// Threads: one at a time for a room.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <immintrin.h>

#include "uzram/error.hpp"

#include "codec/pagez/bytes.hpp"
#include "codec/pagez/isa_avx512.hpp"
#include "codec/pagez/tables.hpp"
#include "codec/pagez/window_avx512.hpp"

namespace uzram::codec::pagez {

template <typename Room>
class UnpackerAvx512 {
 public:
  UnpackerAvx512(const Tables& tables, Room& room) noexcept : tables_(tables), room_(room) {}

  // REQUIRES: as Unpacker::unpack.
  Errc unpack(const std::uint8_t* object, std::uint32_t size, std::uint8_t* page,
              std::uint32_t page_bytes) noexcept {
    copy_object(object, size);
    header_ = unpack_header(load<std::uint32_t>(room_.object.data()), tables_.page_bits());
    end_bits_ = std::uint64_t{size} * 8;
    if (header_.token_code >= tables_.token_codes() ||
        (header_.literal_code >= tables_.literal_codes() &&
         header_.literal_code != kPlainLiterals)) {
      return Errc::corrupt;
    }
    std::uint64_t at = std::uint64_t{header_bytes(tables_.page_bits())} * 8;
    if (!read_tokens(at)) {
      return Errc::corrupt;
    }
    look_up_entries();
    if (literals_ + matched_ != page_bytes || !read_offsets(at)) {
      return Errc::corrupt;
    }
    const std::uint8_t* const literals = read_literals(at);
    if (literals == nullptr || at != end_bits_) {
      return Errc::corrupt;
    }
    const WindowInput input{room_.entries.data(), header_.tokens, room_.offsets.data(), literals};
    return header_.literal_code >= tables_.first_difference_code() &&
                   header_.literal_code != kPlainLiterals
               ? Window<true>(page).run(input)
               : Window<false>(page).run(input);
  }

 private:
  // Qwords that each hold their first byte eight times.
  static __m512i spread_low_bytes(__m512i qwords) noexcept {
    return _mm512_shuffle_epi8(
        qwords, _mm512_set_epi64(0x0808080808080808, 0, 0x0808080808080808, 0, 0x0808080808080808,
                                 0, 0x0808080808080808, 0));
  }
  // The sum of all qwords before each one; `total` is the sum of all.
  static __m512i sums_before(__m512i qwords, std::uint64_t& total) noexcept {
    const __m512i zero = _mm512_setzero_si512();
    __m512i sums = _mm512_add_epi64(qwords, _mm512_alignr_epi64(qwords, zero, 7));
    sums = _mm512_add_epi64(sums, _mm512_alignr_epi64(sums, zero, 6));
    sums = _mm512_add_epi64(sums, _mm512_alignr_epi64(sums, zero, 4));
    total = static_cast<std::uint64_t>(_mm_extract_epi64(_mm512_extracti64x2_epi64(sums, 3), 1));
    return _mm512_sub_epi64(sums, qwords);
  }

  void copy_object(const std::uint8_t* object, std::uint32_t size) noexcept {
    std::uint8_t* const to = room_.object.data();
    for (std::uint32_t at = 0; at < size; at += 64) {
      const __mmask64 there = _bzhi_u64(~0ULL, std::min(64U, size - at));
      _mm512_store_si512(to + at, _mm512_maskz_loadu_epi8(there, object + at));
    }
    _mm512_storeu_si512(to + size, _mm512_setzero_si512());
  }

  // Eight words of 64 bits from bit `at` on: word n begins at bit starts[n] from there.
  __m512i words_at(std::uint64_t at, __m512i starts) const noexcept {
    const __m512i begin =
        _mm512_add_epi64(starts, _mm512_set1_epi64(static_cast<long long>(at % 8)));
    const __m512i bytes = _mm512_loadu_si512(room_.object.data() + at / 8);
    const __m512i index = _mm512_add_epi8(spread_low_bytes(_mm512_srli_epi64(begin, 3)),
                                          _mm512_set1_epi64(0x0706050403020100));
    return _mm512_srlv_epi64(_mm512_permutexvar_epi8(index, bytes),
                             _mm512_and_si512(begin, _mm512_set1_epi64(7)));
  }

  // 32 values of the given widths, up to 14 bits each, from bit `at` on, which moves behind them.
  __m512i values_16(__m512i widths, std::uint64_t& at) const noexcept {
    const __m512i through = _mm512_mullo_epi64(widths, _mm512_set1_epi64(0x0001000100010001));
    const __m512i before = _mm512_sub_epi16(through, widths);
    std::uint64_t total = 0;
    const __m512i starts = sums_before(_mm512_srli_epi64(through, 48), total);
    const __m512i words = words_at(at, starts);
    at += total;
    const __m512i low_and_high = _mm512_add_epi16(
        _mm512_or_si512(before, _mm512_slli_epi16(before, 8)), _mm512_set1_epi16(0x0800));
    const __m512i one = _mm512_set1_epi16(1);
    return _mm512_and_si512(_mm512_multishift_epi64_epi8(low_and_high, words),
                            _mm512_sub_epi16(_mm512_sllv_epi16(one, widths), one));
  }

  bool read_tokens(std::uint64_t& at) noexcept {
    const TokenTable& table = tables_.tokens(header_.token_code);
    const __m512i widths = _mm512_load_si512(table.width.data());
    const __m512i bases = _mm512_load_si512(table.base.data());
    const std::uint8_t* classes = room_.object.data() + at / 8;
    at += std::uint64_t{header_.tokens + 1} / 2 * 8;
    if (at > end_bits_) {
      return false;
    }
    for (std::uint32_t token = 0; token < header_.tokens; token += 32, classes += 16) {
      const __m256i pairs =
          _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(classes)));
      const __m512i each = _mm512_cvtepu8_epi16(_mm256_and_si256(
          _mm256_or_si256(pairs, _mm256_slli_epi16(pairs, 4)), _mm256_set1_epi8(15)));
      const __mmask32 there = _bzhi_u32(~0U, std::min(32U, header_.tokens - token));
      const __m512i ranks = values_16(_mm512_maskz_permutexvar_epi16(there, each, widths), at);
      _mm512_store_si512(&room_.places[token],
                         _mm512_add_epi16(ranks, _mm512_permutexvar_epi16(each, bases)));
      if (at > end_bits_) {
        return false;
      }
    }
    at = (at + 7) & ~7ULL;
    return true;
  }

  void look_up_entries() noexcept {
    const TokenTable& table = tables_.tokens(header_.token_code);
    __m512i literals = _mm512_setzero_si512();
    __m512i matched = _mm512_setzero_si512();
    for (std::uint32_t token = 0; token < header_.tokens; token += 16) {
      const __mmask16 there =
          static_cast<__mmask16>(_bzhi_u32(0xffff, std::min(16U, header_.tokens - token)));
      const __m512i places = _mm512_cvtepu16_epi32(
          _mm256_load_si256(reinterpret_cast<const __m256i*>(&room_.places[token])));
      const __m512i entries =
          _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), there, places, table.entry.data(), 4);
      _mm512_store_si512(&room_.entries[token], entries);
      literals = _mm512_add_epi32(literals, _mm512_and_si512(entries, _mm512_set1_epi32(0xff)));
      matched =
          _mm512_add_epi32(matched, _mm512_and_si512(_mm512_srli_epi32(entries, Entry::kMatchShift),
                                                     _mm512_set1_epi32(Entry::kMatchMask)));
      // Matches of zeroes have an offset of no bits, so that the window takes 0 from the list.
      const __mmask16 listed =
          _mm512_test_epi32_mask(entries, _mm512_set1_epi32(Entry::kHasOffset | Entry::kZero));
      const __m512i fields =
          _mm512_and_si512(_mm512_srli_epi32(entries, Entry::kWidthShift),
                           _mm512_set1_epi32((Entry::kAligned | Entry::kZero |
                                              Entry::kWidthMask << Entry::kWidthShift) >>
                                             Entry::kWidthShift));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(&room_.masks[listed_]),
                          _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(listed, fields)));
      listed_ += static_cast<std::uint32_t>(std::popcount(static_cast<unsigned>(listed)));
    }
    literals_ = static_cast<std::uint32_t>(_mm512_reduce_add_epi32(literals));
    matched_ = static_cast<std::uint32_t>(_mm512_reduce_add_epi32(matched));
  }

  bool read_offsets(std::uint64_t& at) noexcept {
    constexpr int kAligned = Entry::kAligned >> Entry::kWidthShift;
    constexpr int kZero = Entry::kZero >> Entry::kWidthShift;
    for (std::uint32_t offset = 0; offset < listed_; offset += 32) {
      const __mmask32 there = _bzhi_u32(~0U, std::min(32U, listed_ - offset));
      const __m512i fields = _mm512_maskz_loadu_epi16(there, &room_.masks[offset]);
      const __m512i widths = _mm512_and_si512(fields, _mm512_set1_epi16(Entry::kWidthMask));
      const __m512i values = _mm512_add_epi16(values_16(widths, at), _mm512_set1_epi16(1));
      const __mmask32 aligned = _mm512_test_epi16_mask(fields, _mm512_set1_epi16(kAligned));
      const __mmask32 not_zero = _mm512_testn_epi16_mask(fields, _mm512_set1_epi16(kZero));
      _mm512_store_si512(
          &room_.offsets[offset],
          _mm512_maskz_mov_epi16(not_zero, _mm512_mask_slli_epi16(values, aligned, values, 3)));
      if (at > end_bits_) {
        return false;
      }
    }
    at = (at + 7) & ~7ULL;
    return true;
  }

  // Returns where they are; nullptr: the object ends before them.
  const std::uint8_t* read_literals(std::uint64_t& at) noexcept {
    const std::uint8_t* const from = room_.object.data() + at / 8;
    if (header_.literal_code == kPlainLiterals) {
      at += std::uint64_t{literals_} * 8;
      return at <= end_bits_ ? from : nullptr;
    }
    const LiteralTable& table = tables_.literals(header_.literal_code);
    at += (std::uint64_t{literals_} * table.class_bits + 7) & ~7ULL;
    if (at > end_bits_ || !decode_literals(table, from, at)) {
      return nullptr;
    }
    at = (at + 7) & ~7ULL;
    return room_.literals.data();
  }

  bool decode_literals(const LiteralTable& table, const std::uint8_t* classes,
                       std::uint64_t& at) noexcept {
    const auto bits = static_cast<short>(table.class_bits);
    const __m512i each_byte = _mm512_set1_epi64(0x0706050403020100);
    // Qword n takes the class_bits bytes of its eight literals.
    const __m512i group =
        _mm512_add_epi8(_mm512_mullo_epi16(_mm512_set_epi64(0x0007000700070007, 0x0006000600060006,
                                                            0x0005000500050005, 0x0004000400040004,
                                                            0x0003000300030003, 0x0002000200020002,
                                                            0x0001000100010001, 0),
                                           _mm512_set1_epi16(static_cast<short>(bits * 0x101))),
                        each_byte);
    const __m512i class_start = _mm512_or_si512(
        _mm512_mullo_epi16(_mm512_set1_epi64(0x0006000400020000), _mm512_set1_epi16(bits)),
        _mm512_mullo_epi16(_mm512_set1_epi64(0x0007000500030001),
                           _mm512_set1_epi16(static_cast<short>(bits << 8))));
    const __m512i class_mask = _mm512_set1_epi8(static_cast<char>((1 << bits) - 1));
    const __m512i widths = four_times(table.width);
    const __m512i masks = four_times(table.mask);
    const __m512i bases = four_times(table.base);
    for (std::uint32_t literal = 0; literal < literals_; literal += 64) {
      const __m512i packed = _mm512_permutexvar_epi8(group, _mm512_loadu_si512(classes));
      classes += 8 * bits;
      const __m512i each =
          _mm512_and_si512(_mm512_multishift_epi64_epi8(class_start, packed), class_mask);
      const __mmask64 there = _bzhi_u64(~0ULL, std::min(64U, literals_ - literal));
      const __m512i width = _mm512_maskz_shuffle_epi8(there, widths, each);
      const __m512i through = _mm512_mullo_epi64(width, _mm512_set1_epi64(0x0101010101010101));
      std::uint64_t total = 0;
      const __m512i starts = sums_before(_mm512_srli_epi64(through, 56), total);
      const __m512i ranks = _mm512_and_si512(
          _mm512_multishift_epi64_epi8(_mm512_sub_epi8(through, width), words_at(at, starts)),
          _mm512_shuffle_epi8(masks, each));
      _mm512_store_si512(
          &room_.literals[literal],
          look_up_256(table.symbol, _mm512_add_epi8(ranks, _mm512_shuffle_epi8(bases, each))));
      at += total;
      if (at > end_bits_) {
        return false;
      }
    }
    return true;
  }

  const Tables& tables_;
  Room& room_;
  ObjectHeader header_;
  std::uint64_t end_bits_ = 0;
  std::uint32_t literals_ = 0;
  std::uint32_t matched_ = 0;
  // Elements of masks and offsets.
  std::uint32_t listed_ = 0;
};

}  // namespace uzram::codec::pagez
