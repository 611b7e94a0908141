#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "bench/runner.hpp"
#include "bench/suite.hpp"
#include "bench/target.hpp"
#include "os/block_device.hpp"
#include "os/descriptor.hpp"
#include "os/kernel_zram.hpp"
#include "port_exercise.hpp"
#include "support/loop_device.hpp"
#include "support/temporary_folder.hpp"

namespace uzram::bench::test {
namespace {

using uzram::test::LoopDevice;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::size_t kPage = 4096;

TargetConfig config_of(const std::string& path, IoPath io) {
  TargetConfig config;
  config.kind = TargetKind::block_device;
  config.given = path;
  config.address = path;
  config.io = io;
  return config;
}

Result<std::unique_ptr<Target>> open(const std::string& path, IoPath io, std::uint32_t iodepth) {
  TargetNeeds needs;
  needs.size_bytes = 4 * kMiB;
  needs.iodepth = iodepth;
  return open_block_target(config_of(path, io), needs);
}

bool set_attribute(const std::string& device, const std::string& attribute,
                   const std::string& value) {
  std::ofstream file("/sys/block/" + device + "/" + attribute);
  file << value << std::flush;
  return file.good();
}

class BlockTargetTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = LoopDevice::make(8 * kMiB);
    if (!made) {
      GTEST_SKIP() << made.error().message;
    }
    loop_ = *std::move(made);
  }

  // The page at `offset`, or nothing when it cannot be read.
  [[nodiscard]] AlignedBytes page_at(off_t offset) const {
    AlignedBytes page = random_bytes(kPage, 99);
    const auto device = os::BlockDevice::open(loop_->path());
    EXPECT_TRUE(device) << device.error().message;
    EXPECT_EQ(::pread(device->fd(), page.get(), kPage, offset), ssize_t{kPage});
    return page;
  }

  void put(const AlignedBytes& page, off_t offset) const {
    const auto device = os::BlockDevice::open(loop_->path());
    ASSERT_TRUE(device) << device.error().message;
    ASSERT_EQ(::pwrite(device->fd(), page.get(), kPage, offset), ssize_t{kPage});
  }

  std::unique_ptr<LoopDevice> loop_;
};

TEST_F(BlockTargetTest, without_consent_it_is_refused_with_what_would_be_lost) {
  const AlignedBytes page = random_bytes(kPage, 1);
  put(page, 0);
  const auto refused = check_block_target(config_of(loop_->path(), IoPath::automatic), kMiB, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::invalid_argument);
  EXPECT_EQ(refused.error().message,
            loop_->path() + " (8M, " + loop_->name() + " on " + loop_->file() +
                "): its first 1M would be overwritten and cannot be brought back; pass --yes if "
                "that is what you want");
  EXPECT_TRUE(
      check_block_target(config_of(loop_->path(), IoPath::automatic), kMiB, true).has_value());
  EXPECT_EQ(std::memcmp(page_at(0).get(), page.get(), kPage), 0);
}

TEST_F(BlockTargetTest, one_in_use_is_refused_whatever_the_consent) {
  const auto holder = os::BlockDevice::open(loop_->path());
  ASSERT_TRUE(holder) << holder.error().message;
  for (const bool consent : {false, true}) {
    const auto refused =
        check_block_target(config_of(loop_->path(), IoPath::automatic), kMiB, consent);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::busy) << refused.error().message;
  }
  const auto refused = open(loop_->path(), IoPath::automatic, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::busy);
}

TEST_F(BlockTargetTest, data_round_trips_both_ways_at_depths_1_and_8) {
  for (const IoPath io : {IoPath::psync, IoPath::uring}) {
    for (const std::uint32_t iodepth : {1U, 8U}) {
      auto target = open(loop_->path(), io, iodepth);
      ASSERT_TRUE(target) << target.error().message;
      check_round_trip(**target, iodepth);
    }
  }
}

