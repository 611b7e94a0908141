// What is particular to zstd: the form of its frames.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "codec/codec.hpp"

namespace uzram::codec {
namespace {

constexpr std::uint32_t kPageSize = 4096;

class Zstd : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Codec>> codec = make("zstd", std::nullopt, kPageSize);
    ASSERT_TRUE(codec) << codec.error().message;
    codec_ = *std::move(codec);
    Result<std::unique_ptr<Workspace>> workspace = codec_->make_workspace();
    ASSERT_TRUE(workspace) << workspace.error().message;
    workspace_ = *std::move(workspace);
  }

  [[nodiscard]] std::vector<std::byte> compressed(std::size_t size) {
    std::vector<std::byte> page(size, std::byte{'u'});
    std::vector<std::byte> room(kPageSize);
    const CompressResult result = codec_->compress(*workspace_, page, room);
    EXPECT_EQ(result.status, Errc::ok);
    room.resize(result.size);
    return room;
  }

  [[nodiscard]] Errc decompress(std::span<const std::byte> src) {
    std::vector<std::byte> page(kPageSize);
    return codec_->decompress(workspace_.get(), src, page);
  }

  std::unique_ptr<Codec> codec_;
  std::unique_ptr<Workspace> workspace_;
};

std::vector<std::byte> bytes_of(std::initializer_list<unsigned> values) {
  std::vector<std::byte> bytes;
  for (const unsigned value : values) {
    bytes.push_back(static_cast<std::byte>(value));
  }
  return bytes;
}

TEST_F(Zstd, stores_no_magic_number_size_or_checksum) {
  const std::vector<std::byte> frame = compressed(kPageSize);
  // Descriptor 0, window of 2^12 bytes, and one block.
  ASSERT_GE(frame.size(), 6U);
  EXPECT_EQ(frame[0], std::byte{0});
  EXPECT_EQ(frame[1], std::byte{(12 - 10) << 3});
  EXPECT_EQ(frame[2] & std::byte{1}, std::byte{1}) << "the first block is the last";
}

TEST_F(Zstd, refuses_two_frames_that_make_one_page) {
  std::vector<std::byte> frames = compressed(kPageSize / 2);
  const std::vector<std::byte> second = frames;
  frames.insert(frames.end(), second.begin(), second.end());
  EXPECT_EQ(decompress(frames), Errc::corrupt);
}

TEST_F(Zstd, refuses_a_skippable_frame_before_the_page) {
  std::vector<std::byte> frames = bytes_of({0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0});
  const std::vector<std::byte> page = compressed(kPageSize);
  frames.insert(frames.end(), page.begin(), page.end());
  EXPECT_EQ(decompress(frames), Errc::corrupt);
}

TEST_F(Zstd, refuses_a_frame_with_a_descriptor_of_another_kind) {
  std::vector<std::byte> frame = compressed(kPageSize);
  for (unsigned descriptor = 1; descriptor < 256; ++descriptor) {
    frame[0] = static_cast<std::byte>(descriptor);
    EXPECT_EQ(decompress(frame), Errc::corrupt) << descriptor;
  }
}

TEST_F(Zstd, takes_a_run_block_whose_size_is_not_that_of_its_bytes) {
  // Last block, run, of 4096 bytes 'x'.
  const std::uint32_t header = 1U | 1U << 1 | kPageSize << 3;
  std::vector<std::byte> frame =
      bytes_of({0, (12 - 10) << 3, header & 0xff, header >> 8 & 0xff, header >> 16, 'x'});
  std::vector<std::byte> page(kPageSize);
  ASSERT_EQ(codec_->decompress(workspace_.get(), frame, page), Errc::ok);
  EXPECT_EQ(page, std::vector<std::byte>(kPageSize, std::byte{'x'}));
}

}  // namespace
}  // namespace uzram::codec
