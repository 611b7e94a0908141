// Window: a page rebuilt from tokens by AVX-512, 64 bytes of it in a register.
//
// Role: the last step of UnpackerAvx512. After each token the register holds the last 64 bytes of
// the page so far and is stored where they belong. It is made from what it held and the token's
// literals by one VPERMI2B: places below the match move down by the token's length, places of the
// match take what lies its offset before, over and over. Where the offset is larger than 64, those
// places keep what the index register holds: bytes loaded from the page, or zeroes.
// The chain from token to token is that one instruction, 5 cycles on Zen 4; a load that crosses
// stores still under way takes about 26.
// Units: bytes.
// Errors: corrupt for an offset that leads before the page.
// Invariant: writes exactly the page. REQUIRES: the tokens' lengths add up to it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <immintrin.h>

#include "uzram/error.hpp"

#include "codec/pagez/tables.hpp"

namespace uzram::codec::pagez {

struct WindowInput {
  const std::uint32_t* entries;
  std::uint32_t count;
  // Of tokens with an offset, and 0 for each match of zeroes and each run of literals alone.
  const std::uint16_t* offsets;
  // Readable 32 bytes beyond the end.
  const std::uint8_t* literals;
};

struct WindowRows {
  // Row n, behind 64 bytes of padding: where in the window lie the bytes that an offset of n repeats.
  struct Row {
    std::array<std::uint8_t, 64> before;
    std::array<std::uint8_t, 64> index;
  };
  alignas(64) std::array<Row, 65> row{};
  alignas(64) std::array<std::uint8_t, 64> identity{};
  // Bit n: place n is not of a match of that length.
  std::array<std::uint64_t, 65> below_match{};

  constexpr WindowRows() {
    for (unsigned at = 0; at < 64; ++at) {
      identity[at] = static_cast<std::uint8_t>(at);
      for (unsigned offset = 1; offset <= 64; ++offset) {
        row[offset].index[at] = static_cast<std::uint8_t>(64 - offset + at % offset);
      }
    }
    for (unsigned length = 0; length < 64; ++length) {
      below_match[length] = ~std::uint64_t{0} >> length;
    }
  }
};
inline constexpr WindowRows kWindowRows;

// Selections that must not become branches: which way they go is as good as random.
inline std::uint64_t select_if_set(std::uint32_t bits, std::uint32_t mask, std::uint64_t set,
                                   std::uint64_t clear) noexcept {
  asm("test %[mask], %[bits]\n\tcmovnz %[set], %[clear]"
      : [clear] "+r"(clear)
      : [bits] "r"(bits), [mask] "ri"(mask), [set] "r"(set)
      : "cc");
  return clear;
}
inline std::uint64_t select_if_not_zero(std::uint64_t value, std::uint64_t otherwise) noexcept {
  asm("test %[value], %[value]\n\tcmovnz %[value], %[otherwise]"
      : [otherwise] "+r"(otherwise)
      : [value] "r"(value)
      : "cc");
  return otherwise;
}
// All ones when 1 <= offset <= 64.
inline std::uint64_t ones_if_near(std::uint64_t offset) noexcept {
  std::uint64_t ones = 0;
  asm("lea -1(%[offset]), %[ones]\n\tcmp $64, %[ones]\n\tsbb %[ones], %[ones]"
      : [ones] "=&r"(ones)
      : [offset] "r"(offset)
      : "cc");
  return ones;
}
// `inside` when offset <= 64.
inline const std::uint8_t* select_if_in_window(std::uint64_t offset, const std::uint8_t* inside,
                                               const std::uint8_t* outside) noexcept {
  asm("cmp $65, %[offset]\n\tcmovb %[inside], %[outside]"
      : [outside] "+r"(outside)
      : [offset] "r"(offset), [inside] "r"(inside)
      : "cc");
  return outside;
}

template <bool kDifferences>
class Window {
 public:
  explicit Window(std::uint8_t* page) noexcept : page_(page), to_(page) {}

  Errc run(const WindowInput& input) noexcept {
    literals_ = input.literals;
    offsets_ = input.offsets;
    std::uint32_t token = 0;
    // Until the window is full, a store of all of it would begin before the page.
    for (; token < input.count && to_ < page_ + 64; ++token) {
      if (!step<true>(input.entries[token], &input.entries[token])) {
        return Errc::corrupt;
      }
    }
    for (; token < input.count; ++token) {
      if (!step<false>(input.entries[token], &input.entries[token])) {
        return Errc::corrupt;
      }
    }
    return Errc::ok;
  }

 private:
  static __m512i broadcast(const std::uint8_t* byte) noexcept {
    return _mm512_set1_epi8(static_cast<char>(*byte));
  }

