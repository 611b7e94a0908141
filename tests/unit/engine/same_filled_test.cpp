#include "engine/same_filled.hpp"

#include <cstring>
#include <span>
#include <vector>

#include <gtest/gtest.h>

namespace uzram::engine {
namespace {

std::vector<std::byte> filled(std::uint64_t word, std::size_t size) {
  std::vector<std::byte> page(size);
  for (std::size_t i = 0; i < size; i += sizeof word) {
    std::memcpy(page.data() + i, &word, sizeof word);
  }
  return page;
}

TEST(SameFilled, any_repeated_word_is_recognised_and_one_changed_byte_is_not) {
  for (const std::uint64_t word : {std::uint64_t{0}, std::uint64_t{0x1122334455667788}}) {
    auto page = filled(word, 4096);
    std::uint64_t found = 1;
    ASSERT_TRUE(same_filled(page, found));
    EXPECT_EQ(found, word);
    for (const std::size_t at :
         {std::size_t{0}, std::size_t{9}, std::size_t{2048}, page.size() - 1}) {
      page[at] ^= std::byte{1};
      EXPECT_FALSE(same_filled(page, found)) << at;
      page[at] ^= std::byte{1};
    }
  }
}

TEST(SameFilled, a_fill_can_be_written_from_any_byte_of_the_page_on) {
  const std::uint64_t word = 0x1122334455667788;
  const auto page = filled(word, 64);
  for (std::size_t from = 0; from < 16; ++from) {
    for (std::size_t size = 1; size < 32; ++size) {
      std::vector<std::byte> out(64);
      write_fill(word, from, std::span(out).first(size));
      EXPECT_EQ(std::memcmp(out.data(), page.data() + from, size), 0) << from << " " << size;
      EXPECT_EQ(out[size], std::byte{0}) << "written beyond the end";
    }
  }
}

}  // namespace
}  // namespace uzram::engine
