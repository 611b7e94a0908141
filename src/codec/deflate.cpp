// deflate: raw deflate blocks by libdeflate, without zlib's or gzip's framing.
#include <new>

#include <libdeflate.h>

#include "codec/codecs.hpp"

namespace uzram::codec {
namespace {

constexpr std::string_view kName = "deflate";

struct Free {
  void operator()(libdeflate_compressor* it) const noexcept { libdeflate_free_compressor(it); }
  void operator()(libdeflate_decompressor* it) const noexcept { libdeflate_free_decompressor(it); }
};

struct DeflateWorkspace final : Workspace {
  std::unique_ptr<libdeflate_compressor, Free> compressor;
  std::unique_ptr<libdeflate_decompressor, Free> decompressor;
};

class Deflate final : public Codec {
 public:
  explicit Deflate(int level) noexcept : level_(level) {}

  std::string_view name() const noexcept override { return kName; }
  int level() const noexcept override { return level_; }
  bool decompress_needs_workspace() const noexcept override { return true; }

  Result<std::unique_ptr<Workspace>> make_workspace() const override {
    std::unique_ptr<DeflateWorkspace> workspace(new (std::nothrow) DeflateWorkspace());
    if (workspace) {
      workspace->compressor.reset(libdeflate_alloc_compressor(level_));
      workspace->decompressor.reset(libdeflate_alloc_decompressor());
    }
    if (!workspace || !workspace->compressor || !workspace->decompressor) {
      return no_memory_for(kName);
    }
    return std::unique_ptr<Workspace>(std::move(workspace));
  }

  CompressResult compress(Workspace& workspace, std::span<const std::byte> src,
                          std::span<std::byte> dst) const noexcept override {
    const std::size_t size =
        libdeflate_deflate_compress(own<DeflateWorkspace>(workspace).compressor.get(), src.data(),
                                    src.size(), dst.data(), dst.size());
    if (size == 0) {
      return {Errc::incompressible, 0};
    }
    return {Errc::ok, static_cast<std::uint32_t>(size)};
  }

  Errc decompress(Workspace* workspace, std::span<const std::byte> src,
                  std::span<std::byte> dst) const noexcept override {
    // Without a place for the decoded size the library insists on exactly dst.size() bytes.
    std::size_t consumed = 0;
    const libdeflate_result result = libdeflate_deflate_decompress_ex(
        own<DeflateWorkspace>(*workspace).decompressor.get(), src.data(), src.size(), dst.data(),
        dst.size(), &consumed, nullptr);
    return result == LIBDEFLATE_SUCCESS && consumed == src.size() ? Errc::ok : Errc::corrupt;
  }

 private:
  const int level_;
};

Result<std::unique_ptr<Codec>> make_deflate(int level, std::uint32_t /*page_size_bytes*/) {
  std::unique_ptr<Codec> codec(new (std::nothrow) Deflate(level));
  if (!codec) {
    return no_memory_for(kName);
  }
  return codec;
}

}  // namespace

CodecInfo deflate_info() noexcept {
  // Level 0 of the library stores without compressing; a device does that by itself.
  return {kName, 1, 12, 6, "effort, higher is slower and smaller", make_deflate};
}

}  // namespace uzram::codec
