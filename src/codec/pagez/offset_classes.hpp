// OffsetClasses: how an encoder writes an offset.
//
// Role: from an offset to its source and the bits that follow; the inverse is in the decoders.
// Threads: immutable.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "codec/pagez/format.hpp"

namespace uzram::codec::pagez {

struct OffsetClass {
  Source source;
  // Of offset - 1.
  std::uint8_t shift;
  // As many ones as bits are written.
  std::uint16_t mask;
};

class OffsetClasses {
 public:
  explicit constexpr OffsetClasses(unsigned page_bits) noexcept {
    for (unsigned bits = 0; bits <= kMaxPageBits; ++bits) {
      const Source aligned = bits <= 6   ? Source::aligned_3
                             : bits <= 9 ? Source::aligned_6
                                         : Source::aligned_9;
      any_[bits] = made(bits <= 8 ? Source::any_8 : Source::any_12, page_bits);
      aligned_[bits] = made(aligned, page_bits);
    }
  }

  // REQUIRES: 1 <= offset < page size.
  [[nodiscard]] const OffsetClass& operator[](std::uint32_t offset) const noexcept {
    const auto bits = static_cast<unsigned>(std::bit_width(offset - 1));
    return (offset & 7) == 0 ? aligned_[bits] : any_[bits];
  }

 private:
  static constexpr OffsetClass made(Source source, unsigned page_bits) noexcept {
    return {source, static_cast<std::uint8_t>(is_aligned(source) ? 3 : 0),
            static_cast<std::uint16_t>((1U << offset_bits(source, page_bits)) - 1)};
  }

  std::array<OffsetClass, kMaxPageBits + 1> any_{};
  std::array<OffsetClass, kMaxPageBits + 1> aligned_{};
};

// REQUIRES: kMinPageBits <= page_bits <= kMaxPageBits.
[[nodiscard]] inline const OffsetClasses& offset_classes(unsigned page_bits) noexcept {
  static constexpr std::array kAll = {OffsetClasses(12), OffsetClasses(13), OffsetClasses(14),
                                      OffsetClasses(15), OffsetClasses(16)};
  return kAll[page_bits - kMinPageBits];
}

}  // namespace uzram::codec::pagez
