#include "base/crc32c.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace uzram {
namespace {

std::vector<std::byte> random_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  Random(1).fill(bytes);
  return bytes;
}

// Bit by bit, from the definition.
std::uint32_t crc32c_by_definition(std::span<const std::byte> bytes) {
  std::uint32_t sum = 0xffffffff;
  for (const std::byte byte : bytes) {
    sum ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      sum = (sum >> 1) ^ ((sum & 1) != 0 ? 0x82f63b78U : 0U);
    }
  }
  return ~sum;
}

void expect_all_agree(std::span<const std::byte> bytes) {
  const std::uint32_t expected = crc32c_by_definition(bytes);
  EXPECT_EQ(crc32c(bytes), expected) << bytes.size();
  EXPECT_EQ(crc32c_by_table(bytes), expected) << bytes.size();
}

TEST(Crc32c, gives_the_sums_of_rfc_3720) {
  std::array<std::byte, 32> bytes{};
  EXPECT_EQ(crc32c(bytes), 0x8a9136aaU);
  bytes.fill(std::byte{0xff});
  EXPECT_EQ(crc32c(bytes), 0x62a8ab43U);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    bytes.at(at) = static_cast<std::byte>(at);
  }
  EXPECT_EQ(crc32c(bytes), 0x46dd794eU);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    bytes.at(at) = static_cast<std::byte>(31 - at);
  }
  EXPECT_EQ(crc32c(bytes), 0x113fdb5cU);
  // An iSCSI Read (10) command.
  constexpr std::array<std::uint8_t, 48> kCommand = {
      0x01, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
      0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00,
      0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x18, 0x28, 0x00, 0x00, 0x00,
      0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
  EXPECT_EQ(crc32c(std::as_bytes(std::span(kCommand))), 0xd9963a56U);
}

TEST(Crc32c, gives_the_check_value_of_the_catalogues) {
  constexpr std::string_view kDigits = "123456789";
  EXPECT_EQ(crc32c(std::as_bytes(std::span(kDigits))), 0xe3069283U);
}

TEST(Crc32c, by_instruction_and_by_table_agree_for_short_lengths_at_all_alignments) {
  const std::vector<std::byte> bytes = random_bytes(308);
  for (std::size_t offset = 0; offset < 8; ++offset) {
    for (std::size_t length = 0; length <= 300; ++length) {
      expect_all_agree(std::span(bytes).subspan(offset, length));
    }
  }
}

TEST(Crc32c, agrees_around_the_length_of_three_streams_and_beyond) {
  const std::vector<std::byte> bytes = random_bytes(20'000);
  for (const std::size_t length :
       {4079, 4080, 4081, 4088, 4095, 4096, 4097, 8159, 8160, 8161, 12'345, 16'384, 19'993}) {
    for (const std::size_t offset : {0, 1, 7}) {
      expect_all_agree(std::span(bytes).subspan(offset, length));
    }
  }
}

TEST(Crc32c, of_a_page_changes_with_every_bit) {
  std::vector<std::byte> page(4096);
  const std::uint32_t before = crc32c(page);
  for (std::size_t bit = 0; bit < page.size() * 8; bit += 61) {
    page[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_NE(crc32c(page), before) << bit;
    page[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
  }
}

}  // namespace
}  // namespace uzram
