// lz4hc: lz4's format, searched harder; as quick to decompress as lz4.
#include <new>

#include <lz4hc.h>

#include "codec/codecs.hpp"
#include "codec/lz4_decode.hpp"

namespace uzram::codec {
namespace {

constexpr std::string_view kName = "lz4hc";
// The library's levels 10 to 12 take memory from the heap at every call, which the path forbids.
constexpr int kMaxLevel = 9;

struct Lz4HcWorkspace final : Workspace {
  LZ4_streamHC_t state;
};

class Lz4Hc final : public Codec {
 public:
  explicit Lz4Hc(int level) noexcept : level_(level) {}

  std::string_view name() const noexcept override { return kName; }
  int level() const noexcept override { return level_; }
  bool decompress_needs_workspace() const noexcept override { return false; }

  Result<std::unique_ptr<Workspace>> make_workspace() const override {
    std::unique_ptr<Lz4HcWorkspace> workspace(new (std::nothrow) Lz4HcWorkspace());
    if (!workspace || LZ4_initStreamHC(&workspace->state, sizeof workspace->state) == nullptr) {
      return no_memory_for(kName);
    }
    return std::unique_ptr<Workspace>(std::move(workspace));
  }

  CompressResult compress(Workspace& workspace, std::span<const std::byte> src,
                          std::span<std::byte> dst) const noexcept override {
    // A stream that is reset keeps its tables and only moves on their origin, which saves clearing
    // 256 KiB for every page.
    LZ4_streamHC_t& state = own<Lz4HcWorkspace>(workspace).state;
    LZ4_resetStreamHC_fast(&state, level_);
    return lz4_result(LZ4_compress_HC_continue(&state, lz4_chars(src), lz4_chars(dst),
                                               static_cast<int>(src.size()),
                                               static_cast<int>(dst.size())));
  }

  Errc decompress(Workspace* /*workspace*/, std::span<const std::byte> src,
                  std::span<std::byte> dst) const noexcept override {
    return lz4_decode(src, dst);
  }

 private:
  const int level_;
};

Result<std::unique_ptr<Codec>> make_lz4hc(int level, std::uint32_t /*page_size_bytes*/) {
  std::unique_ptr<Codec> codec(new (std::nothrow) Lz4Hc(level));
  if (!codec) {
    return no_memory_for(kName);
  }
  return codec;
}

}  // namespace

CodecInfo lz4hc_info() noexcept {
  return {kName,     1, kMaxLevel, LZ4HC_CLEVEL_DEFAULT, "effort, higher is slower and smaller",
          make_lz4hc};
}

}  // namespace uzram::codec
