// pagez: every kernel makes the same objects and accepts the same objects; tables are checked.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "codec/pagez/kernel.hpp"
#include "codec/pagez/trainer.hpp"
#include "support/corpus.hpp"
#include "support/hostile.hpp"

namespace uzram::codec::pagez {
namespace {

using Bytes = std::vector<std::uint8_t>;

class Pagez : public testing::TestWithParam<unsigned> {
 protected:
  [[nodiscard]] static unsigned page_bits() { return GetParam(); }
  [[nodiscard]] static std::uint32_t page_bytes() { return 1U << page_bits(); }

  void SetUp() override {
    auto tables = Tables::builtin(page_bits());
    ASSERT_TRUE(tables) << tables.error().message;
    tables_ = *tables;
    decode_room_ = make_decode_room(page_bits());
  }

  [[nodiscard]] Bytes packed(const Kernel& kernel, Level level, const Bytes& page) {
    const std::uint32_t size =
        kernel.compress(*tables_, 0, level, room_, page.data(), page_bytes());
    return {room_.pack.object.begin(), room_.pack.object.begin() + size};
  }

  // Empty: corrupt. The object lies in memory of just its size.
  [[nodiscard]] Bytes unpacked(const Kernel& kernel, const Bytes& object) {
    const std::unique_ptr<std::uint8_t[]> exact(new std::uint8_t[object.size()]);
    std::copy(object.begin(), object.end(), exact.get());
    Bytes page(page_bytes(), 0x5a);
    const Errc status = kernel.decompress(*tables_, decode_room_.get(), exact.get(),
                                          static_cast<std::uint32_t>(object.size()), page.data());
    return status == Errc::ok ? page : Bytes();
  }

  [[nodiscard]] static std::vector<const Kernel*> usable_kernels() {
    std::vector<const Kernel*> usable;
    std::ranges::copy_if(kernels(), std::back_inserter(usable),
                         [](const Kernel* kernel) { return kernel->is_usable(); });
    return usable;
  }

  // Of corpora and made to hurt; and some of random pieces of both.
  [[nodiscard]] static std::vector<Bytes> pages() {
    std::vector<Bytes> all;
    const auto add = [&](std::span<const std::byte> page) {
      const auto* const from = reinterpret_cast<const std::uint8_t*>(page.data());
      all.emplace_back(from, from + page.size());
    };
    for (const test::Corpus& corpus : test::sample_corpora()) {
      for (const auto page : corpus.pages(page_bytes())) {
        add(page);
      }
    }
    for (const test::HostilePage& page : test::hostile_pages(page_bytes(), 3)) {
      add(page.bytes);
    }
    Random random(5);
    for (std::size_t made = all.size() / 2; made != 0; --made) {
      all.push_back(patchwork(all, random));
    }
    return all;
  }

  [[nodiscard]] static Bytes patchwork(const std::vector<Bytes>& pages, Random& random) {
    Bytes page;
    while (page.size() < page_bytes()) {
      const Bytes& from = pages[random.below(pages.size())];
      const std::size_t begin = random.below(page_bytes());
      const std::size_t length = std::min(
          {random.below(200) + 1, page_bytes() - begin, std::uint64_t{page_bytes()} - page.size()});
      page.insert(page.end(), from.begin() + static_cast<std::ptrdiff_t>(begin),
                  from.begin() + static_cast<std::ptrdiff_t>(begin + length));
    }
    return page;
  }

