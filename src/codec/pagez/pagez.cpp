// pagez: a compressor made for pages of memory; docs/pagez-format.md.
//
// Tables of a generation are read through one pointer, which publish() sets once.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "codec/codecs.hpp"
#include "codec/pagez/kernel.hpp"
#include "codec/pagez/recipe_bytes.hpp"
#include "codec/pagez/tables.hpp"
#include "codec/pagez/trainer.hpp"
#include "codec/trainable.hpp"

namespace uzram::codec {
namespace {

constexpr std::string_view kName = "pagez";
constexpr std::array<std::string_view, 3> kLevelNames = {"fast", "default", "high"};

struct PagezWorkspace final : Workspace {
  explicit PagezWorkspace(std::uint32_t page_bytes) : encode(page_bytes) {}

  pagez::EncodeRoom encode;
  // For pages of more than 4 KiB.
  pagez::DecodeRoomMemory decode;
};

const std::uint8_t* octets(std::span<const std::byte> bytes) noexcept {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}
std::uint8_t* octets(std::span<std::byte> bytes) noexcept {
  return reinterpret_cast<std::uint8_t*>(bytes.data());
}

// One generation.
struct Generation final : TrainedTables {
  std::span<const std::byte> recipe() const noexcept override { return recipe_bytes; }
  std::size_t memory_bytes() const noexcept override {
    return tables->memory_bytes() + recipe_bytes.size() + sizeof *this;
  }

  // 0 until it is published, and for the program's.
  std::uint32_t number = 0;
  std::shared_ptr<const pagez::Tables> tables;
  std::vector<std::byte> recipe_bytes;
};

class Pagez final : public Codec, public TrainableCodec {
 public:
  Pagez(int level, std::shared_ptr<const pagez::Tables> tables) noexcept
      : level_(level), page_bits_(tables->page_bits()) {
    program_.tables = std::move(tables);
    generations_[0].store(&program_, std::memory_order_relaxed);
    newest_.store(&program_, std::memory_order_relaxed);
  }
  ~Pagez() override {
    for (std::size_t number = 1; number < generations_.size(); ++number) {
      delete generations_[number].load(std::memory_order_acquire);
    }
  }

  std::string_view name() const noexcept override { return kName; }
  int level() const noexcept override { return level_; }
  bool decompress_needs_workspace() const noexcept override {
    return page_bits_ > pagez::kMinPageBits;
  }
  TrainableCodec* trainable() noexcept override { return this; }

  Result<std::unique_ptr<Workspace>> make_workspace() const override {
    try {
      auto workspace = std::make_unique<PagezWorkspace>(page_bytes());
      if (decompress_needs_workspace()) {
        workspace->decode = pagez::make_decode_room(page_bits_);
        // Touched, so that the path takes no page fault for it.
        std::memset(workspace->decode.get(), 0, pagez::decode_room_bytes(page_bits_));
      }
      return std::unique_ptr<Workspace>(std::move(workspace));
    } catch (const std::bad_alloc&) {
      return no_memory_for(kName);
    }
  }

  CompressResult compress(Workspace& workspace, std::span<const std::byte> src,
                          std::span<std::byte> dst) const noexcept override {
    return compress_by(*newest_.load(std::memory_order_acquire), workspace, src, dst);
  }

  Errc decompress(Workspace* workspace, std::span<const std::byte> src,
                  std::span<std::byte> dst) const noexcept override {
    const std::uint32_t header = pagez::header_bytes(page_bits_);
    if (src.size() <= header || dst.size() != page_bytes()) {
      return Errc::corrupt;
    }
    std::uint32_t first = 0;
    std::memcpy(&first, src.data(), header);
    const pagez::ObjectHeader fields = pagez::unpack_header(first, page_bits_);
    if (fields.tokens == 0) {
      if (first != 0 || src.size() != header + dst.size()) {
        return Errc::corrupt;
      }
      std::memcpy(dst.data(), src.data() + header, dst.size());
      return Errc::ok;
    }
    const Generation* const by = generations_[fields.generation].load(std::memory_order_acquire);
    if (src.size() >= dst.size() || by == nullptr) {
      return Errc::corrupt;
    }
    void* const room =
        workspace == nullptr ? nullptr : own<PagezWorkspace>(*workspace).decode.get();
    return pagez::best_kernel().decompress(*by->tables, room, octets(src),
                                           static_cast<std::uint32_t>(src.size()), octets(dst));
  }

