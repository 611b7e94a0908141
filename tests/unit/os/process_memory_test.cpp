#include "os/process_memory.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/process_with_pages.hpp"
#include "support/temporary_folder.hpp"

namespace uzram::os {
namespace {

constexpr std::uint64_t kPresent = std::uint64_t{1} << 63;
constexpr std::uint64_t kSwapped = std::uint64_t{1} << 62;
constexpr std::uint64_t kFile = std::uint64_t{1} << 61;

// A made-up proc with the process 42.
class FakeProc : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_ / "42");
    write("status", "Name:\tredis\x1b[31m\nUid:\t0\t0\t0\t0\n");
    write("mem", std::string(0x40000, '\0'));
  }
  void write(const char* name, const std::string& text) const {
    std::ofstream((folder_ / "42/") + name, std::ios::binary) << text;
  }
  // Entries for the pages from `address` on.
  void write_pagemap(std::uint64_t address, const std::vector<std::uint64_t>& entries) const {
    std::ofstream file(folder_ / "42/pagemap", std::ios::binary);
    file.seekp(static_cast<std::streamoff>(address / 4096 * sizeof(std::uint64_t)));
    file.write(reinterpret_cast<const char*>(entries.data()),
               static_cast<std::streamsize>(entries.size() * sizeof(std::uint64_t)));
  }
  // "address+pages address+pages"
  [[nodiscard]] std::string runs() const {
    const auto memory = ProcessMemory::open(42, folder_ / "");
    if (!memory) {
      return memory.error().message;
    }
    std::string text;
    for (const PageRun& run : (*memory)->runs()) {
      std::array<char, 40> room{};
      const int length = std::snprintf(
          room.data(), room.size(), "%s%llx+%llu", text.empty() ? "" : " ",
          static_cast<unsigned long long>(run.address), static_cast<unsigned long long>(run.pages));
      text.append(room.data(), static_cast<std::size_t>(length));
    }
    return text;
  }

  const test::TemporaryFolder folder_;
};

TEST_F(FakeProc, present_anonymous_pages_of_a_private_mapping_are_found) {
  write("smaps",
        "00010000-00016000 rw-p 00000000 00:00 0 \nAnonymous:  12 kB\nVmFlags: rd wr mr mw \n");
  write_pagemap(0x10000, {kPresent, kPresent, 0, kPresent | kFile, kSwapped, kPresent});
  EXPECT_EQ(runs(), "10000+2 15000+1");
}

TEST_F(FakeProc, shared_locked_huge_and_clean_mappings_are_left_out) {
  write("smaps",
        "00010000-00011000 rw-s 00000000 00:00 0\nAnonymous:  4 kB\nVmFlags: rd wr\n"
        "00011000-00012000 rw-p 00000000 00:00 0\nAnonymous:  4 kB\nVmFlags: rd wr lo\n"
        "00012000-00013000 rw-p 00000000 00:00 0\nAnonymous:  4 kB\nVmFlags: rd wr ht\n"
        "00013000-00014000 r--p 00000000 08:01 9 /lib/x\nAnonymous:  0 kB\nVmFlags: rd\n"
        "00014000-00015000 r--p 00000000 08:01 9 /lib/x\nAnonymous:  4 kB\nVmFlags: rd\n");
  write_pagemap(0x10000, std::vector<std::uint64_t>(5, kPresent));
  EXPECT_EQ(runs(), "14000+1");
}

TEST_F(FakeProc, mappings_that_touch_become_one_run) {
  write("smaps",
        "00010000-00011000 rw-p 0 00:00 0\nAnonymous: 4 kB\n"
        "00011000-00012000 rw-p 0 00:00 0\nAnonymous: 4 kB\n");
  write_pagemap(0x10000, {kPresent, kPresent});
  EXPECT_EQ(runs(), "10000+2");
}

TEST_F(FakeProc, a_mapping_of_a_tebibyte_is_left_out) {
  write("smaps",
        "00010000-00011000 rw-p 0 00:00 0\nAnonymous: 4 kB\n"
        "02000000000-12000000000 rw-p 0 00:00 0\nAnonymous: 4 kB\n");
  write_pagemap(0x10000, {kPresent});
  EXPECT_EQ(runs(), "10000+1");
}

TEST_F(FakeProc, without_pagemap_writable_private_mappings_count) {
  write("smaps",
        "00010000-00012000 rw-p 0 00:00 0\nAnonymous: 4 kB\n"
        "00013000-00014000 r--p 0 00:00 0\nAnonymous: 4 kB\n"
        "00015000-00016000 rw-p 0 00:00 0\nAnonymous: 0 kB\n");
  EXPECT_EQ(runs(), "10000+2");
}

