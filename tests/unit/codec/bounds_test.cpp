// compress stays inside the room it is given, whatever the room.
#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "codec_case.hpp"
#include "support/guarded_buffer.hpp"

namespace uzram::codec {
namespace {

class Bounds : public CodecTest {
 protected:
  // Room sizes worth trying for a page that compresses to `size` bytes.
  [[nodiscard]] std::set<std::size_t> rooms(std::size_t size, Random& random) const {
    std::set<std::size_t> rooms = {page_size() - 1, page_size(), page_size() + 1, ample()};
    for (std::size_t small = 1; small <= repeat(24); ++small) {
      rooms.insert(small);
    }
    const std::size_t reach = repeat(12);
    for (std::size_t near = size > reach ? size - reach : 1; near <= size + reach; ++near) {
      rooms.insert(near);
    }
    for (int i = 0; i < 8; ++i) {
      rooms.insert(1 + random.below(page_size()));
    }
    return rooms;
  }

  // Where the buffers touch inaccessible memory decides what a mistake would hit.
  void check(std::span<const std::byte> page, std::size_t room, test::Guard guard) {
    const test::GuardedBuffer src(page, guard);
    const test::GuardedBuffer dst(room, guard);
    const CompressResult result = compress(src.bytes(), dst.bytes());
    ASSERT_TRUE(dst.is_slack_intact()) << "wrote beyond " << room << " bytes";
    ASSERT_TRUE(same(src.bytes(), page)) << "changed its input";
    if (result.status != Errc::ok) {
      ASSERT_EQ(result.status, Errc::incompressible);
      ASSERT_LT(room, ample()) << "ample room is always enough";
      return;
    }
    ASSERT_GE(result.size, 1U);
    ASSERT_LE(result.size, room);
    const test::GuardedBuffer packed(dst.bytes().first(result.size), guard);
    const test::GuardedBuffer decoded(page.size(), guard);
    ASSERT_EQ(decompress(packed.bytes(), decoded.bytes()), Errc::ok);
    ASSERT_TRUE(decoded.is_slack_intact());
    ASSERT_TRUE(same(decoded.bytes(), page));
  }
};
UZRAM_FOR_EVERY_CODEC(Bounds);

TEST_P(Bounds, hold_for_every_room) {
  Random random(3);
  const std::vector<std::vector<std::byte>> pages = sample_pages();
  const std::size_t stride = GetParam().is_slow() ? 7 : 1;
  for (std::size_t i = 0; i < pages.size(); i += stride) {
    for (const std::size_t room : rooms(compressed(pages[i]).size(), random)) {
      check(pages[i], room, room % 2 == 0 ? test::Guard::before : test::Guard::after);
      ASSERT_FALSE(HasFatalFailure()) << "page " << i << ", room " << room;
    }
  }
}

TEST_P(Bounds, make_random_bytes_incompressible_in_a_page_or_less) {
  Random random(4);
  std::vector<std::byte> page(page_size());
  random.fill(page);
  for (const std::size_t room : {page_size(), page_size() - 1, page_size() / 2}) {
    std::vector<std::byte> dst(room);
    EXPECT_EQ(compress(page, dst).status, Errc::incompressible) << "room " << room;
  }
}

TEST_P(Bounds, let_a_workspace_go_on_after_a_page_that_did_not_fit) {
  Random random(5);
  std::vector<std::byte> noise(page_size());
  random.fill(noise);
  for (const std::vector<std::byte>& page : sample_pages()) {
    std::vector<std::byte> dst(64);
    ASSERT_EQ(compress(noise, dst).status, Errc::incompressible);
    ASSERT_TRUE(round_trips(page));
    if (GetParam().is_slow()) {
      break;
    }
  }
}

}  // namespace
}  // namespace uzram::codec
