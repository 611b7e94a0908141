// pagez against the decoder that was written from its document: the same pages, the same refusals.
#include "support/pagez_reference.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "codec/codec.hpp"
#include "support/corpus.hpp"
#include "support/hostile.hpp"
#include "support/pagez_objects.hpp"

namespace uzram::codec {
namespace {

using Bytes = std::vector<std::uint8_t>;

class PagezReference : public testing::TestWithParam<unsigned> {
 protected:
  [[nodiscard]] static unsigned page_bits() { return GetParam(); }
  [[nodiscard]] static std::uint32_t page_bytes() { return 1U << page_bits(); }

  void SetUp() override {
    for (const int level : {1, 2, 3}) {
      auto codec = make("pagez", level, page_bytes());
      ASSERT_TRUE(codec) << codec.error().message;
      codecs_.push_back(*std::move(codec));
      auto workspace = codecs_.back()->make_workspace();
      ASSERT_TRUE(workspace) << workspace.error().message;
      workspaces_.push_back(*std::move(workspace));
    }
  }

  // Empty when the page is incompressible.
  [[nodiscard]] Bytes compressed(std::size_t at, const Bytes& page) {
    Bytes object(page_bytes() + 64);
    const CompressResult result =
        codecs_[at]->compress(*workspaces_[at], std::as_bytes(std::span(page)),
                              std::as_writable_bytes(std::span(object)));
    object.resize(result.status == Errc::ok ? result.size : 0);
    return object;
  }

  // The codec and the reference refuse `object`, or both take it and give the same page. Whether
  // they take it is counted.
  void expect_agreement(const Bytes& object) {
    const test::PagezDecoded expected = test::decode_pagez(object, page_bits());
    Bytes page(page_bytes());
    const Errc status =
        codecs_[0]->decompress(workspaces_[0].get(), std::as_bytes(std::span(object)),
                               std::as_writable_bytes(std::span(page)));
    ASSERT_EQ(status == Errc::ok, expected.corrupt.empty()) << expected.corrupt;
    if (status == Errc::ok) {
      ASSERT_EQ(page, expected.page);
      ++taken_;
    } else {
      ++refused_;
    }
  }

  [[nodiscard]] static std::vector<Bytes> pages() {
    std::vector<Bytes> all;
    const auto add = [&](std::span<const std::byte> page) {
      const auto* const from = reinterpret_cast<const std::uint8_t*>(page.data());
      all.emplace_back(from, from + page.size());
    };
    for (const test::HostilePage& page : test::hostile_pages(page_bytes(), 4)) {
      add(page.bytes);
    }
    for (const test::Corpus& corpus : test::sample_corpora()) {
      const auto pages = corpus.pages(page_bytes());
      std::for_each(pages.begin(), pages.begin() + std::min<std::ptrdiff_t>(std::ssize(pages), 12),
                    add);
    }
    return all;
  }

  std::vector<std::unique_ptr<Codec>> codecs_;
  std::vector<std::unique_ptr<Workspace>> workspaces_;
  std::size_t taken_ = 0;
  std::size_t refused_ = 0;
};

INSTANTIATE_TEST_SUITE_P(PageBits, PagezReference, testing::Values(12U, 13U, 14U, 15U, 16U));

TEST_P(PagezReference, gives_the_page_back_at_every_level) {
  std::size_t objects = 0;
  for (const Bytes& page : pages()) {
    for (std::size_t at = 0; at < codecs_.size(); ++at) {
      const Bytes object = compressed(at, page);
      if (!object.empty()) {
        const test::PagezDecoded decoded = test::decode_pagez(object, page_bits());
        ASSERT_EQ(decoded.corrupt, "");
        ASSERT_EQ(decoded.page, page);
        ++objects;
      }
    }
  }
  EXPECT_GT(objects, 100U);
}

TEST_P(PagezReference, takes_the_same_damaged_objects_as_the_codec) {
  Random random(11);
  for (const Bytes& page : pages()) {
    for (std::size_t at = 0; at < codecs_.size(); ++at) {
      const Bytes object = compressed(at, page);
      const std::size_t turns = object.empty() ? 0 : (60U >> (page_bits() - 12)) + 1;
      for (std::size_t turn = 0; turn < turns; ++turn) {
        ASSERT_NO_FATAL_FAILURE(expect_agreement(test::damaged_pagez_object(random, object)));
      }
    }
  }
  EXPECT_GT(taken_, 50U);
  EXPECT_GT(refused_, 50U);
}

TEST_P(PagezReference, takes_the_same_forged_objects_as_the_codec) {
  Random random(12);
  const int objects = (3000 >> (page_bits() - 12)) + 1;
  for (int turn = 0; turn < objects; ++turn) {
    const Bytes object = test::forged_pagez_object(random, page_bits());
    ASSERT_NO_FATAL_FAILURE(expect_agreement(object));
    ASSERT_NO_FATAL_FAILURE(expect_agreement(test::damaged_pagez_object(random, object)));
  }
  EXPECT_GT(taken_, 50U);
  EXPECT_GT(refused_, 50U);
}

TEST_P(PagezReference, refuses_coded_objects_that_are_as_large_as_their_page) {
  Random random(14);
  std::size_t as_large = 0;
  for (int turn = 0; turn < 20000 && as_large == 0; ++turn) {
    const Bytes object = test::forged_pagez_object(random, page_bits());
    if (object.size() == page_bytes()) {
      ASSERT_NO_FATAL_FAILURE(expect_agreement(object));
      ++as_large;
    }
  }
  EXPECT_EQ(refused_, 1U);
}

TEST_P(PagezReference, takes_the_same_random_bytes_as_the_codec) {
  Random random(13);
  for (int turn = 0; turn < 2000; ++turn) {
    Bytes object(random.below(600));
    std::ranges::generate(object, [&] { return static_cast<std::uint8_t>(random.below(256)); });
    ASSERT_NO_FATAL_FAILURE(expect_agreement(object));
  }
}

TEST_P(PagezReference, takes_stored_pages_of_just_their_size) {
  Bytes object(page_bytes() + (page_bits() == 12 ? 3 : 4));
  ASSERT_NO_FATAL_FAILURE(expect_agreement(object));
  EXPECT_EQ(taken_, 1U);
  for (std::size_t bit = 0; bit < 32; ++bit) {
    Bytes other = object;
    other[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    ASSERT_NO_FATAL_FAILURE(expect_agreement(other));
  }
  object.push_back(0);
  ASSERT_NO_FATAL_FAILURE(expect_agreement(object));
  object.resize(page_bytes());
  ASSERT_NO_FATAL_FAILURE(expect_agreement(object));
}

}  // namespace
}  // namespace uzram::codec