  std::uint32_t generation() const noexcept override {
    return newest_.load(std::memory_order_acquire)->number;
  }
  std::size_t max_recipe_bytes() const noexcept override {
    constexpr pagez::TrainSettings kSettings;
    return pagez::recipe_size_bytes(kSettings.token_codes, kSettings.literal_codes,
                                    kSettings.symbols);
  }
  std::size_t training_bytes(std::size_t pages) const noexcept override {
    // Tables of two rounds, and counts, are there at once.
    constexpr std::size_t kCountBytes = std::size_t{1} << 18;
    const std::size_t most_for_a_page = 2 * std::size_t{page_bytes()} + page_bytes() / 8;
    return std::min(pages * most_for_a_page, kMostTrainerBytes + most_for_a_page) +
           2 * program_.tables->memory_bytes() + kCountBytes;
  }

  Result<std::unique_ptr<TrainedTables>> train(Pages pages,
                                               const std::atomic<bool>& stop) const override {
    try {
      pagez::Trainer trainer(page_bits_, pagez::TrainSettings());
      for (const std::span<const std::byte> page : pages) {
        if (stop.load(std::memory_order_relaxed)) {
          return stopped();
        }
        trainer.add(page, 1);
        if (trainer.memory_bytes() >= kMostTrainerBytes) {
          break;
        }
      }
      if (trainer.pages() == 0) {
        return Error{Errc::invalid_argument, 0,
                     "training of pagez: no page to learn from; all are one word repeated"};
      }
      const std::optional<pagez::Recipe> recipe = trainer.train(stop);
      return recipe ? tables_of(*recipe) : stopped();
    } catch (const std::bad_alloc&) {
      return no_memory_for(kName);
    }
  }

  Result<std::unique_ptr<TrainedTables>> load(std::span<const std::byte> recipe) const override {
    try {
      const auto parsed = pagez::parse_recipe(recipe);
      return parsed ? tables_of(*parsed) : parsed.error();
    } catch (const std::bad_alloc&) {
      return no_memory_for(kName);
    }
  }

  CompressResult compress_with(const TrainedTables* tables, Workspace& workspace,
                               std::span<const std::byte> src,
                               std::span<std::byte> dst) const noexcept override {
    return tables == nullptr
               ? compress(workspace, src, dst)
               : compress_by(static_cast<const Generation&>(*tables), workspace, src, dst);
  }

  void publish(std::unique_ptr<TrainedTables> tables) noexcept override {
    auto* const published = static_cast<Generation*>(tables.release());
    published->number = generation() + 1;
    generations_[published->number].store(published, std::memory_order_release);
    newest_.store(published, std::memory_order_release);
  }

 private:
  static_assert(kMostGenerations == pagez::kGenerations - 1);
  // Enough for a thousand pages of most programs, and for fewer of those that take more.
  static constexpr std::size_t kMostTrainerBytes = std::size_t{3} << 20;

  [[nodiscard]] std::uint32_t page_bytes() const noexcept { return 1U << page_bits_; }

  [[nodiscard]] static Error stopped() {
    return {Errc::busy, 0, "training of pagez: it was stopped before its end"};
  }

  // Errors: those of Tables::make; bad_alloc.
  [[nodiscard]] Result<std::unique_ptr<TrainedTables>> tables_of(
      const pagez::Recipe& recipe) const {
    auto tables = pagez::Tables::make(recipe, page_bits_);
    if (!tables) {
      return tables.error();
    }
    auto made = std::make_unique<Generation>();
    made->tables = *std::move(tables);
    made->recipe_bytes = pagez::recipe_bytes(recipe);
    return std::unique_ptr<TrainedTables>(std::move(made));
  }

  [[nodiscard]] CompressResult compress_by(const Generation& by, Workspace& workspace,
                                           std::span<const std::byte> src,
                                           std::span<std::byte> dst) const noexcept {
    pagez::EncodeRoom& room = own<PagezWorkspace>(workspace).encode;
    const std::uint32_t stored = pagez::header_bytes(page_bits_) + page_bytes();
    const auto limit = static_cast<std::uint32_t>(std::min<std::size_t>(dst.size(), page_bytes()));
    const std::uint32_t size = pagez::best_kernel().compress(
        *by.tables, by.number, static_cast<pagez::Level>(level_), room, octets(src), limit);
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

  const int level_;
  const unsigned page_bits_;
  Generation program_;
  // By number; nullptr: not published.
  std::array<std::atomic<const Generation*>, pagez::kGenerations> generations_{};
  std::atomic<const Generation*> newest_{nullptr};
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
          kLevelNames,
          true};
}

}  // namespace uzram::codec
