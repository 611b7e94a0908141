// Trained tables: what a TrainableCodec promises, and recipes as bytes.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/crc32c.hpp"
#include "base/random.hpp"
#include "codec/pagez/recipe_bytes.hpp"
#include "codec/pagez/trainer.hpp"
#include "codec/trainable.hpp"
#include "support/unusual_pages.hpp"

namespace uzram::codec {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint32_t kPage = 4096;
const std::atomic<bool> kNeverStop{false};

std::vector<std::span<const std::byte>> views(const std::vector<Bytes>& pages) {
  return {pages.begin(), pages.end()};
}

class Training : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto made = make(GetParam(), std::nullopt, kPage);
    ASSERT_TRUE(made) << made.error().message;
    codec_ = *std::move(made);
    ASSERT_NE(codec_->trainable(), nullptr);
    auto workspace = codec_->make_workspace();
    ASSERT_TRUE(workspace);
    workspace_ = *std::move(workspace);
  }

  [[nodiscard]] TrainableCodec& trainable() { return *codec_->trainable(); }
  [[nodiscard]] std::unique_ptr<TrainedTables> trained_for(const std::vector<Bytes>& pages) {
    auto tables = trainable().train(views(pages), kNeverStop);
    EXPECT_TRUE(tables) << tables.error().message;
    return tables ? *std::move(tables) : nullptr;
  }
  // Empty: incompressible.
  [[nodiscard]] Bytes packed(const Bytes& page, const TrainedTables* tables = nullptr) {
    Bytes object(kPage);
    const CompressResult result = trainable().compress_with(tables, *workspace_, page, object);
    object.resize(result.status == Errc::ok ? result.size : 0);
    return object;
  }
  [[nodiscard]] static Bytes unpacked(const Codec& codec, Workspace& workspace,
                                      const Bytes& object) {
    Bytes page(kPage);
    return codec.decompress(&workspace, object, page) == Errc::ok ? page : Bytes();
  }
  [[nodiscard]] std::size_t total(const std::vector<Bytes>& pages,
                                  const TrainedTables* tables = nullptr) {
    std::size_t sum = 0;
    for (const Bytes& page : pages) {
      const Bytes object = packed(page, tables);
      sum += object.empty() ? kPage : object.size();
    }
    return sum;
  }

  std::unique_ptr<Codec> codec_;
  std::unique_ptr<Workspace> workspace_;
};

std::vector<std::string> trainable_codecs() {
  std::vector<std::string> names;
  for (const CodecInfo& info : registry()) {
    if (info.trainable) {
      names.emplace_back(info.name);
    }
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Codecs, Training, testing::ValuesIn(trainable_codecs()),
                         [](const auto& param_info) { return param_info.param; });

TEST(Registry, tells_which_codecs_can_be_trained) {
  for (const CodecInfo& info : registry()) {
    const auto codec = make(info.name, std::nullopt, kPage);
    ASSERT_TRUE(codec);
    EXPECT_EQ((*codec)->trainable() != nullptr, info.trainable) << info.name;
  }
  EXPECT_EQ(trainable_names(), "pagez");
}

TEST_P(Training, saves_bytes_of_other_pages_of_the_same_kind) {
  const auto tables = trained_for(test::unusual_pages(400, 1));
  const auto others = test::unusual_pages(100, 2);
  EXPECT_LT(total(others, tables.get()) * 100, total(others) * 97);
}

TEST_P(Training, pages_are_compressed_with_the_newest_generation_and_old_objects_stay_readable) {
  std::vector<std::pair<Bytes, Bytes>> written;
  for (std::uint32_t generation = 1; generation <= kMostGenerations; ++generation) {
    const auto pages = test::unusual_pages(40, generation);
    written.emplace_back(pages[0], packed(pages[0]));
    auto tables = trained_for(pages);
    const std::size_t expected = packed(pages[1], tables.get()).size();
    trainable().publish(std::move(tables));
    EXPECT_EQ(trainable().generation(), generation);
    EXPECT_EQ(packed(pages[1]).size(), expected);
    written.emplace_back(pages[1], packed(pages[1]));
  }
  for (const auto& [page, object] : written) {
    EXPECT_EQ(unpacked(*codec_, *workspace_, object), page);
  }
}

TEST_P(Training, objects_of_an_unknown_generation_are_corrupt) {
  auto other = make(GetParam(), std::nullopt, kPage);
  ASSERT_TRUE(other);
  const auto pages = test::unusual_pages(40, 1);
  trainable().publish(trained_for(pages));
  const Bytes object = packed(pages[0]);
  ASSERT_FALSE(object.empty());
  EXPECT_EQ(unpacked(*codec_, *workspace_, object), pages[0]);
  Bytes page(kPage);
  EXPECT_EQ((*other)->decompress(workspace_.get(), object, page), Errc::corrupt);
}

TEST_P(Training, tables_are_made_again_from_their_recipe) {
  auto other = make(GetParam(), std::nullopt, kPage);
  ASSERT_TRUE(other);
  std::vector<std::pair<Bytes, Bytes>> written;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const auto pages = test::unusual_pages(40, seed);
    auto tables = trained_for(pages);
    EXPECT_LE(tables->recipe().size(), trainable().max_recipe_bytes());
    Bytes kept(tables->recipe().begin(), tables->recipe().end());
    kept.resize(trainable().max_recipe_bytes() + 100, std::byte{0xee});
    auto loaded = (*other)->trainable()->load(kept);
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_TRUE(std::ranges::equal((*loaded)->recipe(), tables->recipe()));
    (*other)->trainable()->publish(*std::move(loaded));
    trainable().publish(std::move(tables));
    for (const Bytes& page : pages) {
      written.emplace_back(page, packed(page));
    }
  }
  for (const auto& [page, object] : written) {
    EXPECT_EQ(unpacked(**other, *workspace_, object), page);
  }
}

