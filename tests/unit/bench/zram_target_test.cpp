#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "bench/target.hpp"
#include "os/kernel_zram.hpp"
#include "port_exercise.hpp"

namespace uzram::bench::test {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

class ZramTargetTest : public testing::Test {
 protected:
  void SetUp() override {
    if (auto probe = os::KernelZram::algorithms(); !probe) {
      GTEST_SKIP() << probe.error().message;
    }
    if (auto probe = os::ZramKeeper::start(); !probe) {
      GTEST_SKIP() << probe.error().message;
    }
  }

  static Result<std::unique_ptr<Target>> open(const std::string& algorithm, IoPath io,
                                              std::uint32_t iodepth) {
    TargetConfig config;
    config.kind = TargetKind::zram;
    config.device.options.algorithm = algorithm;
    config.io = io;
    TargetNeeds needs;
    needs.size_bytes = 8 * kMiB;
    needs.iodepth = iodepth;
    return open_zram_target(config, needs);
  }
};

TEST_F(ZramTargetTest, data_round_trips_both_ways_at_depths_1_and_8) {
  for (const IoPath io : {IoPath::psync, IoPath::uring}) {
    for (const std::uint32_t iodepth : {1U, 8U}) {
      auto target = open("lzo", io, iodepth);
      ASSERT_TRUE(target) << target.error().message;
      check_round_trip(**target, iodepth);
    }
  }
}

TEST_F(ZramTargetTest, its_memory_is_that_of_mm_stat) {
  auto target = open("lzo-rle", IoPath::automatic, 1);
  ASSERT_TRUE(target) << target.error().message;
  EXPECT_EQ((*target)->info().algorithm, "lzo-rle");
  EXPECT_EQ((*target)->info().path, "pread, pwrite, BLKDISCARD");
  EXPECT_EQ((*target)->info().streams, 0U);
  EXPECT_FALSE((*target)->info().level);
  EXPECT_FALSE((*target)->server());
  EXPECT_EQ((*target)->memory().orig_data_size, 0U);
  auto port = (*target)->open_port(1);
  ASSERT_TRUE(port) << port.error().message;
  const AlignedBytes data = random_bytes(kMiB, 1);
  Request request = make_request(Op::write, kMiB, kMiB, data.get());
  (*port)->execute(request);
  ASSERT_EQ(request.status, Errc::ok) << (*port)->failure();
  const MemoryUse filled = (*target)->memory();
  EXPECT_EQ(filled.orig_data_size, kMiB);
  EXPECT_EQ(filled.compr_data_size, kMiB);
  EXPECT_GE(filled.mem_used_total.value_or(0), kMiB);
  request = make_request(Op::discard, 0, 8 * kMiB, nullptr);
  (*port)->execute(request);
  ASSERT_EQ(request.status, Errc::ok) << (*port)->failure();
  EXPECT_EQ((*target)->memory().orig_data_size, 0U);
  EXPECT_EQ((*target)->memory().peak, filled.mem_used_total);
}

TEST_F(ZramTargetTest, zeroes_are_written_and_read) {
  auto target = open("lzo", IoPath::psync, 1);
  ASSERT_TRUE(target) << target.error().message;
  auto port = (*target)->open_port(1);
  ASSERT_TRUE(port) << port.error().message;
  const AlignedBytes data = random_bytes(4096, 1);
  for (const Op op : {Op::write_zeroes, Op::allocate_zeroes}) {
    Request request = make_request(Op::write, 0, 4096, data.get());
    (*port)->execute(request);
    ASSERT_EQ(request.status, Errc::ok) << (*port)->failure();
    request = make_request(op, 0, 4096, nullptr);
    (*port)->execute(request);
    ASSERT_EQ(request.status, Errc::ok) << (*port)->failure();
    const AlignedBytes read = random_bytes(4096, 2);
    request = make_request(Op::read, 0, 4096, read.get());
    (*port)->execute(request);
    ASSERT_EQ(request.status, Errc::ok) << (*port)->failure();
    EXPECT_TRUE(std::all_of(read.get(), read.get() + 4096,
                            [](std::byte value) { return value == std::byte{0}; }));
  }
}

TEST_F(ZramTargetTest, an_algorithm_that_the_kernel_lacks_is_refused) {
  const auto refused = open("brotli", IoPath::automatic, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::unsupported);
  EXPECT_NE(refused.error().message.find("brotli"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace uzram::bench::test
