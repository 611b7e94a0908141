#include "base/size.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace uzram {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

TEST(ParseSize, takes_numbers_with_every_unit) {
  const std::vector<std::pair<std::string_view, std::uint64_t>> cases = {
      {"0", 0},
      {"1", 1},
      {"4096", 4096},
      {"007", 7},
      {"12B", 12},
      {"4K", 4096},
      {"4k", 4096},
      {"1KiB", 1024},
      {"1KB", 1024},
      {"512M", std::uint64_t{512} << 20},
      {"512m", std::uint64_t{512} << 20},
      {"1GiB", std::uint64_t{1} << 30},
      {"16T", std::uint64_t{16} << 40},
      {"3P", std::uint64_t{3} << 50},
      {"0P", 0},
  };
  for (const auto& [text, bytes] : cases) {
    const Result<std::uint64_t> size = parse_size("size", text);
    ASSERT_TRUE(size) << text << ": " << size.error().message;
    EXPECT_EQ(*size, bytes) << text;
  }
}

TEST(ParseSize, refuses_what_is_not_a_size) {
  const std::vector<std::string_view> cases = {
      "",     " ",     "K",   "-1",  "+1",  " 1",   "1 ",        "1 K",       "0x10",
      "1.5G", "1,5G",  "4X",  "1E",  "1Z",  "1KK",  "1KM",       "1Ki",       "1iB",
      "1KBB", "1KiBs", "ten", "1e3", "NaN", "1K\n", "4096bytes", "1\xc3\xa4", "B",
  };
  for (const std::string_view text : cases) {
    const Result<std::uint64_t> size = parse_size("size", text);
    ASSERT_FALSE(size) << '"' << text << "\" gave " << *size;
    EXPECT_EQ(size.error().code, Errc::invalid_argument) << text;
  }
}

TEST(ParseSize, refuses_a_size_with_a_zero_byte_in_it) {
  EXPECT_FALSE(parse_size("size", std::string_view("1\0K", 3)));
  EXPECT_FALSE(parse_size("size", std::string_view("1K\0", 3)));
}

TEST(ParseSize, reads_no_further_than_its_text) {
  const std::string text = "12345";
  const Result<std::uint64_t> size = parse_size("size", std::string_view(text).substr(0, 2));
  ASSERT_TRUE(size);
  EXPECT_EQ(*size, 12U);
}

TEST(ParseSize, takes_the_largest_size_and_refuses_one_more) {
  const Result<std::uint64_t> largest = parse_size("size", "18446744073709551615");
  ASSERT_TRUE(largest);
  EXPECT_EQ(*largest, kMax);
  const Result<std::uint64_t> largest_petabytes = parse_size("size", "16383P");
  ASSERT_TRUE(largest_petabytes);
  EXPECT_EQ(*largest_petabytes, std::uint64_t{16383} << 50);
  for (const std::string_view text :
       {"18446744073709551616", "16384P", "18014398509481984K", "99999999999999999999999G"}) {
    const Result<std::uint64_t> size = parse_size("size", text);
    ASSERT_FALSE(size) << text << " gave " << *size;
    EXPECT_EQ(size.error().code, Errc::invalid_argument);
  }
}

TEST(ParseSize, names_the_option_the_value_and_what_was_expected) {
  EXPECT_EQ(parse_size("mem_limit", "4X").error().message,
            "mem_limit \"4X\": expected a number and K, M, G, T or P");
  EXPECT_EQ(parse_size("size", "16384P").error().message, "size \"16384P\": does not fit 64 bits");
  EXPECT_EQ(parse_size("size", "18446744073709551616").error().message,
            "size \"18446744073709551616\": does not fit 64 bits");
}

TEST(FormatSize, writes_zramctls_form) {
  const std::vector<std::pair<std::uint64_t, std::string_view>> cases = {
      {0, "0B"},
      {1, "1B"},
      {12, "12B"},
      {1023, "1023B"},
      {1024, "1K"},
      {4096, "4K"},
      {1536, "1.5K"},
      {1024 + 51, "1K"},
      {1024 + 52, "1.1K"},
      {std::uint64_t{3} << 29, "1.5G"},
      {std::uint64_t{512} << 20, "512M"},
      {std::uint64_t{16} << 40, "16T"},
      {std::uint64_t{5} << 50, "5P"},
      {std::uint64_t{1} << 60, "1E"},
  };
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(format_size(bytes), text) << bytes;
  }
}

TEST(FormatSize, carries_a_tenth_that_rounds_up) {
  EXPECT_EQ(format_size(2047), "2K");
  EXPECT_EQ(format_size((std::uint64_t{2} << 20) - 1), "2M");
  EXPECT_EQ(format_size(kMax), "16E");
}

TEST(FormatSize, and_parse_size_agree_on_whole_units) {
  for (unsigned shift = 0; shift < 60; shift += 10) {
    const std::uint64_t bytes = std::uint64_t{37} << shift;
    const Result<std::uint64_t> parsed = parse_size("size", format_size(bytes));
    ASSERT_TRUE(parsed) << format_size(bytes);
    EXPECT_EQ(*parsed, bytes);
  }
}

TEST(RoundUp, gives_the_next_multiple_and_leaves_multiples_alone) {
  EXPECT_EQ(round_up(0, 4096), 0U);
  EXPECT_EQ(round_up(1, 4096), 4096U);
  EXPECT_EQ(round_up(4096, 4096), 4096U);
  EXPECT_EQ(round_up(4097, 4096), 8192U);
  EXPECT_EQ(round_up(10, 3), 12U);
}

}  // namespace
}  // namespace uzram
