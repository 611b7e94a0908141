// TrainableCodec: a codec that can be given tables made for the pages that it gets.
//
// Role: the codec's side of training (engine/training.hpp is the other). Tables come in generations:
// 0 are the program's, up to kMostGenerations more are trained and published one after the other.
// Pages are compressed with the newest; each object tells its generation. A recipe is what a
// generation's tables can be made from again, as bytes that may be kept.
// Units: bytes.
// Errors: of train and load, which allocate and take long; publish cannot fail.
// Threads: train, load and compress_with are used by one thread, publish by one at a time, which may be
// another; compress and decompress go on meanwhile in any number of them.
// Invariants: 1. A generation never changes once it is published, and lives as long as the codec.
// 2. Whoever sees an object of a generation that was published before sees its tables: publish
// releases them, and what was compressed since is released by whoever hands it on.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "uzram/error.hpp"

#include "codec/codec.hpp"

namespace uzram::codec {

inline constexpr std::uint32_t kMostGenerations = 15;

// Tables that are not in use, or not yet.
class TrainedTables {
 public:
  TrainedTables() = default;
  TrainedTables(const TrainedTables&) = delete;
  TrainedTables& operator=(const TrainedTables&) = delete;
  virtual ~TrainedTables() = default;

  [[nodiscard]] virtual std::span<const std::byte> recipe() const noexcept = 0;
  // Memory that they take, with the recipe.
  [[nodiscard]] virtual std::size_t memory_bytes() const noexcept = 0;
};

class TrainableCodec {
 public:
  using Pages = std::span<const std::span<const std::byte>>;

  TrainableCodec() = default;
  TrainableCodec(const TrainableCodec&) = delete;
  TrainableCodec& operator=(const TrainableCodec&) = delete;

  // The newest that was published; 0: none was.
  [[nodiscard]] virtual std::uint32_t generation() const noexcept = 0;
  // No recipe that train() makes is larger.
  [[nodiscard]] virtual std::size_t max_recipe_bytes() const noexcept = 0;
  // Most memory that train() takes for so many pages beside the pages.
  [[nodiscard]] virtual std::size_t training_bytes(std::size_t pages) const noexcept = 0;

  // Tables for pages like these; not all of them need be looked at. Errors: invalid_argument (nothing
  // can be learnt from them), busy (`stop` has become true), system (ENOMEM).
  [[nodiscard]] virtual Result<std::unique_ptr<TrainedTables>> train(
      Pages pages, const std::atomic<bool>& stop) const = 0;
  // Those of a recipe; bytes may follow it. Errors: corrupt, system (ENOMEM).
  [[nodiscard]] virtual Result<std::unique_ptr<TrainedTables>> load(
      std::span<const std::byte> recipe) const = 0;
  // compress() with `tables`; nullptr: the newest generation's.
  [[nodiscard]] virtual CompressResult compress_with(const TrainedTables* tables,
                                                     Workspace& workspace,
                                                     std::span<const std::byte> src,
                                                     std::span<std::byte> dst) const noexcept = 0;

  // Makes them generation() + 1. REQUIRES: tables of this codec; generation() < kMostGenerations.
  virtual void publish(std::unique_ptr<TrainedTables> tables) noexcept = 0;

 protected:
  ~TrainableCodec() = default;
};

}  // namespace uzram::codec
