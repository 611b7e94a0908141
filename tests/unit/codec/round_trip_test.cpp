// What goes in comes out: every codec, every kind of page, many threads.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "codec_case.hpp"
#include "support/corpus.hpp"
#include "support/hostile.hpp"

namespace uzram::codec {
namespace {

class RoundTrip : public CodecTest {};
UZRAM_FOR_EVERY_CODEC(RoundTrip);

TEST_P(RoundTrip, says_its_name_and_level) {
  EXPECT_EQ(codec_->name(), GetParam().info->name);
  EXPECT_EQ(codec_->level(), GetParam().level);
}

TEST_P(RoundTrip, gives_back_the_pages_of_the_corpora) {
  const Result<std::vector<test::Corpus>> corpora = test::load_corpora();
  ASSERT_TRUE(corpora) << corpora.error().message;
  for (const test::Corpus& corpus : *corpora) {
    const auto pages = corpus.pages(page_size());
    ASSERT_FALSE(pages.empty());
    const std::size_t stride =
        GetParam().is_slow() ? std::max<std::size_t>(pages.size() / 8, 1) : 1;
    for (std::size_t i = 0; i < pages.size(); i += stride) {
      ASSERT_TRUE(round_trips(pages[i])) << corpus.name << " page " << i;
    }
  }
}

TEST_P(RoundTrip, gives_back_hostile_pages) {
  for (const test::HostilePage& page : test::hostile_pages(page_size(), 2)) {
    EXPECT_TRUE(round_trips(page.bytes)) << page.name;
  }
}

TEST_P(RoundTrip, decodes_with_the_workspace_of_another_thread) {
  const std::vector<std::byte> page = sample_pages().front();
  const std::vector<std::byte> packed = compressed(page);
  Result<std::unique_ptr<Workspace>> other = codec_->make_workspace();
  ASSERT_TRUE(other) << other.error().message;
  std::vector<std::byte> decoded(page.size());
  ASSERT_EQ(codec_->decompress(other->get(), packed, decoded), Errc::ok);
  EXPECT_EQ(decoded, page);
}

TEST_P(RoundTrip, serves_many_threads_with_a_workspace_each) {
  const std::vector<std::vector<std::byte>> pages = sample_pages();
  constexpr std::size_t kThreads = 8;
  const std::size_t pages_each = GetParam().is_slow() ? 6 : repeat(40);
  std::atomic<std::size_t> good = 0;
  {
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        Result<std::unique_ptr<Workspace>> workspace = codec_->make_workspace();
        if (!workspace) {
          return;
        }
        std::vector<std::byte> room(ample());
        std::vector<std::byte> decoded(page_size());
        for (std::size_t i = 0; i < pages_each; ++i) {
          const std::vector<std::byte>& page = pages[(i + thread * 5) % pages.size()];
          const CompressResult result = codec_->compress(**workspace, page, room);
          if (result.status == Errc::ok &&
              codec_->decompress(workspace->get(), std::span(room).first(result.size), decoded) ==
                  Errc::ok &&
              decoded == page) {
            good.fetch_add(1, std::memory_order_relaxed);
          }
        }
      });
    }
  }
  EXPECT_EQ(good.load(), kThreads * pages_each);
}

}  // namespace
}  // namespace uzram::codec
