#include "os/memory_file.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace uzram::os {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

TEST(MemoryFile, holds_memory_only_where_room_was_taken_and_gives_it_back) {
  auto file = MemoryFile::create("test");
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->resize(1024 * kMiB), Errc::ok);
  const Mapping mapping = file->map(0, 1024 * kMiB);
  ASSERT_NE(mapping.data(), nullptr);
  EXPECT_EQ(file->resident_bytes(), 0U);
  ASSERT_EQ(file->take_room(mapping.data() + 64 * kMiB, 64 * kMiB, kMiB), Errc::ok);
  EXPECT_EQ(file->resident_bytes(), kMiB);
  std::memset(mapping.data() + 64 * kMiB, 7, kMiB);
  EXPECT_EQ(file->resident_bytes(), kMiB) << "touching what was taken takes nothing more";
  ASSERT_EQ(file->give_back(64 * kMiB, kMiB / 2), Errc::ok);
  EXPECT_EQ(file->resident_bytes(), kMiB / 2);
  EXPECT_EQ(mapping.data()[64 * kMiB + kMiB - 1], std::byte{7});
  EXPECT_EQ(mapping.data()[64 * kMiB], std::byte{0});
}

TEST(MemoryFile, maps_at_an_alignment) {
  auto file = MemoryFile::create("test");
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->resize(8 * kMiB), Errc::ok);
  for (int times = 0; times < 8; ++times) {
    const Mapping mapping = file->map(4 * kMiB, 3 * kMiB, kLargePage);
    ASSERT_NE(mapping.data(), nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mapping.data()) % kLargePage, 0U);
    EXPECT_EQ(mapping.size(), 3 * kMiB);
    ASSERT_EQ(file->take_room(mapping.data(), 4 * kMiB, 3 * kMiB), Errc::ok);
    std::memset(mapping.data(), times, 3 * kMiB);
  }
}

TEST(MemoryFile, takes_a_large_page_and_gives_back_any_part_of_it) {
  auto file = MemoryFile::create("test");
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->resize(2 * kLargePage), Errc::ok);
  const Mapping mapping = file->map(0, 2 * kLargePage, kLargePage);
  ASSERT_NE(mapping.data(), nullptr);
  if (file->take_large_page(mapping.data() + kLargePage) != Errc::ok) {
    // As on a system that has none: the rest can still be taken.
    ASSERT_EQ(file->take_room(mapping.data() + kLargePage, kLargePage, kLargePage), Errc::ok);
  }
  EXPECT_EQ(file->resident_bytes(), kLargePage);
  EXPECT_EQ(mapping.data()[kLargePage], std::byte{0});
  std::memset(mapping.data() + kLargePage, 7, kLargePage);
  ASSERT_EQ(file->give_back(kLargePage, 64 << 10), Errc::ok);
  EXPECT_EQ(file->resident_bytes(), kLargePage - (64 << 10));
  EXPECT_EQ(mapping.data()[kLargePage], std::byte{0});
  EXPECT_EQ(mapping.data()[kLargePage + (64 << 10)], std::byte{7});
  ASSERT_EQ(file->give_back(kLargePage, kLargePage), Errc::ok);
  EXPECT_EQ(file->resident_bytes(), 0U);
}

TEST(MemoryFile, two_mappings_see_the_same_bytes) {
  auto file = MemoryFile::create("test");
  ASSERT_TRUE(file);
  ASSERT_EQ(file->resize(kMiB), Errc::ok);
  const Mapping first = file->map(0, kMiB);
  const Mapping second = file->map(kMiB / 2, kMiB / 2);
  ASSERT_NE(first.data(), nullptr);
  ASSERT_NE(second.data(), nullptr);
  first.data()[kMiB / 2 + 3] = std::byte{9};
  EXPECT_EQ(second.data()[3], std::byte{9});
}

TEST(MemoryFile, a_child_does_not_inherit_the_mapping) {
  auto file = MemoryFile::create("test");
  ASSERT_TRUE(file);
  ASSERT_EQ(file->resize(kMiB), Errc::ok);
  const Mapping mapping = file->map(0, kMiB);
  ASSERT_NE(mapping.data(), nullptr);
  int channel[2];
  ASSERT_EQ(::pipe(channel), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    // write(2) reports an address that is not mapped as an error instead of a signal.
    const ssize_t written = ::write(channel[1], mapping.data(), 1);
    ::_exit(written == 1 ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 3);
  ::close(channel[0]);
  ::close(channel[1]);
}

TEST(MemoryFile, a_size_beyond_the_file_size_limit_is_an_error_and_no_signal) {
  auto file = MemoryFile::create("test");
  ASSERT_TRUE(file);
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {kMiB, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_EQ(file->resize(2 * kMiB), Errc::system);
  EXPECT_EQ(errno, EFBIG);
  EXPECT_EQ(file->resize(kMiB), Errc::ok);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
}

TEST(MemoryFile, moving_leaves_nothing_behind) {
  auto file = MemoryFile::create("test");
  ASSERT_TRUE(file);
  MemoryFile taken = std::move(*file);
  EXPECT_GE(taken.fd(), 0);
  EXPECT_EQ(file->fd(), -1);
  ASSERT_EQ(taken.resize(kMiB), Errc::ok);
}

TEST(PrivateMemory, is_reserved_without_being_taken) {
  const Mapping reserved = reserve_private(256 * kMiB);
  ASSERT_NE(reserved.data(), nullptr);
  ASSERT_EQ(take_private_room(reserved.data() + kMiB, kMiB), Errc::ok);
  EXPECT_EQ(reserved.data()[kMiB], std::byte{0});
}

}  // namespace
}  // namespace uzram::os