TEST(FileTarget, data_round_trips_both_ways_and_discards_make_holes) {
  const uzram::test::TemporaryFolder folder;
  const std::string path = folder / "image";
  {
    const os::Descriptor made(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_TRUE(made.is_open());
    ASSERT_EQ(::ftruncate(made.get(), 8 * kMiB), 0);
  }
  const auto refused = check_block_target(config_of(path, IoPath::automatic), kMiB, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            path +
                " (8M, file): its first 1M would be overwritten and cannot be brought back; "
                "pass --yes if that is what you want");
  for (const IoPath io : {IoPath::psync, IoPath::uring}) {
    const auto target = open(path, io, 4);
    ASSERT_TRUE(target) << target.error().message;
    EXPECT_EQ((*target)->info().path,
              io == IoPath::psync ? "pread, pwrite, fallocate" : "io_uring");
    check_round_trip(**target, 4);
    auto port = (*target)->open_port(4);
    ASSERT_TRUE(port) << port.error().message;
    const AlignedBytes data = random_bytes(4 * kPage, 7);
    Request request = make_request(Op::write, 0, 4 * kPage, data.get());
    (*port)->execute(request);
    ASSERT_EQ(request.status, Errc::ok) << (*port)->failure();
    request = make_request(Op::discard, kPage, 2 * kPage, nullptr);
    (*port)->execute(request);
    ASSERT_EQ(request.status, Errc::ok) << (*port)->failure();
    AlignedBytes seen = random_bytes(4 * kPage, 8);
    request = make_request(Op::read, 0, 4 * kPage, seen.get());
    (*port)->execute(request);
    ASSERT_EQ(request.status, Errc::ok) << (*port)->failure();
    EXPECT_EQ(std::memcmp(seen.get(), data.get(), kPage), 0);
    EXPECT_TRUE(std::all_of(seen.get() + kPage, seen.get() + 3 * kPage,
                            [](std::byte b) { return b == std::byte{0}; }));
    EXPECT_EQ(std::memcmp(seen.get() + 3 * kPage, data.get() + 3 * kPage, kPage), 0);
  }
}

TEST_F(BlockTargetTest, the_way_follows_from_io_and_the_depth) {
  const struct {
    IoPath io;
    std::uint32_t iodepth;
    std::string path;
  } cases[] = {{IoPath::automatic, 1, "pread, pwrite, BLKDISCARD"},
               {IoPath::automatic, 2, "io_uring"},
               {IoPath::psync, 8, "pread, pwrite, BLKDISCARD"},
               {IoPath::uring, 1, "io_uring"}};
  for (const auto& one : cases) {
    const auto target = open(loop_->path(), one.io, one.iodepth);
    ASSERT_TRUE(target) << target.error().message;
    EXPECT_EQ((*target)->info().path, one.path);
    EXPECT_EQ((*target)->info().algorithm, "");
    EXPECT_FALSE((*target)->info().streams);
    EXPECT_FALSE((*target)->memory().mem_used_total);
  }
}

TEST_F(BlockTargetTest, opening_empties_what_the_run_uses_and_no_more) {
  const AlignedBytes page = random_bytes(kPage, 2);
  put(page, 4 * kMiB - kPage);
  put(page, 4 * kMiB);
  if (const auto device = os::BlockDevice::open(loop_->path()); !device || !device->can_discard()) {
    GTEST_SKIP() << "loop devices cannot discard here";
  }
  const auto target = open(loop_->path(), IoPath::automatic, 1);
  ASSERT_TRUE(target) << target.error().message;
  EXPECT_FALSE((*target)->info().zeroed);
  auto port = (*target)->open_port(1);
  ASSERT_TRUE(port) << port.error().message;
  const AlignedBytes read = random_bytes(2 * kPage, 3);
  Request request = make_request(Op::read, 4 * kMiB - kPage, 2 * kPage, read.get());
  (*port)->execute(request);
  ASSERT_EQ(request.status, Errc::ok) << (*port)->failure();
  EXPECT_TRUE(std::all_of(read.get(), read.get() + kPage,
                          [](std::byte value) { return value == std::byte{0}; }));
  EXPECT_EQ(std::memcmp(read.get() + kPage, page.get(), kPage), 0);
}

TEST_F(BlockTargetTest, one_that_does_not_discard_is_zeroed_and_says_so) {
  auto made = LoopDevice::make_without_discard(8 * kMiB);
  ASSERT_TRUE(made) << made.error().message;
  loop_ = *std::move(made);
  const AlignedBytes page = random_bytes(kPage, 2);
  put(page, 4 * kMiB - kPage);
  put(page, 4 * kMiB);
  {
    const auto target = open(loop_->path(), IoPath::automatic, 1);
    ASSERT_TRUE(target) << target.error().message;
    EXPECT_TRUE((*target)->info().zeroed);
  }
  const AlignedBytes zeroed = page_at(4 * kMiB - kPage);
  EXPECT_TRUE(std::all_of(zeroed.get(), zeroed.get() + kPage,
                          [](std::byte value) { return value == std::byte{0}; }));
  EXPECT_EQ(std::memcmp(page_at(4 * kMiB).get(), page.get(), kPage), 0);
}

TEST_F(BlockTargetTest, the_results_say_which_target_was_zeroed) {
  auto without = LoopDevice::make_without_discard(8 * kMiB);
  ASSERT_TRUE(without) << without.error().message;
  SuiteOptions options;
  options.targets = {(*without)->path()};
  options.size = "4M";
  options.rounds = "2";
  options.jobs = "1";
  options.verify = "crc32c";
  options.data.buffer_random = true;
  options.yes = true;
  const auto plan = make_plan("streams", options);
  ASSERT_TRUE(plan) << plan.error().message;
  const std::atomic<bool> stop{false};
  const auto results = run_plan(*plan, stop, -1);
  ASSERT_TRUE(results) << results.error().message;
  const std::string note = (*without)->path() +
                           " does not discard: it was zeroed before each use, and reads of holes "
                           "find zeroes";
  EXPECT_EQ(std::count(results->notes.begin(), results->notes.end(), note), 1);
}

TEST_F(BlockTargetTest, one_smaller_than_the_run_is_refused_with_both_sizes) {
  TargetNeeds needs;
  needs.size_bytes = 9 * kMiB;
  const auto refused = open_block_target(config_of(loop_->path(), IoPath::automatic), needs);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::invalid_argument);
  EXPECT_NE(refused.error().message.find("has 8M, less than the run's 9M"), std::string::npos)
      << refused.error().message;
}

