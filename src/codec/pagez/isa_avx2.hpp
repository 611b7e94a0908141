// Avx2: encoder and decoder by AVX2 and BMI2.
//
// Role: the Isa of x86-64 processors with these and without AVX-512 VBMI; its matching is also that
// of those with it, where comparing 64 bytes at a time was slower than 32.
// Threads: pure functions.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <immintrin.h>

#include "codec/pagez/isa_portable.hpp"

namespace uzram::codec::pagez {

// Row n: which of n bytes the next 16 repeat.
struct RepeatRows {
  alignas(16) std::array<std::array<std::uint8_t, 16>, 17> row{};
  constexpr RepeatRows() {
    for (std::size_t period = 1; period < row.size(); ++period) {
      for (std::size_t at = 0; at < row[period].size(); ++at) {
        row[period][at] = static_cast<std::uint8_t>(at % period);
      }
    }
  }
};
inline constexpr RepeatRows kRepeatRows;

struct Avx2 : Portable {
  static std::uint32_t equal_32(const std::uint8_t* a, const std::uint8_t* b) noexcept {
    return ones_from_low(_mm256_cmpeq_epi8(load_32(a), load_32(b)));
  }
  static std::uint32_t zero_32(const std::uint8_t* a) noexcept {
    return ones_from_low(_mm256_cmpeq_epi8(load_32(a), _mm256_setzero_si256()));
  }

  static void differences_16(std::uint8_t* out, const std::uint8_t* bytes, const std::uint8_t* from,
                             std::uint32_t period) noexcept {
    const __m128i reference = _mm_shuffle_epi8(load_16(from), repeat_row(period));
    store_16(out, _mm_sub_epi8(load_16(bytes), reference));
  }

  static std::uint64_t compress(std::uint64_t value, std::uint64_t mask) noexcept {
    return _pext_u64(value, mask);
  }
  static std::uint64_t expand(std::uint64_t bits, std::uint64_t mask) noexcept {
    return _pdep_u64(bits, mask);
  }

  class TokenSums {
   public:
    void add(const Tables::TokenBits& bits) noexcept {
      sums_ = _mm_add_epi16(sums_, _mm_cvtepu8_epi16(word(load<std::uint64_t>(bits.data()))));
    }
    [[nodiscard]] Least least() const noexcept { return least_of(sums_); }

   private:
    __m128i sums_ = _mm_setzero_si128();
  };

  class LiteralSums {
   public:
    void add(const Tables::LiteralBits& bits) noexcept {
      sums_ = _mm256_add_epi16(sums_, load_32(reinterpret_cast<const std::uint8_t*>(bits.data())));
    }
    [[nodiscard]] Least least() const noexcept {
      const Least low = least_of(_mm256_castsi256_si128(sums_));
      const Least high = least_of(_mm256_extracti128_si256(sums_, 1));
      return high.sum < low.sum ? Least{high.sum, high.index + 8} : low;
    }

   private:
    __m256i sums_ = _mm256_setzero_si256();
  };

  static std::uint64_t literal_masks(const LiteralTable& table, std::uint64_t classes) noexcept {
    return look_up(table.mask, classes);
  }
  static void literals_8(const LiteralTable& table, std::uint64_t ranks, std::uint64_t classes,
                         std::uint8_t* out) noexcept {
    const std::uint64_t places = static_cast<std::uint64_t>(
        _mm_cvtsi128_si64(_mm_add_epi8(word(ranks), word(look_up(table.base, classes)))));
    for (unsigned at = 0; at < 8; ++at) {
      out[at] = table.symbol[places >> 8 * at & 0xff];
    }
  }

  static constexpr std::ptrdiff_t kOvershoot = 32;

  static void copy_literals(std::uint8_t* to, const std::uint8_t* from) noexcept {
    store_32(to, load_32(from));
  }
  static void copy_match(std::uint8_t* to, std::uint64_t offset, std::uint32_t length) noexcept {
    const std::uint8_t* from = to - offset;
    std::uint8_t* const end = to + length;
    if (offset >= 32) {
      do {
        store_32(to, load_32(from));
        to += 32;
        from += 32;
      } while (to < end);
      return;
    }
    // The bytes before, over and over, in steps of whole periods.
    const __m128i repeated =
        _mm_shuffle_epi8(load_16(from), repeat_row(static_cast<std::uint32_t>(offset)));
    if (offset > 16) {
      do {
        store_16(to, load_16(from));
        to += 16;
        from += 16;
      } while (to < end);
      return;
    }
    const std::uint64_t step = 16 - 16 % offset;
    do {
      store_16(to, repeated);
      to += step;
    } while (to < end);
  }

 private:
  static __m256i load_32(const std::uint8_t* from) noexcept {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  static void store_32(std::uint8_t* to, __m256i bytes) noexcept {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bytes);
  }
  static __m128i load_16(const std::uint8_t* from) noexcept {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  }
  static void store_16(std::uint8_t* to, __m128i bytes) noexcept {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
  }
  static __m128i word(std::uint64_t value) noexcept {
    return _mm_cvtsi64_si128(static_cast<long long>(value));
  }
  static Least least_of(__m128i sums) noexcept {
    const __m128i least = _mm_minpos_epu16(sums);
    return {static_cast<std::uint32_t>(_mm_extract_epi16(least, 0)),
            static_cast<std::uint32_t>(_mm_extract_epi16(least, 1))};
  }
  static __m128i repeat_row(std::uint32_t period) noexcept {
    return load_16(kRepeatRows.row[period < 16 ? period : 16].data());
  }
  static std::uint64_t look_up(const std::array<std::uint8_t, kMaxLiteralClasses>& table,
                               std::uint64_t classes) noexcept {
    return static_cast<std::uint64_t>(
        _mm_cvtsi128_si64(_mm_shuffle_epi8(load_16(table.data()), word(classes))));
  }
  static std::uint32_t ones_from_low(__m256i equal) noexcept {
    return static_cast<std::uint32_t>(
        std::countr_one(static_cast<std::uint32_t>(_mm256_movemask_epi8(equal))));
  }
};

}  // namespace uzram::codec::pagez