  // Meaningful for offsets up to 64; that of 0 is zeroes.
  static const std::uint8_t* row_of(std::uint64_t offset) noexcept {
    return reinterpret_cast<const std::uint8_t*>(kWindowRows.row.data()) +
           offset * sizeof(WindowRows::Row) + sizeof(WindowRows::Row::before);
  }

  // The token's literals, in the low 32 bytes.
  template <bool kFirst>
  [[nodiscard, gnu::always_inline]] __m512i next_literals() const noexcept {
    __m512i bytes =
        _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(literals_)));
    if constexpr (kDifferences) {
      if (!kFirst || offset_ <= static_cast<std::uint64_t>(to_ - page_)) {
        const std::uint64_t near = ones_if_near(offset_);
        const std::uint8_t* const from =
            select_if_in_window(offset_, row_of(offset_), to_ - offset_);
        const __m512i reference = _mm512_mask2_permutex2var_epi8(
            window_, _mm512_castsi256_si512(load_reference(from)), near, window_);
        bytes = _mm512_add_epi8(bytes, reference);
      }
    }
    return bytes;
  }
  // No more than a token's literals: 64 bytes could reach beyond the page.
  static __m256i load_reference(const std::uint8_t* from) noexcept {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }

  template <bool kFirst>
  [[gnu::always_inline]] bool step(std::uint32_t entry, const std::uint32_t* memory) noexcept {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(memory);
    const std::uint32_t literals = entry & 0xff;
    std::uint32_t match = entry >> Entry::kMatchShift & Entry::kMatchMask;
    const __m512i by_literals = broadcast(bytes);
    const __m512i by_all = _mm512_add_epi8(by_literals, broadcast(bytes + 1));
    const __m512i fresh = next_literals<kFirst>();
    literals_ += literals;
    std::uint8_t* const begin = to_;
    to_ += literals;

    constexpr std::uint32_t kListed = Entry::kHasOffset | Entry::kZero;
    const std::uint64_t offset = select_if_set(entry, kListed, *offsets_, offset_);
    offsets_ += (entry & kListed) != 0 ? 1 : 0;
    offset_ = select_if_not_zero(offset, offset_);
    if (to_ - page_ < static_cast<std::ptrdiff_t>(offset)) [[unlikely]] {
      return false;
    }
    if ((entry & Entry::kWide) != 0) [[unlikely]] {
      store_literals(begin, fresh, literals);
      if (match > kMaxMatch) {
        copy_long_match(to_, offset, match);
        to_ += match;
        window_ = _mm512_loadu_si512(to_ - 64);
        return true;
      }
    }

    const std::uint64_t near = ones_if_near(offset);
    const std::uint8_t* const from = select_if_in_window(offset, row_of(offset), to_ - offset);
    const std::uint64_t below = kWindowRows.below_match[match];
    __m512i index = _mm512_maskz_loadu_epi8(~below, from - 64 + match);
    index = _mm512_mask_add_epi8(index, near, index, by_literals);
    index = _mm512_mask_add_epi8(index, below, identity(), by_all);
    window_ = _mm512_mask2_permutex2var_epi8(window_, index, below | near, fresh);
    to_ += match;
    if constexpr (kFirst) {
      // The places that the page has.
      const auto filled = static_cast<std::uint64_t>(to_ - page_);
      _mm512_mask_storeu_epi8(to_ - 64, filled >= 64 ? ~0ULL : ~0ULL << (64 - filled), window_);
    } else {
      _mm512_storeu_si512(to_ - 64, window_);
    }
    return true;
  }

  static __m512i identity() noexcept { return _mm512_load_si512(kWindowRows.identity.data()); }

  static void store_literals(std::uint8_t* to, __m512i fresh, std::uint32_t count) noexcept {
    _mm256_mask_storeu_epi8(to, _bzhi_u32(~0U, count), _mm512_castsi512_si256(fresh));
  }

  // Off the fast path, and without the object, so that it can live in registers.
  [[gnu::noinline]] static void copy_long_match(std::uint8_t* to, std::uint64_t offset,
                                                std::uint32_t match) noexcept {
    if (offset == 0) {
      std::memset(to, 0, match);
      return;
    }
    for (std::uint32_t at = 0; at < match; ++at) {
      to[at] = to[static_cast<std::ptrdiff_t>(at) - static_cast<std::ptrdiff_t>(offset)];
    }
  }

  std::uint8_t* const page_;
  std::uint8_t* to_;
  const std::uint8_t* literals_ = nullptr;
  const std::uint16_t* offsets_ = nullptr;
  std::uint64_t offset_ = kFirstOffset;
  __m512i window_ = _mm512_setzero_si512();
};

}  // namespace uzram::codec::pagez