TEST_P(Training, nothing_is_learnt_from_pages_of_one_word) {
  const std::vector<Bytes> pages(10, Bytes(kPage));
  const auto tables = trainable().train(views(pages), kNeverStop);
  ASSERT_FALSE(tables);
  EXPECT_EQ(tables.error().code, Errc::invalid_argument);
}

TEST_P(Training, takes_no_more_memory_however_many_pages_there_are) {
  EXPECT_LE(trainable().training_bytes(100000), std::size_t{4} << 20);
  EXPECT_LT(trainable().training_bytes(10), trainable().training_bytes(1000));
  // More of them than it can keep; nothing can be learnt from them, but how to say so.
  std::vector<Bytes> pages(500, Bytes(kPage));
  Random random(8);
  for (Bytes& page : pages) {
    random.fill(page);
  }
  EXPECT_TRUE(trainable().train(views(pages), kNeverStop));
}

TEST_P(Training, ends_when_it_is_told_to) {
  const std::atomic<bool> stop{true};
  const auto tables = trainable().train(views(test::unusual_pages(10, 1)), stop);
  ASSERT_FALSE(tables);
  EXPECT_EQ(tables.error().code, Errc::busy);
}

TEST_P(Training, readers_and_writers_go_on_while_generations_are_published) {
  const auto pages = test::unusual_pages(32, 5);
  std::vector<std::unique_ptr<TrainedTables>> generations;
  for (std::uint64_t seed = 0; seed < kMostGenerations; ++seed) {
    generations.push_back(trained_for(test::unusual_pages(16, seed)));
  }
  std::atomic<bool> done{false};
  std::array<std::atomic<Bytes*>, 32> objects{};
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      auto workspace = codec_->make_workspace();
      Random random(t);
      while (!done.load() && !testing::Test::HasFailure()) {
        const std::size_t at = random.below(pages.size());
        auto fresh = std::make_unique<Bytes>(kPage);
        const CompressResult result = codec_->compress(**workspace, pages[at], *fresh);
        ASSERT_EQ(result.status, Errc::ok);
        fresh->resize(result.size);
        // Whoever takes an object out decodes it, whichever thread made it.
        const std::unique_ptr<Bytes> taken(objects[at].exchange(fresh.release()));
        if (taken) {
          ASSERT_EQ(unpacked(*codec_, **workspace, *taken), pages[at]);
        }
      }
    });
  }
  for (auto& tables : generations) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    trainable().publish(std::move(tables));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  done.store(true);
  for (auto& thread : threads) {
    thread.join();
  }
  for (auto& object : objects) {
    delete object.load();
  }
  EXPECT_EQ(trainable().generation(), kMostGenerations);
}

}  // namespace

