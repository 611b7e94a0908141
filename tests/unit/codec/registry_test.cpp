#include <climits>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "codec/codec.hpp"
#include "support/corpus.hpp"

namespace uzram::codec {
namespace {

TEST(Registry, offers_the_codecs_of_this_build) {
#ifdef UZRAM_HAVE_LZO
  EXPECT_EQ(names(), "lz4, lz4hc, zstd, pagez, lzo, deflate");
#else
  EXPECT_EQ(names(), "lz4, lz4hc, zstd, pagez, deflate");
#endif
}

TEST(Registry, has_sound_lines) {
  std::set<std::string_view> seen;
  for (const CodecInfo& info : registry()) {
    EXPECT_TRUE(seen.insert(info.name).second) << info.name << " is there twice";
    EXPECT_LE(info.min_level, info.default_level) << info.name;
    EXPECT_LE(info.default_level, info.max_level) << info.name;
    EXPECT_FALSE(info.level_meaning.empty()) << info.name;
    EXPECT_EQ(find(info.name), &info);
  }
}

TEST(Registry, finds_no_codec_it_does_not_have) {
  for (const std::string_view name : {"", "LZ4", "lz", "lz4 ", "lz44", "842", "lz4, lz4hc"}) {
    EXPECT_EQ(find(name), nullptr) << name;
  }
}

TEST(Registry, takes_the_default_level_when_none_is_given) {
  for (const CodecInfo& info : registry()) {
    const Result<std::unique_ptr<Codec>> codec = make(info.name, std::nullopt, 4096);
    ASSERT_TRUE(codec) << codec.error().message;
    EXPECT_EQ(codec.value()->level(), info.default_level) << info.name;
  }
}

TEST(Registry, names_an_unknown_algorithm_and_the_known_ones) {
  const Result<std::unique_ptr<Codec>> codec = make("lz5", std::nullopt, 4096);
  ASSERT_FALSE(codec);
  EXPECT_EQ(codec.error().code, Errc::invalid_argument);
  EXPECT_EQ(codec.error().message, "algorithm \"lz5\": expected one of " + names());
}

TEST(Registry, names_a_level_out_of_range_and_the_range) {
  const Result<std::unique_ptr<Codec>> codec = make("lz4hc", 10, 4096);
  ASSERT_FALSE(codec);
  EXPECT_EQ(codec.error().code, Errc::invalid_argument);
  EXPECT_EQ(codec.error().message,
            "level 10: expected 1 to 9 for lz4hc (effort, higher is slower and smaller)");
}

TEST(Registry, refuses_every_level_just_out_of_range) {
  for (const CodecInfo& info : registry()) {
    for (const int level : {INT_MIN, info.min_level - 1, info.max_level + 1, INT_MAX}) {
      const Result<std::unique_ptr<Codec>> codec = make(info.name, level, 4096);
      ASSERT_FALSE(codec) << info.name << " took level " << level;
      EXPECT_EQ(codec.error().code, Errc::invalid_argument);
      EXPECT_NE(codec.error().message.find(std::to_string(level)), std::string::npos);
    }
  }
}

// Bytes that `pages` compress to.
std::size_t total_size(const CodecInfo& info, int level,
                       const std::vector<std::span<const std::byte>>& pages) {
  const Result<std::unique_ptr<Codec>> codec = make(info.name, level, 4096);
  EXPECT_TRUE(codec) << codec.error().message;
  Result<std::unique_ptr<Workspace>> workspace = codec.value()->make_workspace();
  EXPECT_TRUE(workspace) << workspace.error().message;
  std::vector<std::byte> room(2 * 4096);
  std::size_t total = 0;
  for (const std::span<const std::byte> page : pages) {
    const CompressResult result = codec.value()->compress(**workspace, page, room);
    EXPECT_EQ(result.status, Errc::ok);
    total += result.size;
  }
  return total;
}

TEST(Registry, makes_a_page_of_zeroes_much_smaller_by_default) {
  const std::vector<std::byte> zeroes(4096);
  for (const CodecInfo& info : registry()) {
    EXPECT_LT(total_size(info, info.default_level, {zeroes}), 64U) << info.name;
  }
}

TEST(Registry, hands_the_level_to_the_library) {
  for (const test::Corpus& corpus : test::sample_corpora()) {
    if (corpus.name != "sample-text") {
      continue;
    }
    for (const CodecInfo& info : registry()) {
      if (info.min_level == info.max_level) {
        continue;
      }
      const std::size_t low = total_size(info, info.min_level, corpus.pages());
      const std::size_t high = total_size(info, info.max_level, corpus.pages());
      if (info.name == "lz4") {
        EXPECT_LT(low, high) << "acceleration makes lz4's output larger";
      } else {
        EXPECT_GT(low, high) << info.name;
      }
    }
  }
}

}  // namespace
}  // namespace uzram::codec
