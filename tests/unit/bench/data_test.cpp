#include "bench/data.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/crc32c.hpp"
#include "base/random.hpp"

namespace uzram::bench {
namespace {

std::vector<std::byte> random_pages(std::size_t pages) {
  std::vector<std::byte> bytes(pages * kDataPage);
  Random(pages).fill(bytes);
  return bytes;
}

TEST(DataSet, every_page_is_followed_by_the_bank_over_and_over_for_the_longest_block) {
  for (const std::size_t pages : {1, 3, 1024, 1025}) {
    const std::vector<std::byte> bytes = random_pages(pages);
    const auto made = DataSet::make("x", bytes);
    ASSERT_TRUE(made.has_value()) << made.error().message;
    const DataSet& set = **made;
    ASSERT_EQ(set.pages(), pages);
    for (const std::uint32_t index : {0U, set.pages() / 2, set.pages() - 1}) {
      for (std::size_t page = 0; page < kLongestBlock / kDataPage; ++page) {
        const std::byte* const shown = set.at(index) + page * kDataPage;
        const std::uint32_t expected = set.index_of(index + page, 0);
        ASSERT_EQ(set.index_at(shown), expected);
        ASSERT_EQ(std::memcmp(shown, bytes.data() + expected * kDataPage, kDataPage), 0)
            << pages << " pages, page " << page << " from " << index;
      }
    }
  }
}

TEST(DataSet, pages_are_aligned_and_summed) {
  const std::vector<std::byte> bytes = random_pages(5);
  const auto set = DataSet::make("x", bytes);
  ASSERT_TRUE(set.has_value()) << set.error().message;
  for (std::uint32_t index = 0; index < 5; ++index) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>((*set)->at(index)) % kDataPage, 0U);
    EXPECT_EQ((*set)->crc32c(index),
              crc32c(std::span(bytes).subspan(index * kDataPage, kDataPage)));
  }
}

TEST(DataSet, the_next_generation_puts_another_page_everywhere) {
  const auto set = DataSet::make("x", random_pages(7));
  ASSERT_TRUE(set.has_value()) << set.error().message;
  for (std::uint64_t page = 0; page < 20; ++page) {
    EXPECT_NE((*set)->index_of(page, 3), (*set)->index_of(page, 4));
  }
}

TEST(DataSet, bytes_that_are_not_whole_pages_are_refused) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kDataPage - 1, kDataPage + 1}) {
    const auto set = DataSet::make("odd one", std::vector<std::byte>(size));
    ASSERT_FALSE(set.has_value()) << size;
    EXPECT_EQ(set.error().code, Errc::invalid_argument);
    EXPECT_NE(set.error().message.find("odd one"), std::string::npos);
    EXPECT_NE(set.error().message.find(std::to_string(size)), std::string::npos);
  }
}

TEST(DataSet, is_not_in_a_core_dump) {
  const auto set = DataSet::make("x", random_pages(2));
  ASSERT_TRUE(set.has_value()) << set.error().message;
  std::array<char, 32> begin{};
  std::snprintf(begin.data(), begin.size(), "%llx-",
                static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>((*set)->at(0))));
  std::ifstream smaps("/proc/self/smaps");
  std::string line;
  bool found = false;
  while (std::getline(smaps, line) && !(found && line.starts_with("VmFlags:"))) {
    found = found || line.starts_with(begin.data());
  }
  EXPECT_NE(line.find(" dd"), std::string::npos) << line;
}

}  // namespace
}  // namespace uzram::bench