TEST_F(BlockTargetTest, a_request_across_the_end_fails_with_the_place) {
  for (const IoPath io : {IoPath::psync, IoPath::uring}) {
    const auto target = open(loop_->path(), io, 4);
    ASSERT_TRUE(target) << target.error().message;
    auto port = (*target)->open_port(4);
    ASSERT_TRUE(port) << port.error().message;
    const AlignedBytes data = random_bytes(2 * kPage, 4);
    Request read = make_request(Op::read, 8 * kMiB - kPage, 2 * kPage, data.get());
    (*port)->execute(read);
    EXPECT_EQ(read.status, Errc::out_of_range);
    EXPECT_EQ((*port)->failure(), "read at byte 8388608: the device ends there");
    Request write = make_request(Op::write, 8 * kMiB - kPage, 2 * kPage, data.get());
    (*port)->execute(write);
    EXPECT_EQ(write.status, Errc::no_space);
    EXPECT_EQ((*port)->failure(), "write at byte 8388608: No space left on device");
    // The port goes on.
    read = make_request(Op::read, 0, kPage, data.get());
    (*port)->execute(read);
    EXPECT_EQ(read.status, Errc::ok);
  }
}

TEST_F(BlockTargetTest, ranges_and_reads_are_in_flight_together) {
  const auto target = open(loop_->path(), IoPath::uring, 4);
  ASSERT_TRUE(target) << target.error().message;
  auto port = (*target)->open_port(4);
  ASSERT_TRUE(port) << port.error().message;
  const AlignedBytes data = random_bytes(kPage, 5);
  for (const std::uint64_t page : {0, 1, 2}) {
    Request write = make_request(Op::write, page * kPage, kPage, data.get());
    (*port)->execute(write);
    ASSERT_EQ(write.status, Errc::ok);
  }
  const AlignedBytes found = random_bytes(kPage, 6);
  Request discard = make_request(Op::discard, 0, kPage, nullptr);
  Request zero = make_request(Op::write_zeroes, kPage, kPage, nullptr);
  Request read = make_request(Op::read, 2 * kPage, kPage, found.get());
  Request* const batch[] = {&discard, &read, &zero};
  (*port)->submit(batch);
  std::set<const Request*> reaped;
  for (std::size_t i = 0; i < 3; ++i) {
    reaped.insert((*port)->reap());
  }
  EXPECT_EQ(reaped, (std::set<const Request*>{&discard, &read, &zero}));
  EXPECT_EQ((*port)->reap(), nullptr);
  EXPECT_EQ(discard.status, Errc::ok);
  EXPECT_EQ(zero.status, Errc::ok);
  EXPECT_EQ(read.status, Errc::ok);
  EXPECT_EQ(std::memcmp(found.get(), data.get(), kPage), 0);
  for (const std::uint64_t page : {0, 1}) {
    Request again = make_request(Op::read, page * kPage, kPage, found.get());
    (*port)->execute(again);
    EXPECT_TRUE(std::all_of(found.get(), found.get() + kPage,
                            [](std::byte byte) { return byte == std::byte{0}; }));
  }
}

