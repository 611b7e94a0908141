#include "os/range_queue.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/descriptor.hpp"
#include "os/kernel_zram.hpp"
#include "support/loop_device.hpp"
#include "support/temporary_folder.hpp"

namespace uzram::os {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kSize = 16 * kMiB;
constexpr std::size_t kPage = 4096;

std::unique_ptr<RangeQueue> make(int fd, RangeQueueOptions options = {}) {
  auto queue = RangeQueue::create(fd, options);
  EXPECT_TRUE(queue) << queue.error().message;
  return queue ? *std::move(queue) : nullptr;
}

// The errno of one range.
int carry_out(RangeQueue& queue, RangeOp op, std::uint64_t offset, std::uint64_t length) {
  Range range{.op = op, .offset = offset, .length = length};
  queue.submit(range);
  EXPECT_EQ(queue.reap(), &range);
  EXPECT_EQ(queue.reap(), nullptr);
  return range.failed_errno;
}

void fill(int fd) {
  const std::vector<std::byte> bytes(kMiB, std::byte{0xa5});
  for (std::uint64_t at = 0; at < kSize; at += kMiB) {
    ASSERT_EQ(::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at)),
              static_cast<ssize_t>(kMiB));
  }
  ASSERT_EQ(::fsync(fd), 0);
}

// What the page holds if all its bytes are alike, else -1.
int byte_of(int fd, std::uint64_t offset) {
  std::vector<unsigned char> page(kPage);
  if (::pread(fd, page.data(), kPage, static_cast<off_t>(offset)) != static_cast<ssize_t>(kPage) ||
      std::ranges::any_of(page, [&](unsigned char byte) { return byte != page.front(); })) {
    return -1;
  }
  return page.front();
}

