#include "codec/pagez/emit.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace uzram::codec::pagez {
namespace {

// The literals of one token: the bytes that they are differences to repeat with the offset.
void emit_piece(Sequences::Cursor& out, const std::uint8_t* page, const std::uint8_t* from,
                std::uint32_t count, std::uint32_t offset) noexcept {
  std::memcpy(out.literal, from, count);
  std::uint8_t* const difference = out.literal + out.to_difference;
  if (from - page < static_cast<std::ptrdiff_t>(offset)) {
    std::memcpy(difference, from, count);
  } else {
    for (std::uint32_t at = 0; at < count; ++at) {
      difference[at] =
          static_cast<std::uint8_t>(from[at] - from[at % offset - std::ptrdiff_t{offset}]);
    }
  }
  out.literal += count;
}

// The rest of a match whose first token has been written.
void emit_rest(Sequences::Cursor& out, std::uint32_t rest, Source source) noexcept {
  while (rest >= kLongMatch) {
    const std::uint32_t step = std::min(
        kLongMatches - 1, static_cast<std::uint32_t>(std::bit_width(rest / kLongMatch)) - 1);
    const std::uint32_t left = rest - (kLongMatch << step);
    if (left != 0 && left < kMinMatch) {
      break;
    }
    *out.token++ = long_match_id(step, source);
    rest = left;
  }
  while (rest != 0) {
    std::uint32_t piece = std::min(rest, kMaxMatch);
    if (rest > piece && rest - piece < kMinMatch) {
      piece -= kMinMatch;
    }
    *out.token++ = match_id(0, piece, source);
    rest -= piece;
  }
}

}  // namespace

Sequences::Cursor emit(Sequences::Cursor out, const std::uint8_t* page, const std::uint8_t* anchor,
                       std::uint32_t literals, std::uint32_t match, Source source,
                       std::uint32_t offset) noexcept {
  const std::uint32_t most = match != 0 ? kMaxLiteralsOfMatch : kMaxLiteralsOfMatch + 1;
  while (literals > most) {
    const std::uint32_t piece = literals >= kMaxLiterals ? kMaxLiterals : kMaxLiteralsOfMatch + 1;
    emit_piece(out, page, anchor, piece, offset);
    *out.token++ = literals_id(piece);
    anchor += piece;
    literals -= piece;
  }
  emit_piece(out, page, anchor, literals, offset);
  if (match == 0) {
    if (literals != 0) {
      *out.token++ = literals_id(literals);
    }
    return out;
  }
  std::uint32_t first = std::min(match, kMaxMatch);
  if (match > first && match - first < kMinMatch) {
    first -= kMinMatch;
  }
  *out.token++ = match_id(literals, first, source);
  emit_rest(out, match - first, source == Source::zero ? Source::zero : Source::repeat);
  return out;
}

}  // namespace uzram::codec::pagez
