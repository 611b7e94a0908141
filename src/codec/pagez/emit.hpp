// Emit: a match and the literals before it, as tokens.
//
// Role: the matchers' way to write Sequences. The short form, nearly always the right one, is
// inline in the matcher; this is the whole.
// Errors: none; Sequences has room for any page.
// Threads: as Sequences.
#pragma once

#include <cstdint>

#include "codec/pagez/sequences.hpp"

namespace uzram::codec::pagez {

// Appends `literals` bytes from `anchor` on and, when `match` is not 0, a match. `page` is where the
// page begins, `offset` the last offset before the match.
// REQUIRES: match is 0 or at least kMinMatch.
[[nodiscard]] Sequences::Cursor emit(Sequences::Cursor out, const std::uint8_t* page,
                                     const std::uint8_t* anchor, std::uint32_t literals,
                                     std::uint32_t match, Source source,
                                     std::uint32_t offset) noexcept;

}  // namespace uzram::codec::pagez