namespace pagez {
namespace {

// After damage: what the damage did is to be found, not only that there was some.
void set_checksum(Bytes& bytes, std::size_t size) {
  const std::uint32_t sum = crc32c(std::span(bytes).first(size - 4));
  for (std::size_t at = 0; at < 4; ++at) {
    bytes[size - 4 + at] = static_cast<std::byte>(sum >> 8 * at);
  }
}

TEST(RecipeBytes, of_the_program_come_back_as_they_were) {
  const Recipe& recipe = builtin_recipe();
  const Bytes bytes = recipe_bytes(recipe);
  const auto parsed = parse_recipe(bytes);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(recipe_bytes(*parsed), bytes);
  ASSERT_EQ(parsed->tokens.size(), recipe.tokens.size());
  ASSERT_EQ(parsed->literals.size(), recipe.literals.size());
  for (std::size_t at = 0; at < recipe.tokens.size(); ++at) {
    EXPECT_EQ(parsed->tokens[at].width, recipe.tokens[at].width);
    EXPECT_EQ(parsed->tokens[at].symbols, recipe.tokens[at].symbols);
  }
  for (std::size_t at = 0; at < recipe.literals.size(); ++at) {
    EXPECT_EQ(parsed->literals[at].class_bits, recipe.literals[at].class_bits);
    EXPECT_EQ(parsed->literals[at].width, recipe.literals[at].width);
    EXPECT_EQ(parsed->literals[at].symbols, recipe.literals[at].symbols);
  }
}

TEST(RecipeBytes, begin_as_the_format_says) {
  const Bytes bytes = recipe_bytes(builtin_recipe());
  const std::size_t size = bytes.size();
  const std::array<std::size_t, 12> expected = {
      'p', 'g', 'z', 'r', 1, 4, 32, 0, size & 255, size >> 8 & 255, size >> 16, 0};
  for (std::size_t at = 0; at < expected.size(); ++at) {
    EXPECT_EQ(std::to_integer<std::size_t>(bytes[at]), expected[at]) << at;
  }
}

TEST(RecipeBytes, that_are_cut_off_are_refused) {
  const Bytes bytes = recipe_bytes(builtin_recipe());
  for (std::size_t size = 0; size < bytes.size(); size += size < 64 ? 1 : 97) {
    const std::unique_ptr<std::byte[]> exact(new std::byte[size]);
    std::copy_n(bytes.begin(), size, exact.get());
    const auto parsed = parse_recipe({exact.get(), size});
    ASSERT_FALSE(parsed) << size;
    EXPECT_EQ(parsed.error().code, Errc::corrupt);
  }
}

TEST(RecipeBytes, with_one_bit_changed_are_refused) {
  const Bytes bytes = recipe_bytes(builtin_recipe());
  Random random(3);
  for (int turn = 0; turn < 500; ++turn) {
    Bytes damaged = bytes;
    damaged[random.below(bytes.size())] ^= static_cast<std::byte>(1U << random.below(8));
    EXPECT_FALSE(parse_recipe(damaged));
  }
}

TEST(RecipeBytes, whose_checksum_is_right_are_refused_or_sound) {
  const Bytes bytes = recipe_bytes(builtin_recipe());
  Random random(4);
  std::size_t refused = 0;
  for (int turn = 0; turn < 2000; ++turn) {
    Bytes damaged = bytes;
    for (std::uint64_t count = 1 + random.below(3); count != 0; --count) {
      const std::size_t range = random.below(2) == 0 ? 64 : bytes.size() - 4;
      damaged[random.below(range)] = static_cast<std::byte>(random.next());
    }
    set_checksum(damaged, damaged.size());
    const auto parsed = parse_recipe(damaged);
    if (!parsed) {
      EXPECT_EQ(parsed.error().code, Errc::corrupt);
      ++refused;
      continue;
    }
    EXPECT_TRUE(check(*parsed));
    EXPECT_EQ(recipe_bytes(*parsed), damaged);
  }
  EXPECT_GT(refused, 500U);
}

TEST(RecipeBytes, that_end_early_in_a_code_are_refused) {
  Bytes bytes = recipe_bytes(builtin_recipe());
  // One more token code than there is.
  bytes[5] = std::byte{5};
  set_checksum(bytes, bytes.size());
  EXPECT_FALSE(parse_recipe(bytes));
}

TEST(Recipe, a_code_may_not_use_the_place_that_stands_for_none) {
  Recipe recipe = builtin_recipe();
  TokenCode& code = recipe.tokens[0];
  code.width.fill(0);
  code.width.back() = kMaxTokenWidth;
  code.symbols.clear();
  for (const bool basic : {true, false}) {
    for (std::uint32_t id = 0; id < kTokenIds && code.symbols.size() < 15 + 4096; ++id) {
      Token token;
      if (token_of(id, token) && is_basic(token) == basic) {
        code.symbols.push_back(static_cast<TokenId>(id));
      }
    }
  }
  EXPECT_FALSE(check(recipe));
  code.symbols.pop_back();
  EXPECT_TRUE(check(recipe)) << check(recipe).error().message;
}

}  // namespace
}  // namespace pagez
}  // namespace uzram::codec
