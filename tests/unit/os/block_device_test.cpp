#include "os/block_device.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/descriptor.hpp"
#include "os/device_users.hpp"
#include "os/zram_keeper.hpp"
#include "support/loop_device.hpp"
#include "support/temporary_folder.hpp"

namespace uzram::os {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::size_t kPage = 4096;

using Page = std::unique_ptr<std::byte, decltype(&std::free)>;

Page page_of(std::byte value) {
  auto* const bytes = static_cast<std::byte*>(std::aligned_alloc(kPage, kPage));
  std::fill_n(bytes, kPage, value);
  return {bytes, &std::free};
}

bool holds_only(int fd, std::uint64_t offset, std::byte value) {
  const Page page = page_of(std::byte{0x55});
  return ::pread(fd, page.get(), kPage, static_cast<off_t>(offset)) == ssize_t{kPage} &&
         std::all_of(page.get(), page.get() + kPage, [&](std::byte b) { return b == value; });
}

bool make_filesystem(const std::string& path) {
  std::string program = "mkfs.ext4";
  std::string quiet = "-q";
  std::string device = path;
  char* const arguments[] = {program.data(), quiet.data(), device.data(), nullptr};
  char search[] = "PATH=/usr/sbin:/sbin:/usr/bin:/bin";
  char* const environment[] = {search, nullptr};
  pid_t child = 0;
  for (const char* const folder : {"/usr/sbin/", "/sbin/"}) {
    if (::posix_spawn(&child, (folder + program).c_str(), nullptr, nullptr, arguments,
                      environment) == 0) {
      int status = 0;
      return ::waitpid(child, &status, 0) == child && status == 0;
    }
  }
  return false;
}

class BlockDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = test::LoopDevice::make(8 * kMiB);
    if (!made) {
      GTEST_SKIP() << made.error().message;
    }
    loop_ = *std::move(made);
  }

  std::unique_ptr<test::LoopDevice> loop_;
};

TEST_F(BlockDeviceTest, one_that_nothing_uses_is_opened_and_described) {
  const auto device = BlockDevice::open(loop_->path());
  ASSERT_TRUE(device) << device.error().message;
  EXPECT_EQ(device->path(), loop_->path());
  EXPECT_EQ(device->name(), loop_->name());
  EXPECT_EQ(device->size_bytes(), 8 * kMiB);
  EXPECT_GE(device->logical_block_bytes(), 512U);
  EXPECT_LE(device->logical_block_bytes(), 4096U);
  EXPECT_EQ(device->description(),
            loop_->path() + " (8M, " + loop_->name() + " on " + loop_->file() + ")");
}

TEST_F(BlockDeviceTest, a_range_is_dropped_and_zeroed) {
  const auto device = BlockDevice::open(loop_->path());
  ASSERT_TRUE(device) << device.error().message;
  const Page page = page_of(std::byte{0xa5});
  for (const off_t offset : {0, 4096, 8192, 12288}) {
    ASSERT_EQ(::pwrite(device->fd(), page.get(), kPage, offset), ssize_t{kPage});
  }
  EXPECT_EQ(zero_range(device->fd(), false, 4096, 4096), 0);
  if (device->can_discard()) {
    EXPECT_EQ(discard_range(device->fd(), false, 8192, 4096), 0);
    EXPECT_TRUE(holds_only(device->fd(), 8192, std::byte{0}));
  } else {
    EXPECT_EQ(discard_range(device->fd(), false, 8192, 4096), EOPNOTSUPP);
  }
  EXPECT_TRUE(holds_only(device->fd(), 0, std::byte{0xa5}));
  EXPECT_TRUE(holds_only(device->fd(), 4096, std::byte{0}));
  EXPECT_TRUE(holds_only(device->fd(), 12288, std::byte{0xa5}));
  EXPECT_EQ(discard_range(device->fd(), false, 1, 4096), EINVAL);
}

TEST_F(BlockDeviceTest, a_mounted_one_is_refused_with_its_mount_point) {
  if (!make_filesystem(loop_->path())) {
    GTEST_SKIP() << "mkfs.ext4 is missing or failed";
  }
  const test::TemporaryFolder folder;
  const std::string place = folder / "a place";
  ASSERT_TRUE(std::filesystem::create_directory(place));
  // In a namespace of this process's own, so that no mount stays when it dies.
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    GTEST_SKIP() << system_error("mount namespace", errno).message;
  }
  ASSERT_EQ(::mount(loop_->path().c_str(), place.c_str(), "ext4", 0, nullptr), 0)
      << system_error("mount", errno).message;
  const auto refused = BlockDevice::open(loop_->path());
  EXPECT_EQ(mount_point(loop_->path()), place);
  EXPECT_EQ(::umount(place.c_str()), 0);
  EXPECT_EQ(mount_point(loop_->path()), "");
  EXPECT_EQ(mount_point("/dev/null"), "");
  EXPECT_EQ(mount_point("/nowhere"), "");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::busy);
  EXPECT_EQ(refused.error().message,
            loop_->path() + " is mounted on " + place + "; expected a device that nothing uses");

  const auto device = BlockDevice::open(loop_->path());
  ASSERT_TRUE(device) << device.error().message;
  EXPECT_EQ(::mount(loop_->path().c_str(), place.c_str(), "ext4", 0, nullptr), -1);
  EXPECT_EQ(errno, EBUSY);
}

