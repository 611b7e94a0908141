// What lz4 and lz4hc share: one block format and its decoder.
//
// Role: codec.hpp's contract in terms of lz4's C interface.
// Units: bytes; sizes fit an int because a page is at most 64 KiB.
// Errors: as in codec.hpp.
#pragma once

#include <cstddef>
#include <span>

#include <lz4.h>

#include "codec/codec.hpp"

namespace uzram::codec {

inline const char* lz4_chars(std::span<const std::byte> bytes) noexcept {
  return reinterpret_cast<const char*>(bytes.data());
}
inline char* lz4_chars(std::span<std::byte> bytes) noexcept {
  return reinterpret_cast<char*>(bytes.data());
}

// lz4 writes nothing beyond the room it is given and returns 0 when that does not do.
inline CompressResult lz4_result(int size) noexcept {
  if (size <= 0) {
    return {Errc::incompressible, 0};
  }
  return {Errc::ok, static_cast<std::uint32_t>(size)};
}

inline Errc lz4_decode(std::span<const std::byte> src, std::span<std::byte> dst) noexcept {
  const int size = LZ4_decompress_safe(lz4_chars(src), lz4_chars(dst), static_cast<int>(src.size()),
                                       static_cast<int>(dst.size()));
  return size == static_cast<int>(dst.size()) ? Errc::ok : Errc::corrupt;
}

}  // namespace uzram::codec
