// The same random operations on a device and on a private device of the kernel's zram.
#include "os/kernel_zram.hpp"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "uzram/device.hpp"

#include "base/random.hpp"
#include "contents.hpp"
#include "os/block_device.hpp"

namespace uzram {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kDiskSize = std::uint64_t{64} << 20;
constexpr std::uint64_t kMostPages = 64;

struct FreeAligned {
  void operator()(std::byte* bytes) const { std::free(bytes); }
};

TEST(KernelZram, content_orig_data_size_and_same_pages_agree) {
  auto kernel = os::KernelZram::create("lz4", std::nullopt, kDiskSize);
  if (!kernel) {
    GTEST_SKIP() << kernel.error().message;
  }
  DeviceOptions options;
  options.disksize_bytes = kDiskSize;
  auto device = Device::create(options);
  ASSERT_TRUE(device) << device.error().message;
  const std::unique_ptr<std::byte, FreeAligned> buffer(
      static_cast<std::byte*>(std::aligned_alloc(kPage, kMostPages * kPage)));
  std::vector<std::byte> other(kMostPages * kPage);
  Random random(42);
  const auto compare_stats = [&](int step) {
    const auto theirs = (*kernel)->mm_stat();
    const DeviceStats ours = (*device)->stats();
    ASSERT_EQ(ours.orig_data_size, theirs.orig_data_size) << "after step " << step;
    ASSERT_EQ(ours.same_pages, theirs.same_pages) << "after step " << step;
  };
  for (int step = 0; step < 6000; ++step) {
    const std::uint64_t pages = 1 + random.below(kMostPages);
    const std::uint64_t offset = random.below(kDiskSize / kPage - pages + 1) * kPage;
    const std::uint64_t length = pages * kPage;
    const std::span<std::byte> ours(buffer.get(), length);
    switch (random.below(4)) {
      case 0:
        ASSERT_EQ((*device)->discard(offset, length), Errc::ok);
        ASSERT_EQ(os::discard_range((*kernel)->fd(), false, offset, length), 0);
        break;
      case 1:
      case 2:
        for (std::uint64_t done = 0; done < length; done += kPage) {
          test::fill_with_content(random, ours.subspan(done, kPage));
        }
        ASSERT_EQ((*device)->write(offset, ours), Errc::ok);
        ASSERT_EQ(::pwrite((*kernel)->fd(), buffer.get(), length, static_cast<off_t>(offset)),
                  static_cast<ssize_t>(length));
        break;
      default:
        ASSERT_EQ(::pread((*kernel)->fd(), buffer.get(), length, static_cast<off_t>(offset)),
                  static_cast<ssize_t>(length));
        ASSERT_EQ((*device)->read(offset, std::span(other).first(length)), Errc::ok);
        ASSERT_EQ(std::memcmp(buffer.get(), other.data(), length), 0);
    }
    if (step % 200 == 0) {
      compare_stats(step);
    }
  }
  compare_stats(6000);
  for (std::uint64_t offset = 0; offset < kDiskSize; offset += other.size()) {
    ASSERT_EQ(::pread((*kernel)->fd(), buffer.get(), other.size(), static_cast<off_t>(offset)),
              static_cast<ssize_t>(other.size()));
    ASSERT_EQ((*device)->read(offset, other), Errc::ok);
    ASSERT_EQ(std::memcmp(buffer.get(), other.data(), other.size()), 0);
  }
}

}  // namespace
}  // namespace uzram
