// The codecs of this folder, for registry.cpp.
//
// Role: one function for each file that holds a codec. Errors, threads: codec.hpp.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>

#include "codec/codec.hpp"

namespace uzram::codec {

[[nodiscard]] CodecInfo lz4_info() noexcept;
[[nodiscard]] CodecInfo lz4hc_info() noexcept;
[[nodiscard]] CodecInfo zstd_info() noexcept;
[[nodiscard]] CodecInfo deflate_info() noexcept;
[[nodiscard]] CodecInfo pagez_info() noexcept;
#ifdef UZRAM_HAVE_LZO
[[nodiscard]] CodecInfo lzo_info() noexcept;
#endif

// The error of make_workspace and of CodecInfo::make when memory is short.
[[nodiscard]] inline Error no_memory_for(std::string_view codec_name) {
  return system_error("memory for " + std::string(codec_name), ENOMEM);
}

// A workspace as the codec that made it sees it. REQUIRES: that codec made it.
template <typename T>
[[nodiscard]] T& own(Workspace& workspace) noexcept {
  return static_cast<T&>(workspace);
}

}  // namespace uzram::codec
