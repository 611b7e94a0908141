// Portable: what encoder and decoder need of a processor, in plain C++.
//
// Role: the Isa of processors without the others' instructions, and what those take over.
// Threads: pure functions.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "codec/pagez/bytes.hpp"
#include "codec/pagez/packer.hpp"
#include "codec/pagez/tables.hpp"

namespace uzram::codec::pagez {

struct Portable {
  static std::uint32_t equal_32(const std::uint8_t* a, const std::uint8_t* b) noexcept {
    return first_difference(
        [&](unsigned at) { return load<std::uint64_t>(a + at) ^ load<std::uint64_t>(b + at); });
  }
  static std::uint32_t zero_32(const std::uint8_t* a) noexcept {
    return first_difference([&](unsigned at) { return load<std::uint64_t>(a + at); });
  }

  static void differences_16(std::uint8_t* out, const std::uint8_t* bytes, const std::uint8_t* from,
                             std::uint32_t period) noexcept {
    for (std::uint32_t at = 0, source = 0; at < 16; ++at) {
      out[at] = static_cast<std::uint8_t>(bytes[at] - from[source]);
      source = source + 1 == period ? 0 : source + 1;
    }
  }

  // PEXT, for masks whose ones lie at the low end of each 16-bit lane, or are whole nibbles.
  static std::uint64_t compress(std::uint64_t value, std::uint64_t mask) noexcept {
    std::uint64_t bits = 0;
    unsigned count = 0;
    while (mask != 0) {
      const auto skip = static_cast<unsigned>(std::countr_zero(mask));
      mask >>= skip;
      value >>= skip;
      const auto ones = static_cast<unsigned>(std::countr_one(mask));
      const std::uint64_t low = ones == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << ones) - 1;
      bits |= (value & low) << count;
      count += ones;
      mask = ones == 64 ? 0 : mask >> ones;
      value = ones == 64 ? 0 : value >> ones;
    }
    return bits;
  }
  // PDEP: the inverse.
  static std::uint64_t expand(std::uint64_t bits, std::uint64_t mask) noexcept {
    std::uint64_t value = 0;
    unsigned at = 0;
    while (mask != 0) {
      const auto skip = static_cast<unsigned>(std::countr_zero(mask));
      mask >>= skip;
      at += skip;
      const auto ones = static_cast<unsigned>(std::countr_one(mask));
      const std::uint64_t low = ones == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << ones) - 1;
      value |= (bits & low) << at;
      at += ones;
      mask = ones == 64 ? 0 : mask >> ones;
      bits = ones == 64 ? 0 : bits >> ones;
    }
    return value;
  }

  static void literal_codes(const LiteralTable& table, const std::uint8_t* literals,
                            std::uint8_t* classes, std::uint8_t* ranks,
                            std::uint8_t* masks) noexcept {
    for (std::size_t at = 0; at < 64; ++at) {
      classes[at] = table.class_of[literals[at]];
      ranks[at] = table.rank_of[literals[at]];
      masks[at] = table.mask[classes[at]];
    }
  }

  template <typename Bits>
  class Sums {
   public:
    void add(const Bits& bits) noexcept {
      for (std::size_t at = 0; at < bits.size(); ++at) {
        sums_[at] = static_cast<std::uint16_t>(sums_[at] + bits[at]);
      }
    }
    [[nodiscard]] Least least() const noexcept {
      const auto found = std::min_element(sums_.begin(), sums_.end());
      return {*found, static_cast<std::uint32_t>(found - sums_.begin())};
    }

   private:
    std::array<std::uint16_t, std::tuple_size_v<Bits>> sums_{};
  };
  using TokenSums = Sums<Tables::TokenBits>;
  using LiteralSums = Sums<Tables::LiteralBits>;

  static std::uint64_t literal_masks(const LiteralTable& table, std::uint64_t classes) noexcept {
    return each_byte(classes, [&](std::uint64_t index) { return table.mask[index]; });
  }
  static void literals_8(const LiteralTable& table, std::uint64_t ranks, std::uint64_t classes,
                         std::uint8_t* out) noexcept {
    const std::uint64_t bases =
        each_byte(classes, [&](std::uint64_t index) { return table.base[index]; });
    for (unsigned at = 0; at < 64; at += 8) {
      *out++ = table.symbol[((ranks >> at) + (bases >> at)) & 0xff];
    }
  }

  // Of copy_match.
  static constexpr std::ptrdiff_t kOvershoot = 16;

  static void copy_literals(std::uint8_t* to, const std::uint8_t* from) noexcept {
    std::memcpy(to, from, kMaxLiterals);
  }
  static void copy_match(std::uint8_t* to, std::uint64_t offset, std::uint32_t length) noexcept {
    const std::uint8_t* from = to - offset;
    std::uint8_t* const end = to + length;
    if (offset >= 16) {
      for (; to < end; to += 16, from += 16) {
        std::memcpy(to, from, 16);
      }
    } else if (offset >= 8) {
      for (; to < end; to += 8, from += 8) {
        std::memcpy(to, from, 8);
      }
    } else {
      while (to < end) {
        *to++ = *from++;
      }
    }
  }

 private:
  template <typename Look>
  static std::uint64_t each_byte(std::uint64_t bytes, const Look& look) noexcept {
    std::uint64_t result = 0;
    for (unsigned at = 0; at < 64; at += 8) {
      result |= std::uint64_t{look(bytes >> at & 0xff)} << at;
    }
    return result;
  }

  template <typename Unlike>
  static std::uint32_t first_difference(const Unlike& unlike) noexcept {
    for (unsigned at = 0; at < 32; at += 8) {
      if (const std::uint64_t bits = unlike(at); bits != 0) {
        return at + static_cast<unsigned>(std::countr_zero(bits)) / 8;
      }
    }
    return 32;
  }
};

}  // namespace uzram::codec::pagez