TEST_F(BlockTargetTest, a_range_that_fails_says_where_and_why) {
  const auto target = open(loop_->path(), IoPath::uring, 4);
  ASSERT_TRUE(target) << target.error().message;
  auto port = (*target)->open_port(4);
  ASSERT_TRUE(port) << port.error().message;
  Request discard = make_request(Op::discard, std::uint64_t{1} << 40, kPage, nullptr);
  (*port)->execute(discard);
  EXPECT_EQ(discard.status, Errc::invalid_argument);
  EXPECT_EQ((*port)->failure(), "discard at byte 1099511627776: Invalid argument");
}

TEST_F(BlockTargetTest, a_depth_that_io_uring_does_not_have_is_refused) {
  const auto target = open(loop_->path(), IoPath::uring, 4);
  ASSERT_TRUE(target) << target.error().message;
  for (const std::uint32_t iodepth : {0U, 32769U}) {
    const auto refused = (*target)->open_port(iodepth);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::invalid_argument);
    EXPECT_NE(refused.error().message.find("expected an iodepth of 1 to 32768"), std::string::npos)
        << refused.error().message;
  }
}

TEST(UserZramTarget, one_that_is_full_says_so) {
  const auto keeper = os::ZramKeeper::start();
  if (!keeper) {
    GTEST_SKIP() << keeper.error().message;
  }
  const std::string name = (*keeper)->name();
  ASSERT_TRUE(set_attribute(name, "comp_algorithm", "lzo"));
  ASSERT_TRUE(set_attribute(name, "disksize", "8M"));
  ASSERT_TRUE(set_attribute(name, "mem_limit", "1M"));
  const AlignedBytes data = random_bytes(4 * kMiB, 6);
  for (const IoPath io : {IoPath::psync, IoPath::uring}) {
    const auto target = open("/dev/" + name, io, 1);
    ASSERT_TRUE(target) << target.error().message;
    EXPECT_EQ((*target)->info().algorithm, "lzo");
    EXPECT_EQ((*target)->memory().orig_data_size, 0U);
    EXPECT_LT((*target)->memory().peak.value_or(kMiB), kMiB / 2);
    auto port = (*target)->open_port(1);
    ASSERT_TRUE(port) << port.error().message;
    Request request = make_request(Op::write, 0, 4 * kMiB, data.get());
    (*port)->execute(request);
    EXPECT_EQ(request.status, Errc::system);
    const std::string why = (*port)->failure();
    EXPECT_NE(why.find("write at byte "), std::string::npos) << why;
    EXPECT_NE(why.find("Input/output error"), std::string::npos) << why;
    EXPECT_NE(why.find("mem_limit is reached"), std::string::npos) << why;
    EXPECT_NE(why.find(name + "/mm_stat"), std::string::npos) << why;
    EXPECT_GT((*target)->memory().peak.value_or(0), kMiB / 2);
  }
}

}  // namespace
}  // namespace uzram::bench::test
