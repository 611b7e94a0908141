// compress and decompress take nothing from the heap, at any level, with any input.
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "allocation_count.hpp"
#include "base/random.hpp"
#include "codec_case.hpp"
#include "support/hostile.hpp"

namespace uzram::codec {
namespace {

TEST(AllocationCount, sees_what_the_heap_gives) {
  const std::size_t before = test::allocation_count();
  // Volatile, lest the compiler sees that nobody uses the block.
  void* volatile block = std::malloc(100);
  std::free(block);
  EXPECT_EQ(test::allocation_count(), before + 1);
}

// The levels to try: all of them when there are few, else those around the ends and the middle.
std::vector<int> levels(const CodecInfo& info) {
  std::vector<int> levels = {info.min_level, info.max_level};
  for (int level = std::max(info.min_level, -8); level <= std::min(info.max_level, 22); ++level) {
    levels.push_back(level);
  }
  return levels;
}

class Allocation : public testing::TestWithParam<std::size_t> {
 protected:
  // zstd gives memory back after 128 inputs that leave most of it unused.
  static constexpr int kRounds = 150;

  void run(const CodecInfo& info, int level) {
    const std::size_t page_size = GetParam();
    Result<std::unique_ptr<Codec>> codec =
        make(info.name, level, static_cast<std::uint32_t>(page_size));
    ASSERT_TRUE(codec) << codec.error().message;
    Result<std::unique_ptr<Workspace>> workspace = codec.value()->make_workspace();
    ASSERT_TRUE(workspace) << workspace.error().message;
    const std::vector<test::HostilePage> pages = test::hostile_pages(page_size, 10);
    std::vector<std::byte> room(page_size * 2 + 1024);
    std::vector<std::byte> decoded(page_size);
    Random random(11);

    const std::size_t before = test::allocation_count();
    const int rounds = page_size == 4096 ? kRounds : 25;
    for (int round = 0; round < rounds; ++round) {
      const std::vector<std::byte>& page =
          pages[static_cast<std::size_t>(round) % pages.size()].bytes;
      const CompressResult tight =
          codec.value()->compress(**workspace, page, std::span(room).first(64));
      const CompressResult result = codec.value()->compress(**workspace, page, room);
      const std::span<std::byte> packed = std::span(room).first(result.size);
      const Errc good = codec.value()->decompress(workspace->get(), packed, decoded);
      packed[random.below(std::min<std::size_t>(packed.size(), 8))] ^= std::byte{0x41};
      const Errc damaged = codec.value()->decompress(workspace->get(), packed, decoded);
      ASSERT_TRUE(tight.status == Errc::ok || tight.status == Errc::incompressible);
      ASSERT_EQ(good, Errc::ok);
      ASSERT_TRUE(damaged == Errc::ok || damaged == Errc::corrupt);
    }
    EXPECT_EQ(test::allocation_count(), before) << info.name << " level " << level;
  }
};

TEST_P(Allocation, is_not_done_by_any_codec_at_any_level) {
  for (const CodecInfo& info : registry()) {
    for (const int level : levels(info)) {
      run(info, level);
      ASSERT_FALSE(HasFatalFailure()) << info.name << " level " << level;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Page, Allocation, testing::Values(4096, 65536));

// Magic numbers of zstd's formats before 1.0, whose decoders allocate: libzstd looks for them.
TEST(Allocation, is_not_done_for_bytes_that_look_like_an_old_zstd_frame) {
  Result<std::unique_ptr<Codec>> codec = make("zstd", std::nullopt, 4096);
  ASSERT_TRUE(codec) << codec.error().message;
  Result<std::unique_ptr<Workspace>> workspace = codec.value()->make_workspace();
  ASSERT_TRUE(workspace) << workspace.error().message;
  std::vector<std::byte> page(4096, std::byte{1});
  std::vector<std::byte> room(4096);
  const CompressResult result = codec.value()->compress(**workspace, page, room);
  ASSERT_EQ(result.status, Errc::ok);
  for (unsigned version = 0x20; version < 0x30; ++version) {
    std::vector<std::byte> bytes(512);
    const std::byte magic[] = {static_cast<std::byte>(version), std::byte{0xb5}, std::byte{0x2f},
                               std::byte{0xfd}};
    std::ranges::copy(magic, bytes.begin());
    std::vector<std::byte> behind_a_frame(room.begin(), room.begin() + result.size);
    behind_a_frame.insert(behind_a_frame.end(), bytes.begin(), bytes.end());
    const std::size_t before = test::allocation_count();
    const Errc alone = codec.value()->decompress(workspace->get(), bytes, page);
    const Errc behind = codec.value()->decompress(workspace->get(), behind_a_frame, page);
    EXPECT_EQ(test::allocation_count(), before) << "version " << version;
    EXPECT_EQ(alone, Errc::corrupt);
    EXPECT_EQ(behind, Errc::corrupt);
  }
}

}  // namespace
}  // namespace uzram::codec
