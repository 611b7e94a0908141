// pagez: a compressor made for pages of memory; docs/pagez-format.md.
#include <array>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "codec/codecs.hpp"
#include "codec/pagez/kernel.hpp"
#include "codec/pagez/tables.hpp"

namespace uzram::codec {
namespace {

constexpr std::string_view kName = "pagez";
constexpr std::array<std::string_view, 3> kLevelNames = {"fast", "default", "high"};

struct AlignedDelete {
  void operator()(std::byte* memory) const noexcept {
    ::operator delete (memory, std::align_val_t{64});
  }
};

struct PagezWorkspace final : Workspace {
  explicit PagezWorkspace(std::uint32_t page_bytes) : encode(page_bytes) {}

  pagez::EncodeRoom encode;
  // For pages of more than 4 KiB.
  std::unique_ptr<std::byte, AlignedDelete> decode;
};

const std::uint8_t* octets(std::span<const std::byte> bytes) noexcept {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}
std::uint8_t* octets(std::span<std::byte> bytes) noexcept {
  return reinterpret_cast<std::uint8_t*>(bytes.data());
}

class Pagez final : public Codec {
 public:
  Pagez(int level, std::shared_ptr<const pagez::Tables> tables) noexcept
      : level_(level), tables_(std::move(tables)) {}

  std::string_view name() const noexcept override { return kName; }
  int level() const noexcept override { return level_; }
  bool decompress_needs_workspace() const noexcept override {
    return tables_->page_bits() > pagez::kMinPageBits;
  }

  Result<std::unique_ptr<Workspace>> make_workspace() const override {
    try {
      auto workspace = std::make_unique<PagezWorkspace>(page_bytes());
      if (decompress_needs_workspace()) {
        const std::size_t size = pagez::decode_room_bytes(tables_->page_bits());
        workspace->decode.reset(
            static_cast<std::byte*>(::operator new (size, std::align_val_t{64})));
        // Touched, so that the path takes no page fault for it.
        std::memset(workspace->decode.get(), 0, size);
      }
      return std::unique_ptr<Workspace>(std::move(workspace));
    } catch (const std::bad_alloc&) {
      return no_memory_for(kName);
    }
  }

  CompressResult compress(Workspace& workspace, std::span<const std::byte> src,
                          std::span<std::byte> dst) const noexcept override {
    pagez::EncodeRoom& room = own<PagezWorkspace>(workspace).encode;
    const std::uint32_t stored = pagez::header_bytes(tables_->page_bits()) + page_bytes();
    const auto limit = static_cast<std::uint32_t>(std::min<std::size_t>(dst.size(), page_bytes()));
    const std::uint32_t size = pagez::best_kernel().compress(
        *tables_, 0, static_cast<pagez::Level>(level_), room, octets(src), limit);
    if (size != 0) {
      std::memcpy(dst.data(), room.pack.object.data(), size);
      return {Errc::ok, size};
    }
    if (dst.size() < stored) {
      return {Errc::incompressible, 0};
    }
    // No tokens: the page as it is.
    std::memset(dst.data(), 0, stored - page_bytes());
    std::memcpy(dst.data() + stored - page_bytes(), src.data(), page_bytes());
    return {Errc::ok, stored};
  }

  Errc decompress(Workspace* workspace, std::span<const std::byte> src,
                  std::span<std::byte> dst) const noexcept override {
    const unsigned bits = tables_->page_bits();
    const std::uint32_t header = pagez::header_bytes(bits);
    if (src.size() <= header || dst.size() != page_bytes()) {
      return Errc::corrupt;
    }
    std::uint32_t first = 0;
    std::memcpy(&first, src.data(), header);
    const pagez::ObjectHeader fields = pagez::unpack_header(first, bits);
    if (fields.tokens == 0) {
      if (first != 0 || src.size() != header + dst.size()) {
        return Errc::corrupt;
      }
      std::memcpy(dst.data(), src.data() + header, dst.size());
      return Errc::ok;
    }
    if (src.size() >= dst.size() || fields.generation != 0) {
      return Errc::corrupt;
    }
    void* const room =
        workspace == nullptr ? nullptr : own<PagezWorkspace>(*workspace).decode.get();
    return pagez::best_kernel().decompress(*tables_, room, octets(src),
                                           static_cast<std::uint32_t>(src.size()), octets(dst));
  }

 private:
  [[nodiscard]] std::uint32_t page_bytes() const noexcept { return 1U << tables_->page_bits(); }

  const int level_;
  const std::shared_ptr<const pagez::Tables> tables_;
};

Result<std::unique_ptr<Codec>> make_pagez(int level, std::uint32_t page_size_bytes) {
  auto tables = pagez::Tables::builtin(static_cast<unsigned>(std::countr_zero(page_size_bytes)));
  if (!tables) {
    return tables.error();
  }
  std::unique_ptr<Codec> codec(new (std::nothrow) Pagez(level, std::move(*tables)));
  if (!codec) {
    return no_memory_for(kName);
  }
  return codec;
}

}  // namespace

CodecInfo pagez_info() noexcept {
  return {kName,
          static_cast<int>(pagez::Level::fast),
          static_cast<int>(pagez::Level::high),
          static_cast<int>(pagez::Level::normal),
          "1 is fast, 3 is high compression",
          make_pagez,
          kLevelNames};
}

}  // namespace uzram::codec