  std::shared_ptr<const Tables> tables_;
  EncodeRoom room_{page_bytes()};
  DecodeRoomMemory decode_room_;
};

constexpr std::array kLevels = {Level::fast, Level::normal, Level::high};

INSTANTIATE_TEST_SUITE_P(PageBits, Pagez, testing::Values(12U, 13U, 14U, 15U, 16U));

TEST_P(Pagez, makes_the_same_object_by_every_kernel) {
  for (const Bytes& page : pages()) {
    for (const Level level : kLevels) {
      const Bytes expected = packed(portable_kernel(), level, page);
      for (const Kernel* const kernel : usable_kernels()) {
        ASSERT_EQ(packed(*kernel, level, page), expected) << kernel->name;
      }
    }
  }
}

TEST_P(Pagez, gives_the_page_back_by_every_kernel) {
  std::size_t compressible = 0;
  for (const Bytes& page : pages()) {
    for (const Level level : kLevels) {
      const Bytes object = packed(best_kernel(), level, page);
      if (object.empty()) {
        continue;
      }
      ++compressible;
      for (const Kernel* const kernel : usable_kernels()) {
        ASSERT_EQ(unpacked(*kernel, object), page) << kernel->name;
      }
    }
  }
  EXPECT_GT(compressible, 50U);
}

TEST_P(Pagez, accepts_the_same_damaged_objects_by_every_kernel) {
  Random random(9);
  std::size_t refused = 0;
  for (const Bytes& page : pages()) {
    const Bytes object = packed(best_kernel(), Level::normal, page);
    for (int turn = 0; turn < 20 && !object.empty(); ++turn) {
      Bytes damaged = object;
      const std::size_t range =
          random.below(2) == 0 ? std::min<std::size_t>(object.size(), 16) : object.size();
      damaged[random.below(range)] ^= static_cast<std::uint8_t>(1U << random.below(8));
      const Bytes expected = unpacked(portable_kernel(), damaged);
      refused += expected.empty() ? 1 : 0;
      for (const Kernel* const kernel : usable_kernels()) {
        ASSERT_EQ(unpacked(*kernel, damaged), expected) << kernel->name;
      }
    }
  }
  EXPECT_GT(refused, 100U);
}

TEST_P(Pagez, is_not_misled_by_random_objects) {
  Random random(10);
  for (int turn = 0; turn < 3000; ++turn) {
    Bytes object(header_bytes(page_bits()) + 1 + random.below(600));
    std::ranges::generate(object, [&] { return static_cast<std::uint8_t>(random.below(256)); });
    const Bytes expected = unpacked(portable_kernel(), object);
    for (const Kernel* const kernel : usable_kernels()) {
      ASSERT_EQ(unpacked(*kernel, object), expected) << kernel->name;
    }
  }
}

Recipe trained_on_samples(TrainSettings settings) {
  Trainer trainer(kMinPageBits, settings);
  for (const test::Corpus& corpus : test::sample_corpora()) {
    for (const auto page : corpus.pages(1U << kMinPageBits)) {
      trainer.add(page, 1);
    }
  }
  return trainer.train();
}

std::size_t bytes_of_samples(const Recipe& recipe) {
  const auto tables = Tables::make(recipe, kMinPageBits);
  EXPECT_TRUE(tables);
  EncodeRoom room(1U << kMinPageBits);
  std::size_t total = 0;
  for (const test::Corpus& corpus : test::sample_corpora()) {
    for (const auto page : corpus.pages(1U << kMinPageBits)) {
      const std::uint32_t size = best_kernel().compress(
          **tables, 0, Level::normal, room, reinterpret_cast<const std::uint8_t*>(page.data()),
          1U << kMinPageBits);
      total += size != 0 ? size : 1U << kMinPageBits;
    }
  }
  return total;
}

TEST(PagezTraining, makes_tables_that_suit_the_pages_better) {
  const Recipe trained = trained_on_samples(TrainSettings());
  EXPECT_TRUE(check(trained));
  EXPECT_LT(bytes_of_samples(trained), bytes_of_samples(builtin_recipe()) * 97 / 100);
}

TEST(PagezTraining, makes_the_same_tables_of_the_same_pages) {
  const Recipe first = trained_on_samples(TrainSettings());
  const Recipe second = trained_on_samples(TrainSettings());
  ASSERT_EQ(first.tokens.size(), second.tokens.size());
  for (std::size_t code = 0; code < first.tokens.size(); ++code) {
    EXPECT_EQ(first.tokens[code].symbols, second.tokens[code].symbols);
    EXPECT_EQ(first.tokens[code].width, second.tokens[code].width);
  }
}

TEST(PagezTraining, makes_sound_tables_of_one_page) {
  Trainer trainer(kMinPageBits, TrainSettings());
  const std::vector<test::HostilePage> pages = test::hostile_pages(1U << kMinPageBits, 1);
  for (const test::HostilePage& page : pages) {
    if (trainer.pages() == 0) {
      trainer.add(page.bytes, 1);
    }
  }
  ASSERT_EQ(trainer.pages(), 1U);
  EXPECT_TRUE(check(trainer.train()));
}

class PagezRecipe : public testing::Test {
 protected:
  void expect_refused(const std::string& why) {
    const Result<void> result = check(recipe_);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Errc::invalid_argument);
    EXPECT_NE(result.error().message.find(why), std::string::npos) << result.error().message;
    EXPECT_FALSE(Tables::make(recipe_, kMinPageBits));
  }

  Recipe recipe_ = builtin_recipe();
};

TEST_F(PagezRecipe, of_the_program_is_sound) { EXPECT_TRUE(check(recipe_)); }

TEST_F(PagezRecipe, without_codes_is_refused) {
  recipe_.tokens.clear();
  expect_refused("1 to 8 token codes");
}

TEST_F(PagezRecipe, with_an_odd_number_of_literal_codes_is_refused) {
  recipe_.literals.pop_back();
  expect_refused("even number of literal codes");
}

TEST_F(PagezRecipe, with_a_token_twice_is_refused) {
  recipe_.tokens[0].symbols[1] = recipe_.tokens[0].symbols[0];
  expect_refused("there twice");
}

TEST_F(PagezRecipe, without_a_basic_token_is_refused) {
  std::erase(recipe_.tokens[1].symbols, literals_id(1));
  expect_refused("is missing");
}

TEST_F(PagezRecipe, with_too_wide_classes_is_refused) {
  recipe_.tokens[0].width[0] = kMaxTokenWidth + 1;
  expect_refused("wider than 12 bits");
  recipe_ = builtin_recipe();
  recipe_.literals[0].width[0] = kMaxLiteralWidth + 1;
  expect_refused("wider than 7 bits");
}

TEST_F(PagezRecipe, with_too_small_classes_is_refused) {
  recipe_.tokens[0].width.fill(1);
  expect_refused("classes for 32 tokens");
  recipe_ = builtin_recipe();
  recipe_.literals[3].width.fill(1);
  expect_refused("fewer than 256 literals");
}

}  // namespace
}  // namespace uzram::codec::pagez
