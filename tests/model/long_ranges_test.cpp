// Discards and zeroings of many stretches through queues, each a piece at a time, while the same
// queues read and write elsewhere, other threads do the same, the pool is compacted and the mode
// changes.
//
// UZRAM_MODEL_ROUNDS multiplies the number of operations, for longer runs by hand.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "uzram/device.hpp"

#include "base/random.hpp"
#include "base/size.hpp"
#include "contents.hpp"

namespace uzram {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
// Parts begin neither with a stretch of the table nor with a page.
constexpr std::uint64_t kPartBytes = 12 * kMiB + 3 * kSectorSize;
constexpr std::uint64_t kThreads = 4;
constexpr std::uint64_t kPage = kDefaultPageSize;

std::uint64_t rounds() {
  const char* const text = std::getenv("UZRAM_MODEL_ROUNDS");  // NOLINT(concurrency-mt-unsafe)
  const long value = text == nullptr ? 1 : std::atol(text);
  return value > 0 ? static_cast<std::uint64_t>(value) : 1;
}

// A thread's part of the disk, which nobody else touches, and what it should hold.
class Part {
 public:
  Part(Device& device, std::uint64_t index)
      : device_(device),
        queue_(device),
        random_(index + 1),
        offset_(index * kPartBytes),
        expected_(kPartBytes) {}

  void run(std::uint64_t turns) {
    for (std::uint64_t turn = 0; turn < turns && !::testing::Test::HasFailure(); ++turn) {
      for (int i = 0; i < 8; ++i) {
        store(random_.below(kPartBytes / kSectorSize) * kSectorSize);
      }
      change_long_range();
      check();
    }
  }

 private:
  // Up to 32 KiB from `at` on.
  void store(std::uint64_t at) {
    const std::uint64_t most = std::min((kPartBytes - at) / kSectorSize, std::uint64_t{64});
    const std::span<std::byte> bytes =
        std::span(expected_).subspan(at, (1 + random_.below(most)) * kSectorSize);
    test::fill_with_content(random_, bytes);
    ASSERT_EQ(device_.write(offset_ + at, bytes), Errc::ok);
  }

  // A long range, and reads and writes of pages outside it that are submitted after it.
  void change_long_range() {
    const std::uint64_t length =
        kLongRangeBytes + random_.below((kPartBytes - kLongRangeBytes) / kSectorSize) * kSectorSize;
    const std::uint64_t from = random_.below((kPartBytes - length) / kSectorSize + 1) * kSectorSize;
    constexpr std::array kOps = {Op::discard, Op::write_zeroes, Op::allocate_zeroes};
    Request range{
        .op = kOps[random_.below(kOps.size())], .offset = offset_ + from, .length = length};
    submit(range);
    std::vector<std::byte> page(kPage);
    for (int i = 0; i < 16; ++i) {
      const std::uint64_t at = random_.below(kPartBytes / kPage) * kPage;
      if (at + kPage > from && at < from + length) {
        continue;
      }
      exchange(at, page, range);
    }
    while (const Request* const done = queue_.wait()) {
      ASSERT_EQ(done, &range);
    }
    ASSERT_EQ(range.status, Errc::ok);
    // A discard leaves the parts of pages at its ends alone.
    const std::uint64_t granule = range.op == Op::discard ? kPage : kSectorSize;
    const std::uint64_t begin = round_up(range.offset, granule) - offset_;
    const std::uint64_t end = (range.offset + length) / granule * granule - offset_;
    std::fill(expected_.begin() + static_cast<std::ptrdiff_t>(begin),
              expected_.begin() + static_cast<std::ptrdiff_t>(end), std::byte{0});
  }

  // Reads the page and writes another, while `range` may be under way.
  void exchange(std::uint64_t at, std::span<std::byte> page, const Request& range) {
    Request request{.op = Op::read, .offset = offset_ + at, .length = kPage, .buffer = page.data()};
    carry_out(request, range);
    ASSERT_EQ(std::memcmp(page.data(), expected_.data() + at, kPage), 0) << "at " << at;
    test::fill_with_content(random_, page);
    std::copy(page.begin(), page.end(), expected_.begin() + static_cast<std::ptrdiff_t>(at));
    request.op = Op::write;
    carry_out(request, range);
  }

  void carry_out(Request& request, const Request& range) {
    submit(request);
    const Request* done = queue_.wait();
    if (done == &range) {
      done = queue_.wait();
    }
    ASSERT_EQ(done, &request);
    ASSERT_EQ(request.status, Errc::ok);
  }

  void submit(Request& request) {
    Request* const one = &request;
    queue_.submit({&one, 1});
  }

  void check() {
    std::vector<std::byte> found(kPartBytes);
    ASSERT_EQ(device_.read(offset_, found), Errc::ok);
    ASSERT_EQ(std::memcmp(found.data(), expected_.data(), kPartBytes), 0);
  }

  Device& device_;
  Queue queue_;
  Random random_;
  const std::uint64_t offset_;
  std::vector<std::byte> expected_;
};

class LongRanges : public ::testing::TestWithParam<Mode> {};

TEST_P(LongRanges, queues_agree_with_a_naive_device) {
  DeviceOptions options;
  options.disksize_bytes = round_up(kThreads * kPartBytes, kPage);
  options.mode = GetParam();
  auto made = Device::create(options);
  ASSERT_TRUE(made) << made.error().message;
  Device& device = **made;
  std::vector<std::unique_ptr<Part>> parts;
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < kThreads; ++i) {
    parts.push_back(std::make_unique<Part>(device, i));
    threads.emplace_back([&part = *parts.back()] { part.run(12 * rounds()); });
  }
  std::atomic<bool> stop{false};
  std::thread disturber([&] {
    constexpr std::array kModes = {Mode::nowait, Mode::automatic, Mode::async};
    for (std::uint64_t turn = 0; !stop.load(); ++turn) {
      device.compact();
      if (GetParam() == Mode::async) {
        EXPECT_TRUE(device.set_mode(kModes[turn % kModes.size()], 2));
      }
      std::this_thread::yield();
    }
  });
  for (std::thread& thread : threads) {
    thread.join();
  }
  stop.store(true);
  disturber.join();
  parts.clear();
  ASSERT_EQ(device.discard(0, options.disksize_bytes), Errc::ok);
  EXPECT_EQ(device.stats().orig_data_size, 0U);
  EXPECT_EQ(device.stats().compr_data_size, 0U);
}

INSTANTIATE_TEST_SUITE_P(Modes, LongRanges,
                         ::testing::Values(Mode::nowait, Mode::automatic, Mode::async),
                         [](const auto& param_info) {
                           return std::string(mode_name(param_info.param));
                         });

}  // namespace
}  // namespace uzram
