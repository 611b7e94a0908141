// Trainer: a recipe from pages.
//
// Role: off the data path. bench/train/train makes the built-in recipe with it, a device its own.
// Method: pages are divided among the codes and the codes are made anew for the pages they have, in
// turns, as k-means does; a code's symbols are ranked by how often they occur and divided into
// classes of the best widths.
// Units: bits, bytes.
// Errors: none but bad_alloc.
// Threads: one at a time.
// Cost: about 3 KiB for each page of 4 KiB while it lives, 8 KiB for one without matches.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "codec/pagez/kernel.hpp"
#include "codec/pagez/recipe.hpp"
#include "codec/pagez/tables.hpp"

namespace uzram::codec::pagez {

struct TrainSettings {
  std::uint32_t token_codes = 4;
  // Half of them for differences.
  std::uint32_t literal_codes = 32;
  // Of each token code. More take longer to look up, fewer have to be said by two more often.
  std::uint32_t symbols = 3072;
  std::uint32_t rounds = 6;
};

class Trainer {
 public:
  Trainer(unsigned page_bits, TrainSettings settings);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Pages of one word repeated are left out. `weight`: so many times.
  void add(std::span<const std::byte> page, double weight);
  [[nodiscard]] std::size_t pages() const noexcept { return samples_.size(); }
  // What it keeps of the pages.
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return memory_bytes_; }

  // REQUIRES: pages() > 0.
  [[nodiscard]] Recipe train() const;
  // The same, but nothing soon after `stop` has become true.
  [[nodiscard]] std::optional<Recipe> train(const std::atomic<bool>& stop) const;

 private:
  struct Sample {
    double weight = 0;
    std::vector<TokenId> tokens;
    std::vector<std::uint8_t> literals;
    std::vector<std::uint8_t> differences;
    std::uint32_t offset_bits = 0;
  };
  // Which code each sample has.
  struct Shares {
    std::vector<std::uint32_t> token_code;
    std::vector<std::uint32_t> literal_code;
  };

  [[nodiscard]] Shares first_division() const;
  // Nothing when stopped.
  [[nodiscard]] std::optional<Recipe> recipe_for(const Shares& shares,
                                                 const std::atomic<bool>& stop) const;
  [[nodiscard]] TokenCode token_code_for(const Shares& shares, std::uint32_t code) const;
  [[nodiscard]] LiteralCode literal_code_for(const Shares& shares, std::uint32_t code) const;
  // False when stopped.
  [[nodiscard]] bool divide(const Tables& tables, Shares& shares,
                            const std::atomic<bool>& stop) const;

  const unsigned page_bits_;
  const TrainSettings settings_;
  std::unique_ptr<EncodeRoom> room_;
  std::vector<Sample> samples_;
  std::size_t memory_bytes_ = 0;
};

}  // namespace uzram::codec::pagez
