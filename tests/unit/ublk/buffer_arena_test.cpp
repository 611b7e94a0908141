#include "frontend/ublk/buffer_arena.hpp"

#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace uzram::ublk {
namespace {

constexpr std::size_t kUnit = BufferArena::kUnitBytes;

std::unique_ptr<BufferArena> arena_of(std::size_t units) {
  auto made = BufferArena::create(units * kUnit, false);
  EXPECT_TRUE(made.has_value());
  return std::move(*made);
}

TEST(BufferArena, hands_out_all_of_its_memory_and_no_more) {
  const auto arena = arena_of(70);
  std::vector<std::byte*> pieces;
  for (int i = 0; i < 70; ++i) {
    pieces.push_back(arena->take(kUnit));
    ASSERT_NE(pieces.back(), nullptr) << i;
    std::memset(pieces.back(), i, kUnit);
  }
  EXPECT_EQ(arena->take(1), nullptr);
  for (int i = 0; i < 70; ++i) {
    EXPECT_EQ(std::to_integer<int>(pieces[static_cast<std::size_t>(i)][kUnit - 1]), i);
  }
}

TEST(BufferArena, a_piece_that_was_given_back_is_handed_out_again) {
  const auto arena = arena_of(4);
  std::byte* const first = arena->take(2 * kUnit);
  ASSERT_NE(arena->take(2 * kUnit), nullptr);
  EXPECT_EQ(arena->take(1), nullptr);
  arena->give_back(first, 2 * kUnit);
  EXPECT_EQ(arena->take(2 * kUnit), first);
}

TEST(BufferArena, sizes_are_rounded_up_to_units) {
  const auto arena = arena_of(2);
  std::byte* const one = arena->take(512);
  ASSERT_NE(one, nullptr);
  std::byte* const other = arena->take(kUnit);
  EXPECT_EQ(other - one, static_cast<std::ptrdiff_t>(kUnit));
  EXPECT_EQ(arena->take(512), nullptr);
}

TEST(BufferArena, a_large_piece_needs_neighbouring_units) {
  const auto arena = arena_of(128);
  std::vector<std::byte*> pieces;
  for (int i = 0; i < 128; ++i) {
    pieces.push_back(arena->take(kUnit));
  }
  for (std::size_t i = 0; i < pieces.size(); i += 2) {
    arena->give_back(pieces[i], kUnit);
  }
  EXPECT_EQ(arena->take(2 * kUnit), nullptr);
  arena->give_back(pieces[63], kUnit);
  // Units 62 to 64 are free, over the end of a word.
  EXPECT_EQ(arena->take(3 * kUnit), pieces[62]);
}

TEST(BufferArena, all_of_it_in_one_piece) {
  for (const std::size_t units : {1U, 63U, 64U, 65U, 200U}) {
    const auto arena = arena_of(units);
    std::byte* const piece = arena->take(units * kUnit);
    ASSERT_NE(piece, nullptr) << units;
    std::memset(piece, 1, units * kUnit);
    EXPECT_EQ(arena->take(1), nullptr);
    arena->give_back(piece, units * kUnit);
    EXPECT_EQ(arena->take(1), piece);
  }
}

TEST(BufferArena, memory_can_be_taken_beforehand) {
  const auto made = BufferArena::create(64 * kUnit, true);
  ASSERT_TRUE(made.has_value()) << made.error().message;
  EXPECT_EQ((*made)->size_bytes(), 64 * kUnit);
}

TEST(BufferArena, more_than_there_is_address_space_is_refused_with_its_size) {
  const auto made = BufferArena::create(std::size_t{1} << 60, false);
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code, Errc::no_space);
  EXPECT_NE(made.error().message.find("1E of buffers"), std::string::npos) << made.error().message;
}

// Random pieces in flight never overlap, and all of them come back.
TEST(BufferArena, pieces_in_flight_never_overlap) {
  constexpr std::size_t kUnits = 150;
  const auto arena = arena_of(kUnits);
  Random random(7);
  std::map<std::byte*, std::size_t> pieces;
  for (int step = 0; step < 20'000; ++step) {
    if (random.below(2) == 0 && !pieces.empty()) {
      auto piece = pieces.begin();
      std::advance(piece, static_cast<std::ptrdiff_t>(random.below(pieces.size())));
      arena->give_back(piece->first, piece->second);
      pieces.erase(piece);
      continue;
    }
    const std::size_t bytes = 512 * (1 + random.below(8 * 40));
    std::byte* const piece = arena->take(bytes);
    if (piece == nullptr) {
      continue;
    }
    const auto next = pieces.lower_bound(piece);
    ASSERT_TRUE(next == pieces.end() || piece + bytes <= next->first);
    ASSERT_TRUE(next == pieces.begin() ||
                std::prev(next)->first + std::prev(next)->second <= piece);
    pieces[piece] = bytes;
  }
  for (const auto& [piece, bytes] : pieces) {
    arena->give_back(piece, bytes);
  }
  EXPECT_NE(arena->take(kUnits * kUnit), nullptr);
}

}  // namespace
}  // namespace uzram::ublk
