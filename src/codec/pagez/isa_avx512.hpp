// Avx512: what the encoder has of AVX-512 with VBMI; the rest is that of AVX2.
//
// Threads: pure functions.
#pragma once

#include <immintrin.h>

#include "codec/pagez/isa_avx2.hpp"

namespace uzram::codec::pagez {

// 64 bytes looked up in a table of 256, which is aligned.
inline __m512i look_up_256(const std::array<std::uint8_t, 256>& table, __m512i index) noexcept {
  const std::uint8_t* const at = table.data();
  const __m512i low =
      _mm512_permutex2var_epi8(_mm512_load_si512(at), index, _mm512_load_si512(at + 64));
  const __m512i high =
      _mm512_permutex2var_epi8(_mm512_load_si512(at + 128), index, _mm512_load_si512(at + 192));
  return _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(index), high);
}

// 16 bytes, four times.
inline __m512i four_times(const std::array<std::uint8_t, 16>& bytes) noexcept {
  return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes.data())));
}

struct Avx512 : Avx2 {
  static void literal_codes(const LiteralTable& table, const std::uint8_t* literals,
                            std::uint8_t* classes, std::uint8_t* ranks,
                            std::uint8_t* masks) noexcept {
    const __m512i bytes = _mm512_loadu_si512(literals);
    const __m512i each = look_up_256(table.class_of, bytes);
    _mm512_storeu_si512(classes, each);
    _mm512_storeu_si512(ranks, look_up_256(table.rank_of, bytes));
    _mm512_storeu_si512(masks, _mm512_shuffle_epi8(four_times(table.mask), each));
  }
};

}  // namespace uzram::codec::pagez
