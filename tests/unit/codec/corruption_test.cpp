// decompress of bytes that are not what compress made: corrupt, or a full page; never a step
// outside its buffers.
#include <algorithm>
#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "codec_case.hpp"
#include "support/guarded_buffer.hpp"

namespace uzram::codec {
namespace {

class Corruption : public CodecTest {
 protected:
  // Decodes from and into buffers that touch inaccessible memory, on both sides.
  [[nodiscard]] Errc decode_guarded(std::span<const std::byte> bytes, std::size_t decoded_size) {
    Errc status = Errc::ok;
    for (const test::Guard guard : {test::Guard::before, test::Guard::after}) {
      const test::GuardedBuffer src(bytes, guard);
      const test::GuardedBuffer dst(decoded_size, guard);
      status = decompress(src.bytes(), dst.bytes());
      EXPECT_TRUE(status == Errc::ok || status == Errc::corrupt) << describe(status);
      EXPECT_TRUE(dst.is_slack_intact()) << "wrote outside the page";
      EXPECT_TRUE(same(src.bytes(), bytes)) << "changed its input";
    }
    return status;
  }

  [[nodiscard]] Errc decode_guarded(std::span<const std::byte> bytes) {
    return decode_guarded(bytes, page_size());
  }

  // What compress makes of sample_pages(), a part of them when that takes long.
  [[nodiscard]] std::vector<std::vector<std::byte>> packed_samples() {
    std::vector<std::vector<std::byte>> packed;
    const std::vector<std::vector<std::byte>> pages = sample_pages();
    for (std::size_t i = 0; i < pages.size(); i += GetParam().is_slow() ? 4 : 1) {
      packed.push_back(compressed(pages[i]));
    }
    return packed;
  }
};
UZRAM_FOR_EVERY_CODEC(Corruption);

TEST_P(Corruption, of_no_bytes_at_all_is_found) { EXPECT_EQ(decode_guarded({}), Errc::corrupt); }

TEST_P(Corruption, by_truncation_is_found) {
  Random random(6);
  for (const std::vector<std::byte>& packed : packed_samples()) {
    for (std::size_t i = 0; i < repeat(40); ++i) {
      // First all that lack a few bytes at the end, then any.
      const std::size_t length =
          i < repeat(16) && i < packed.size() ? packed.size() - 1 - i : random.below(packed.size());
      EXPECT_EQ(decode_guarded(std::span(packed).first(length)), Errc::corrupt)
          << length << " of " << packed.size() << " bytes";
    }
  }
}

TEST_P(Corruption, by_bytes_appended_is_found) {
  for (std::vector<std::byte> packed : packed_samples()) {
    for (const std::byte extra : {std::byte{0}, std::byte{0xff}}) {
      packed.push_back(extra);
      EXPECT_EQ(decode_guarded(packed), Errc::corrupt);
    }
  }
}

TEST_P(Corruption, by_flipped_bits_stays_inside_the_page) {
  Random random(7);
  std::size_t found = 0;
  for (const std::vector<std::byte>& packed : packed_samples()) {
    for (std::size_t i = 0; i < repeat(40); ++i) {
      std::vector<std::byte> damaged = packed;
      for (std::uint64_t flips = 1 + random.below(4); flips != 0; --flips) {
        // Half of them near the start, where the structure is.
        const std::size_t range =
            i % 2 == 0 ? std::min<std::size_t>(packed.size(), 16) : packed.size();
        damaged[random.below(range)] ^= static_cast<std::byte>(1U << random.below(8));
      }
      found += decode_guarded(damaged) == Errc::corrupt ? 1 : 0;
    }
  }
  EXPECT_GT(found, 0U);
}

TEST_P(Corruption, by_random_bytes_stays_inside_the_page) {
  Random random(8);
  std::size_t found = 0;
  for (std::size_t i = 0; i < repeat(1000); ++i) {
    std::vector<std::byte> noise(1 + random.below(page_size() / 8));
    random.fill(noise);
    found += decode_guarded(noise) == Errc::corrupt ? 1 : 0;
  }
  EXPECT_GT(found, repeat(1000) / 2);
}

TEST_P(Corruption, by_one_repeated_byte_stays_inside_the_page) {
  // With large pages every fifth value will do.
  for (unsigned value = 0; value < 256; value += page_size() == 4096 ? 1 : 5) {
    for (const std::size_t length : {std::size_t{1}, std::size_t{300}, page_size()}) {
      const std::vector<std::byte> bytes(length, static_cast<std::byte>(value));
      EXPECT_NE(decode_guarded(bytes), Errc::incompressible);
    }
  }
}

TEST_P(Corruption, is_reported_when_the_size_is_not_the_pages) {
  for (const std::vector<std::byte>& packed : packed_samples()) {
    for (const std::size_t size :
         {page_size() / 2, page_size() - 1, page_size() + 1, page_size() * 2}) {
      EXPECT_EQ(decode_guarded(packed, size), Errc::corrupt) << "into " << size << " bytes";
    }
  }
}

TEST_P(Corruption, leaves_the_workspace_usable) {
  Random random(9);
  std::vector<std::byte> page = sample_pages().front();
  const std::vector<std::byte> packed = compressed(page);
  for (int i = 0; i < 50; ++i) {
    std::vector<std::byte> damaged = packed;
    damaged.resize(1 + random.below(packed.size() - 1));
    damaged[random.below(damaged.size())] ^= std::byte{0x55};
    std::vector<std::byte> decoded(page_size());
    [[maybe_unused]] const Errc ignored = decompress(damaged, decoded);
    ASSERT_EQ(decompress(packed, decoded), Errc::ok);
    ASSERT_EQ(decoded, page);
  }
  EXPECT_TRUE(round_trips(page));
}

}  // namespace
}  // namespace uzram::codec