std::uint64_t allocated_bytes(int fd) {
  struct stat status {};
  EXPECT_EQ(::fstat(fd, &status), 0);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

struct FileTest : testing::TestWithParam<RangeWay> {
  FileTest() : fd(::open((folder / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    fill(fd.get());
  }
  [[nodiscard]] RangeQueueOptions options(std::uint32_t depth = 64) const {
    return {.depth = depth, .best = GetParam(), .threads = 3};
  }

  test::TemporaryFolder folder;
  Descriptor fd;
};

TEST_P(FileTest, a_discard_makes_a_hole_and_no_more) {
  const auto queue = make(fd.get(), options());
  EXPECT_EQ(queue->way(RangeOp::discard), GetParam());
  EXPECT_EQ(carry_out(*queue, RangeOp::discard, 4 * kMiB, 8 * kMiB), 0);
  EXPECT_EQ(allocated_bytes(fd.get()), kSize - 8 * kMiB);
  EXPECT_EQ(byte_of(fd.get(), 4 * kMiB - kPage), 0xa5);
  EXPECT_EQ(byte_of(fd.get(), 4 * kMiB), 0);
  EXPECT_EQ(byte_of(fd.get(), 12 * kMiB - kPage), 0);
  EXPECT_EQ(byte_of(fd.get(), 12 * kMiB), 0xa5);
}

TEST_P(FileTest, zeroes_are_cut_into_pieces_and_stay_allocated) {
  const auto queue = make(fd.get(), options(2));
  // Longer than a piece, and beyond the end, which stays where it is.
  EXPECT_EQ(carry_out(*queue, RangeOp::write_zeroes, kPage, 3 * kSize), 0);
  EXPECT_EQ(byte_of(fd.get(), 0), 0xa5);
  for (std::uint64_t at = kPage; at < kSize; at += kMiB) {
    EXPECT_EQ(byte_of(fd.get(), at), 0);
  }
  EXPECT_GE(allocated_bytes(fd.get()), kSize);
  struct stat status {};
  ASSERT_EQ(::fstat(fd.get(), &status), 0);
  EXPECT_EQ(status.st_size, static_cast<off_t>(kSize));
}

TEST_P(FileTest, more_ranges_than_may_be_in_flight_all_end_once) {
  const auto queue = make(fd.get(), options(4));
  std::vector<Range> ranges(kSize / kPage / 2);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    ranges[i].op = i % 2 == 0 ? RangeOp::discard : RangeOp::write_zeroes;
    ranges[i].offset = 2 * i * kPage;
    ranges[i].length = kPage;
    ranges[i].user_data = i;
    queue->submit(ranges[i]);
  }
  std::vector<int> ended(ranges.size());
  while (const Range* const range = queue->reap()) {
    EXPECT_EQ(range->failed_errno, 0);
    ++ended.at(range->user_data);
  }
  EXPECT_EQ(std::ranges::count(ended, 1), static_cast<std::ptrdiff_t>(ended.size()));
  for (std::uint64_t page = 0; page < kSize / kPage; ++page) {
    EXPECT_EQ(byte_of(fd.get(), page * kPage), page % 2 == 0 ? 0 : 0xa5);
  }
}

TEST_P(FileTest, a_queue_waits_for_what_is_in_flight_when_it_goes) {
  std::vector<Range> ranges(64);
  {
    const auto queue = make(fd.get(), options(8));
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      ranges[i].offset = i * kPage;
      ranges[i].length = kPage;
      queue->submit(ranges[i]);
    }
  }
  for (const Range& range : ranges) {
    EXPECT_EQ(byte_of(fd.get(), range.offset), 0);
  }
  EXPECT_EQ(byte_of(fd.get(), ranges.size() * kPage), 0xa5);
}

TEST_P(FileTest, an_empty_range_is_refused) {
  const auto queue = make(fd.get(), options());
  EXPECT_EQ(carry_out(*queue, RangeOp::discard, 0, 0), EINVAL);
}

TEST_P(FileTest, a_descriptor_that_may_not_write_is_refused) {
  const Descriptor reader(::open((folder / "file").c_str(), O_RDONLY | O_CLOEXEC));
  const auto queue = make(reader.get(), options());
  EXPECT_EQ(carry_out(*queue, RangeOp::discard, 0, kPage), EBADF);
  EXPECT_EQ(carry_out(*queue, RangeOp::write_zeroes, 0, kPage), EBADF);
}

INSTANTIATE_TEST_SUITE_P(RangeQueue, FileTest,
                         testing::Values(RangeWay::uring, RangeWay::uring_worker,
                                         RangeWay::threads),
                         [](const auto& test) {
                           return test.param == RangeWay::uring          ? "uring"
                                  : test.param == RangeWay::uring_worker ? "uring_worker"
                                                                         : "threads";
                         });

TEST(RangeQueue, what_has_no_ranges_is_refused) {
  test::TemporaryFolder folder;
  const Descriptor fd(::open((folder / ".").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto queue = RangeQueue::create(fd.get(), {});
  ASSERT_FALSE(queue);
  EXPECT_EQ(queue.error().code, Errc::invalid_argument);
}

TEST(RangeQueue, a_depth_out_of_range_is_refused_by_its_number) {
  for (const std::uint32_t depth : {0U, 16385U}) {
    const auto queue = RangeQueue::create(0, {.depth = depth});
    ASSERT_FALSE(queue);
    EXPECT_NE(queue.error().message.find(std::to_string(depth)), std::string::npos);
  }
}

// On a device: whoever cannot make one skips these.
struct DeviceTest : testing::TestWithParam<RangeWay> {
  void attach(bool discards = true, bool read_only = false) {
    auto made = discards ? test::LoopDevice::make(kSize, read_only)
                         : test::LoopDevice::make_without_discard(kSize);
    if (!made) {
      GTEST_SKIP() << made.error().message;
    }
    loop = *std::move(made);
    fd = Descriptor(::open(loop->path().c_str(), (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC));
    ASSERT_TRUE(fd.is_open());
  }
  [[nodiscard]] std::unique_ptr<RangeQueue> queue(std::uint32_t depth = 64) const {
    return make(fd.get(), {.depth = depth, .best = GetParam(), .threads = 3});
  }

  std::unique_ptr<test::LoopDevice> loop;
  Descriptor fd;
};

TEST_P(DeviceTest, discards_and_zeroes_read_as_zeroes) {
  attach();
  if (IsSkipped()) {
    return;
  }
  fill(fd.get());
  const auto ranges = queue();
  EXPECT_EQ(carry_out(*ranges, RangeOp::discard, kMiB, 2 * kMiB), 0);
  EXPECT_EQ(carry_out(*ranges, RangeOp::write_zeroes, 8 * kMiB, kMiB), 0);
  EXPECT_EQ(byte_of(fd.get(), kMiB - kPage), 0xa5);
  EXPECT_EQ(byte_of(fd.get(), kMiB), 0);
  EXPECT_EQ(byte_of(fd.get(), 3 * kMiB - kPage), 0);
  EXPECT_EQ(byte_of(fd.get(), 3 * kMiB), 0xa5);
  EXPECT_EQ(byte_of(fd.get(), 8 * kMiB), 0);
  EXPECT_EQ(byte_of(fd.get(), 9 * kMiB), 0xa5);
}

TEST_P(DeviceTest, what_is_not_aligned_to_the_block_is_invalid) {
  attach();
  if (IsSkipped()) {
    return;
  }
  const auto ranges = queue();
  EXPECT_EQ(carry_out(*ranges, RangeOp::discard, 100, 4096), EINVAL);
  EXPECT_EQ(carry_out(*ranges, RangeOp::discard, 0, 100), EINVAL);
}

TEST_P(DeviceTest, what_ends_beyond_the_device_is_invalid) {
  attach();
  if (IsSkipped()) {
    return;
  }
  const auto ranges = queue();
  EXPECT_EQ(carry_out(*ranges, RangeOp::discard, kSize - kPage, 2 * kPage), EINVAL);
  EXPECT_EQ(carry_out(*ranges, RangeOp::discard, 2 * kSize, kPage), EINVAL);
}

TEST_P(DeviceTest, a_device_without_discard_is_not_supported) {
  attach(false);
  if (IsSkipped()) {
    return;
  }
  const auto ranges = queue();
  EXPECT_EQ(carry_out(*ranges, RangeOp::discard, 0, kPage), EOPNOTSUPP);
}

TEST_P(DeviceTest, a_descriptor_that_may_not_write_is_bad) {
  attach();
  if (IsSkipped()) {
    return;
  }
  fd = Descriptor(::open(loop->path().c_str(), O_RDONLY | O_CLOEXEC));
  const auto ranges = queue();
  EXPECT_EQ(carry_out(*ranges, RangeOp::discard, 0, kPage), EBADF);
}

TEST_P(DeviceTest, a_device_set_read_only_is_not_permitted) {
  attach();
  if (IsSkipped()) {
    return;
  }
  int read_only = 1;
  ASSERT_EQ(::ioctl(fd.get(), BLKROSET, &read_only), 0);
  const auto ranges = queue();
  EXPECT_EQ(carry_out(*ranges, RangeOp::discard, 0, kPage), EPERM);
  read_only = 0;
  ASSERT_EQ(::ioctl(fd.get(), BLKROSET, &read_only), 0);
}

INSTANTIATE_TEST_SUITE_P(RangeQueue, DeviceTest,
                         testing::Values(RangeWay::uring, RangeWay::threads), [](const auto& test) {
                           return test.param == RangeWay::uring ? "uring" : "threads";
                         });

// Where the kernel is older the command is unknown, and both are done by threads.
TEST(RangeQueue, a_device_whose_queue_has_to_wait_is_served_by_workers) {
  const auto algorithms = KernelZram::algorithms();
  if (!algorithms) {
    GTEST_SKIP() << algorithms.error().message;
  }
  const auto zram = KernelZram::create(algorithms->front(), std::nullopt, kSize);
  ASSERT_TRUE(zram) << zram.error().message;
  // Without pages in the cache: those would have it wait for another reason.
  const auto queue = make((*zram)->fd());
  EXPECT_EQ(carry_out(*queue, RangeOp::discard, 0, kPage), 0);
  EXPECT_NE(queue->way(RangeOp::discard), RangeWay::uring);
}

}  // namespace
}  // namespace uzram::os
