// DecodeRoom: what a decoder works in.
//
// Role: for pages of 4 KiB it lies on the stack, for larger ones in a workspace.
// Units: bytes, elements.
// Invariant: whatever an object says, its decoder stays inside: tokens are counted by the header,
// literals by the tokens, and the object's bytes are copied here, with room behind them for loads
// that reach beyond its end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "codec/pagez/format.hpp"

namespace uzram::codec::pagez {

template <unsigned kPageBits>
struct DecodeRoom {
  static constexpr std::size_t kPage = std::size_t{1} << kPageBits;
  static constexpr std::size_t kSlack = 64;
  static constexpr std::size_t kTokens = max_tokens(kPageBits) + 1 + kSlack;

  alignas(64) std::array<std::uint8_t, kPage + 2 * kSlack> object;
  alignas(64) std::array<std::uint16_t, kTokens> places;
  alignas(64) std::array<std::uint32_t, kTokens> entries;
  // Of tokens that have an offset: first its ones, then the offset itself.
  alignas(64) std::array<std::uint16_t, kTokens> masks;
  alignas(64) std::array<std::uint16_t, kTokens> offsets;
  alignas(64) std::array<std::uint8_t, kPage + 2 * kSlack> literals;
};

}  // namespace uzram::codec::pagez