TEST_F(FakeProc, without_smaps_maps_serves) {
  write("maps", "00010000-00012000 rw-p 00000000 00:00 0\n00013000-00014000 rw-s 0 00:00 0 /x\n");
  EXPECT_EQ(runs(), "10000+2");
  write_pagemap(0x10000, {0, kPresent});
  EXPECT_EQ(runs(), "11000+1");
}

TEST_F(FakeProc, a_process_that_is_gone_has_no_pages) { EXPECT_EQ(runs(), ""); }

TEST_F(FakeProc, a_name_cannot_command_the_terminal) {
  const auto memory = ProcessMemory::open(42, folder_ / "");
  ASSERT_TRUE(memory.has_value()) << memory.error().message;
  EXPECT_EQ((*memory)->name(), "redis?[31m");
}

TEST_F(FakeProc, reading_beyond_what_is_there_fails) {
  const auto memory = ProcessMemory::open(42, folder_ / "");
  ASSERT_TRUE(memory.has_value()) << memory.error().message;
  std::vector<std::byte> page(kProcessPage);
  EXPECT_TRUE((*memory)->read(0x3f000, page));
  EXPECT_FALSE((*memory)->read(0x3f800, page));
  EXPECT_FALSE((*memory)->read(0x40000, page));
}

TEST_F(FakeProc, lists_numbers_only_and_in_order) {
  for (const char* const name : {"7", "100", "self", "9x", "0"}) {
    std::filesystem::create_directory(folder_ / name);
  }
  const auto pids = list_processes(folder_ / "");
  ASSERT_TRUE(pids.has_value()) << pids.error().message;
  EXPECT_EQ(*pids, (std::vector<pid_t>{7, 42, 100}));
}

TEST(ProcessMemory, finds_and_reads_the_private_pages_of_a_child_and_not_its_shared_ones) {
  const test::ProcessWithPages child(64);
  ASSERT_TRUE(child.is_ready());
  const auto memory = ProcessMemory::open(child.pid());
  ASSERT_TRUE(memory.has_value()) << memory.error().message;
  std::multiset<std::uint64_t> found;
  std::vector<std::byte> page(kProcessPage);
  for (const PageRun& run : (*memory)->runs()) {
    for (std::uint64_t at = 0; at < run.pages; ++at) {
      if ((*memory)->read(run.address + at * kProcessPage, page)) {
        if (const auto number = test::ProcessWithPages::number_of(page)) {
          found.insert(*number);
        }
      }
    }
  }
  std::multiset<std::uint64_t> expected;
  for (std::uint64_t number = 0; number < 64; ++number) {
    expected.insert(number);
  }
  EXPECT_EQ(found, expected);
}

TEST(ProcessMemory, of_a_child_that_ends_cannot_be_read_any_more) {
  test::ProcessWithPages child(1);
  ASSERT_TRUE(child.is_ready());
  const auto memory = ProcessMemory::open(child.pid());
  ASSERT_TRUE(memory.has_value()) << memory.error().message;
  ASSERT_FALSE((*memory)->runs().empty());
  child.end();
  std::vector<std::byte> page(kProcessPage);
  EXPECT_FALSE((*memory)->read((*memory)->runs().front().address, page));
}

TEST(ProcessMemory, a_pid_that_does_not_exist_is_named) {
  test::ProcessWithPages child(1);
  const pid_t pid = child.pid();
  child.end();
  const auto memory = ProcessMemory::open(pid);
  ASSERT_FALSE(memory.has_value());
  EXPECT_EQ(memory.error().code, Errc::not_found);
  EXPECT_NE(memory.error().message.find("pid " + std::to_string(pid)), std::string::npos);
}

// As another user, which only root can become; other users have root's first process.
TEST(ProcessMemory, of_another_user_is_refused_and_names_the_owner) {
  const pid_t victim = ::geteuid() == 0 ? ::getpid() : 1;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) {
      ::_exit(2);
    }
    const auto memory = ProcessMemory::open(victim);
    const bool refused = !memory && memory.error().saved_errno == EACCES &&
                         memory.error().message.find("belongs to root") != std::string::npos &&
                         memory.error().message.find("run as root") != std::string::npos;
    ::_exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(ProcessMemory, lists_this_process) {
  const auto pids = list_processes();
  ASSERT_TRUE(pids.has_value()) << pids.error().message;
  EXPECT_TRUE(std::binary_search(pids->begin(), pids->end(), ::getpid()));
}

}  // namespace
}  // namespace uzram::os
