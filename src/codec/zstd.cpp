// zstd: one magicless frame a page, by contexts that are kept.
//
// A frame is a 2-byte header (the descriptor, which is 0, and the window), then blocks. Nothing
// else may precede, follow or be in it: the pool knows where an object ends.
#include <bit>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

// The frame format is a parameter that zstd.h calls experimental; the library has it either way.
#define ZSTD_STATIC_LINKING_ONLY  // NOLINT(readability-identifier-naming)
#include <zstd.h>

#include "codec/codecs.hpp"

namespace uzram::codec {
namespace {

constexpr std::string_view kName = "zstd";
constexpr std::size_t kHeaderBytes = 2;
constexpr std::size_t kBlockHeaderBytes = 3;

struct Free {
  void operator()(ZSTD_CCtx* it) const noexcept { ZSTD_freeCCtx(it); }
  void operator()(ZSTD_DCtx* it) const noexcept { ZSTD_freeDCtx(it); }
};

struct ZstdWorkspace final : Workspace {
  std::unique_ptr<ZSTD_CCtx, Free> compressor;
  std::unique_ptr<ZSTD_DCtx, Free> decompressor;
};

struct Parameter {
  ZSTD_cParameter name;
  int value;
};

// Whether `src` is one frame as compress makes them, from its first byte to its last. The library
// would go on to a second frame, or take the first bytes for those of a skippable frame or of one
// from before version 1.0, whose decoder takes memory from the heap.
bool is_one_frame(std::span<const std::byte> src) noexcept {
  if (src.size() < kHeaderBytes || src[0] != std::byte{0}) {
    return false;
  }
  std::size_t at = kHeaderBytes;
  bool last = false;
  while (!last) {
    if (src.size() - at < kBlockHeaderBytes) {
      return false;
    }
    const std::uint32_t header = std::to_integer<std::uint32_t>(src[at]) |
                                 std::to_integer<std::uint32_t>(src[at + 1]) << 8 |
                                 std::to_integer<std::uint32_t>(src[at + 2]) << 16;
    constexpr std::uint32_t kRunOfOneByte = 1;
    const std::size_t stored = ((header >> 1) & 3) == kRunOfOneByte ? 1 : header >> 3;
    at += kBlockHeaderBytes;
    if (src.size() - at < stored) {
      return false;
    }
    at += stored;
    last = (header & 1) != 0;
  }
  return at == src.size();
}

class Zstd final : public Codec {
 public:
  Zstd(int level, std::uint32_t page_size_bytes) noexcept
      : level_(level), page_size_bytes_(page_size_bytes) {}

  std::string_view name() const noexcept override { return kName; }
  int level() const noexcept override { return level_; }
  bool decompress_needs_workspace() const noexcept override { return true; }

  Result<std::unique_ptr<Workspace>> make_workspace() const override {
    std::unique_ptr<ZstdWorkspace> workspace(new (std::nothrow) ZstdWorkspace());
    if (workspace) {
      workspace->compressor.reset(ZSTD_createCCtx());
      workspace->decompressor.reset(ZSTD_createDCtx());
    }
    if (!workspace || !workspace->compressor || !workspace->decompressor) {
      return no_memory_for(kName);
    }
    if (Result<void> set = configure(*workspace); !set) {
      return set.error();
    }
    // The library takes a compressor's memory when it first knows the size of the input.
    const std::vector<std::byte> page(page_size_bytes_);
    std::vector<std::byte> room(ZSTD_compressBound(page_size_bytes_));
    if (compress(*workspace, page, room).status != Errc::ok) {
      return no_memory_for(kName);
    }
    return std::unique_ptr<Workspace>(std::move(workspace));
  }

  CompressResult compress(Workspace& workspace, std::span<const std::byte> src,
                          std::span<std::byte> dst) const noexcept override {
    const std::size_t size = ZSTD_compress2(own<ZstdWorkspace>(workspace).compressor.get(),
                                            dst.data(), dst.size(), src.data(), src.size());
    if (ZSTD_isError(size) != 0) {
      return {Errc::incompressible, 0};
    }
    return {Errc::ok, static_cast<std::uint32_t>(size)};
  }

  Errc decompress(Workspace* workspace, std::span<const std::byte> src,
                  std::span<std::byte> dst) const noexcept override {
    if (!is_one_frame(src)) {
      return Errc::corrupt;
    }
    const std::size_t size = ZSTD_decompressDCtx(own<ZstdWorkspace>(*workspace).decompressor.get(),
                                                 dst.data(), dst.size(), src.data(), src.size());
    return size == dst.size() ? Errc::ok : Errc::corrupt;
  }

 private:
  Result<void> configure(ZstdWorkspace& workspace) const {
    const Parameter parameters[] = {
        {ZSTD_c_compressionLevel, level_},
        {ZSTD_c_windowLog, std::countr_zero(page_size_bytes_)},
        {ZSTD_c_contentSizeFlag, 0},
        {ZSTD_c_checksumFlag, 0},
        {ZSTD_c_dictIDFlag, 0},
        {ZSTD_c_format, ZSTD_f_zstd1_magicless},
    };
    std::size_t result = 0;
    for (const Parameter& parameter : parameters) {
      result = ZSTD_CCtx_setParameter(workspace.compressor.get(), parameter.name, parameter.value);
      if (ZSTD_isError(result) != 0) {
        return refused(result);
      }
    }
    result =
        ZSTD_DCtx_setParameter(workspace.decompressor.get(), ZSTD_d_format, ZSTD_f_zstd1_magicless);
    if (ZSTD_isError(result) != 0) {
      return refused(result);
    }
    return {};
  }

  static Error refused(std::size_t result) {
    return {Errc::unsupported, 0,
            std::string("algorithm \"zstd\": libzstd refuses a parameter (") +
                ZSTD_getErrorName(result) + "); install libzstd 1.5 or choose another algorithm"};
  }

  const int level_;
  const std::uint32_t page_size_bytes_;
};

Result<std::unique_ptr<Codec>> make_zstd(int level, std::uint32_t page_size_bytes) {
  std::unique_ptr<Codec> codec(new (std::nothrow) Zstd(level, page_size_bytes));
  if (!codec) {
    return no_memory_for(kName);
  }
  return codec;
}

}  // namespace

CodecInfo zstd_info() noexcept {
  return {kName,
          ZSTD_minCLevel(),
          ZSTD_maxCLevel(),
          ZSTD_CLEVEL_DEFAULT,
          "higher is slower and smaller, below 0 faster without entropy-coded literals",
          make_zstd};
}

}  // namespace uzram::codec
