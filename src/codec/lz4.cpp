// lz4: the fastest, and the default.
#include <new>

#include <lz4.h>

#include "codec/codecs.hpp"
#include "codec/lz4_decode.hpp"

namespace uzram::codec {
namespace {

constexpr std::string_view kName = "lz4";
// LZ4_ACCELERATION_MAX of lz4.c, which limits the value to it silently.
constexpr int kMaxAcceleration = 65537;

struct Lz4Workspace final : Workspace {
  // Has the size and the alignment that the library asks of a state.
  LZ4_stream_t state;
};

class Lz4 final : public Codec {
 public:
  explicit Lz4(int acceleration) noexcept : acceleration_(acceleration) {}

  std::string_view name() const noexcept override { return kName; }
  int level() const noexcept override { return acceleration_; }
  bool decompress_needs_workspace() const noexcept override { return false; }

  Result<std::unique_ptr<Workspace>> make_workspace() const override {
    // Value-initialised, hence touched: the path takes no page fault for it.
    std::unique_ptr<Workspace> workspace(new (std::nothrow) Lz4Workspace());
    if (!workspace) {
      return no_memory_for(kName);
    }
    return workspace;
  }

  CompressResult compress(Workspace& workspace, std::span<const std::byte> src,
                          std::span<std::byte> dst) const noexcept override {
    const int size = LZ4_compress_fast_extState(&own<Lz4Workspace>(workspace).state, lz4_chars(src),
                                                lz4_chars(dst), static_cast<int>(src.size()),
                                                static_cast<int>(dst.size()), acceleration_);
    return lz4_result(size);
  }

  Errc decompress(Workspace* /*workspace*/, std::span<const std::byte> src,
                  std::span<std::byte> dst) const noexcept override {
    return lz4_decode(src, dst);
  }

 private:
  const int acceleration_;
};

Result<std::unique_ptr<Codec>> make_lz4(int level, std::uint32_t /*page_size_bytes*/) {
  std::unique_ptr<Codec> codec(new (std::nothrow) Lz4(level));
  if (!codec) {
    return no_memory_for(kName);
  }
  return codec;
}

}  // namespace

CodecInfo lz4_info() noexcept {
  return {kName, 1, kMaxAcceleration, 1, "acceleration, higher is faster and larger", make_lz4};
}

}  // namespace uzram::codec