TEST_F(BlockDeviceTest, one_that_is_swapped_on_is_refused) {
  // Version 1 of the swap header: version, last page, bad pages at 1024, the magic at the end.
  const Page header = page_of(std::byte{0});
  const std::uint32_t fields[] = {1, 8 * kMiB / kPage - 1, 0};
  std::memcpy(header.get() + 1024, fields, sizeof fields);
  std::memcpy(header.get() + kPage - 10, "SWAPSPACE2", 10);
  {
    const auto device = BlockDevice::open(loop_->path());
    ASSERT_TRUE(device) << device.error().message;
    ASSERT_EQ(::pwrite(device->fd(), header.get(), kPage, 0), ssize_t{kPage});
  }
  if (::swapon(loop_->path().c_str(), 0) != 0) {
    GTEST_SKIP() << system_error("swapon", errno).message;
  }
  const auto refused = BlockDevice::open(loop_->path());
  EXPECT_EQ(::swapoff(loop_->path().c_str()), 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::busy);
  EXPECT_NE(refused.error().message.find(loop_->path() + " is used as swap"), std::string::npos)
      << refused.error().message;
}

TEST_F(BlockDeviceTest, one_that_is_held_is_refused) {
  const auto holder = BlockDevice::open(loop_->path());
  ASSERT_TRUE(holder) << holder.error().message;
  const auto refused = BlockDevice::open(loop_->path());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::busy);
  EXPECT_NE(refused.error().message.find(loop_->path() + " is in use"), std::string::npos)
      << refused.error().message;
}

TEST_F(BlockDeviceTest, a_read_only_one_is_refused) {
  const auto loop = test::LoopDevice::make(kMiB, true);
  ASSERT_TRUE(loop) << loop.error().message;
  const auto refused = BlockDevice::open((*loop)->path());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::read_only);
  EXPECT_NE(refused.error().message.find((*loop)->path() + " is read-only"), std::string::npos)
      << refused.error().message;
}

TEST_F(BlockDeviceTest, one_without_size_is_refused) {
  const auto keeper = ZramKeeper::start();
  if (!keeper) {
    GTEST_SKIP() << keeper.error().message;
  }
  const auto refused = BlockDevice::open("/dev/" + (*keeper)->name());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::invalid_argument);
  EXPECT_NE(refused.error().message.find("has no size"), std::string::npos)
      << refused.error().message;
}

TEST(BlockDeviceFile, a_file_takes_the_place_of_a_device) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "image";
  {
    const Descriptor made(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_TRUE(made.is_open());
    const auto empty = BlockDevice::open(path);
    ASSERT_FALSE(empty);
    EXPECT_EQ(empty.error().code, Errc::invalid_argument);
    EXPECT_NE(empty.error().message.find("is empty"), std::string::npos) << empty.error().message;
    ASSERT_EQ(::ftruncate(made.get(), kMiB), 0);
  }
  const auto device = BlockDevice::open(path);
  ASSERT_TRUE(device) << device.error().message;
  EXPECT_TRUE(device->is_file());
  EXPECT_EQ(device->size_bytes(), kMiB);
  EXPECT_EQ(device->description(), path + " (1M, file)");
  const auto blocks = [&] {
    struct stat status {};
    EXPECT_EQ(::fstat(device->fd(), &status), 0);
    return status.st_blocks;
  };
  const Page page = page_of(std::byte{7});
  ASSERT_EQ(::pwrite(device->fd(), page.get(), kPage, 0), ssize_t{kPage});
  ASSERT_EQ(::pwrite(device->fd(), page.get(), kPage, kPage), ssize_t{kPage});
  ASSERT_EQ(::fsync(device->fd()), 0);
  const auto before = blocks();
  const int discarded = discard_range(device->fd(), true, 0, kPage);
  if (discarded == EOPNOTSUPP) {
    GTEST_SKIP() << "the filesystem of temporary files has no holes";
  }
  EXPECT_EQ(discarded, 0);
  EXPECT_LT(blocks(), before);
  EXPECT_TRUE(holds_only(device->fd(), 0, std::byte{0}));
  if (const int zeroed = zero_range(device->fd(), true, kPage, kPage); zeroed == 0) {
    EXPECT_TRUE(holds_only(device->fd(), kPage, std::byte{0}));
  } else {
    // tmpfs cannot.
    EXPECT_EQ(zeroed, EOPNOTSUPP);
    EXPECT_TRUE(holds_only(device->fd(), kPage, std::byte{7}));
  }
  const auto again = BlockDevice::open(path);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::busy);
  EXPECT_NE(again.error().message.find(path + " is in use"), std::string::npos)
      << again.error().message;
}

TEST(BlockDevicePath, what_is_no_block_device_is_refused) {
  const test::TemporaryFolder folder;
  const auto missing = BlockDevice::open(folder / "missing");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Errc::not_found);
  EXPECT_NE(missing.error().message.find("expected a block device"), std::string::npos)
      << missing.error().message;
  for (const char* const path : {"/dev/null", "/tmp"}) {
    const auto refused = BlockDevice::open(path);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::invalid_argument);
    EXPECT_EQ(refused.error().message, std::string(path) + " is neither a block device nor a file");
  }
}

}  // namespace
}  // namespace uzram::os
