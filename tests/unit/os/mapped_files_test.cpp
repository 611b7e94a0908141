#include "os/mapped_files.hpp"

#include <gtest/gtest.h>

#include "os/proc_text.hpp"

namespace uzram::os {
namespace {

TEST(MappedFiles, the_program_is_what_has_code_and_the_zeroed_data_behind) {
  const auto ranges = program_ranges(
      "1000-2000 r--p 00000000 fe:00 12    /bin/my program\n"
      "2000-3000 r-xp 00001000 fe:00 12    /bin/my program\n"
      "3000-4000 ---p 00002000 fe:00 12    /bin/my program\n"
      "4000-5000 rw-p 00003000 fe:00 12    /bin/my program\n"
      "5000-6000 rw-p 00000000 00:00 0 \n"
      "6000-7000 rw-p 00000000 00:00 0 \n"
      "8000-9000 rw-p 00000000 00:00 0     [heap]\n"
      "a000-b000 rw-p 00000000 00:00 0 \n"
      "c000-d000 r--p 00000000 fe:00 13    /usr/lib/locale-archive\n"
      "e000-f000 rw-s 00000000 00:01 14    /memfd:pool (deleted)\n"
      "10000-11000 r-xp 00000000 00:00 0   [vdso]\n");
  ASSERT_EQ(ranges.size(), 5U);
  EXPECT_EQ(ranges[0].path, "/bin/my program");
  EXPECT_FALSE(ranges[0].writable);
  EXPECT_EQ(ranges[1].begin, 0x2000U);
  EXPECT_TRUE(ranges[2].writable);
  EXPECT_EQ(ranges[3].begin, 0x5000U);
  EXPECT_EQ(ranges[3].end, 0x6000U);
  EXPECT_EQ(ranges[4].path, "[heap]");
}

TEST(MappedFiles, text_of_another_form_is_left_out) {
  EXPECT_TRUE(program_ranges("").empty());
  EXPECT_TRUE(program_ranges("\nx\n1000\n1000-\n-\n").empty());
}

TEST(MappedFiles, finds_this_program_s_own_code_and_data) {
  static int data = 1;
  const auto code = reinterpret_cast<std::uintptr_t>(&program_ranges);
  const auto variable = reinterpret_cast<std::uintptr_t>(&data);
  bool has_code = false;
  bool has_data = false;
  for (const MappedRange& range : program_ranges(slurp("/proc/self/maps").value_or(""))) {
    has_code = has_code || (range.begin <= code && code < range.end);
    has_data = has_data || (range.begin <= variable && variable < range.end && range.writable);
  }
  EXPECT_TRUE(has_code);
  EXPECT_TRUE(has_data);
}

}  // namespace
}  // namespace uzram::os
