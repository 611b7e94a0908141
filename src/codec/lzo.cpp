// lzo: lzo1x-1, what zram used by default before lzo-rle. liblzo2 is under the GPL.
#include <cstring>
#include <new>
#include <utility>

#include <lzo/lzo1x.h>

#include "codec/codecs.hpp"

namespace uzram::codec {
namespace {

constexpr std::string_view kName = "lzo";

const unsigned char* lzo_bytes(std::span<const std::byte> bytes) noexcept {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

// The most that lzo1x_1 makes of `size` bytes (the LZO FAQ's formula).
constexpr std::size_t worst_case(std::size_t size) { return size + size / 16 + 64 + 3; }

struct LzoWorkspace final : Workspace {
  std::unique_ptr<unsigned char[]> dictionary;
  // lzo1x_1_compress knows no limit to its output, so it writes here first.
  std::unique_ptr<unsigned char[]> output;
};

class Lzo final : public Codec {
 public:
  explicit Lzo(std::uint32_t page_size_bytes) noexcept : page_size_bytes_(page_size_bytes) {}

  std::string_view name() const noexcept override { return kName; }
  int level() const noexcept override { return 1; }
  bool decompress_needs_workspace() const noexcept override { return false; }

  Result<std::unique_ptr<Workspace>> make_workspace() const override {
    std::unique_ptr<LzoWorkspace> workspace(new (std::nothrow) LzoWorkspace());
    if (workspace) {
      workspace->dictionary.reset(new (std::nothrow) unsigned char[LZO1X_1_MEM_COMPRESS]());
      workspace->output.reset(new (std::nothrow) unsigned char[worst_case(page_size_bytes_)]());
    }
    if (!workspace || !workspace->dictionary || !workspace->output) {
      return no_memory_for(kName);
    }
    return std::unique_ptr<Workspace>(std::move(workspace));
  }

  CompressResult compress(Workspace& workspace, std::span<const std::byte> src,
                          std::span<std::byte> dst) const noexcept override {
    LzoWorkspace& mine = own<LzoWorkspace>(workspace);
    lzo_uint size = 0;
    const int result = lzo1x_1_compress(lzo_bytes(src), src.size(), mine.output.get(), &size,
                                        mine.dictionary.get());
    if (result != LZO_E_OK || size > dst.size()) {
      return {Errc::incompressible, 0};
    }
    std::memcpy(dst.data(), mine.output.get(), size);
    return {Errc::ok, static_cast<std::uint32_t>(size)};
  }

  Errc decompress(Workspace* /*workspace*/, std::span<const std::byte> src,
                  std::span<std::byte> dst) const noexcept override {
    lzo_uint size = dst.size();
    const int result = lzo1x_decompress_safe(
        lzo_bytes(src), src.size(), reinterpret_cast<unsigned char*>(dst.data()), &size, nullptr);
    return result == LZO_E_OK && size == dst.size() ? Errc::ok : Errc::corrupt;
  }

 private:
  const std::uint32_t page_size_bytes_;
};

Result<std::unique_ptr<Codec>> make_lzo(int /*level*/, std::uint32_t page_size_bytes) {
  // Checks that the library was built with the sizes of types its header promises.
  if (lzo_init() != LZO_E_OK) {
    return Error{Errc::unsupported, 0,
                 "algorithm \"lzo\": liblzo2 does not fit this build; install the liblzo2 it was "
                 "built with or choose another algorithm"};
  }
  std::unique_ptr<Codec> codec(new (std::nothrow) Lzo(page_size_bytes));
  if (!codec) {
    return no_memory_for(kName);
  }
  return codec;
}

}  // namespace

CodecInfo lzo_info() noexcept { return {kName, 1, 1, 1, "lzo1x-1 has one level", make_lzo}; }

}  // namespace uzram::codec
