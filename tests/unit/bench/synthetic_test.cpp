#include "bench/synthetic.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/temporary_folder.hpp"

namespace uzram::bench {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::initializer_list<unsigned> values) {
  Bytes bytes;
  for (const unsigned value : values) {
    bytes.push_back(static_cast<std::byte>(value));
  }
  return bytes;
}

Synthetic with_pattern(const std::string& text) {
  Synthetic what;
  what.pattern_text = text;
  const auto pattern = parse_pattern(text);
  EXPECT_TRUE(pattern.has_value()) << text;
  what.pattern = pattern ? *pattern : Bytes{};
  return what;
}

Synthetic compressible(std::uint32_t percentage, std::uint32_t chunk = kDefaultChunk) {
  Synthetic what;
  what.compress_percentage = percentage;
  what.compress_chunk = chunk;
  return what;
}

bool is_same_filled(std::span<const std::byte> page) {
  return std::memcmp(page.data(), page.data() + 8, page.size() - 8) == 0;
}

// How many bytes at the end of `bytes` are zero.
std::size_t zeroes_at_end(std::span<const std::byte> bytes) {
  std::size_t count = 0;
  while (count < bytes.size() && bytes[bytes.size() - 1 - count] == std::byte{0}) {
    ++count;
  }
  return count;
}

// What the real fio writes to a file of `size` bytes; empty without fio.
Bytes written_by_fio(std::vector<std::string> options) {
  const test::TemporaryFolder folder;
  options.insert(options.begin(),
                 {"fio", "--name=x", "--rw=write", "--ioengine=psync",
                  "--filename=" + (folder / "file"), "--output=" + (folder / "output")});
  std::vector<char*> argv;
  argv.reserve(options.size() + 1);
  for (std::string& option : options) {
    argv.push_back(option.data());
  }
  argv.push_back(nullptr);
  pid_t pid = 0;
  int status = 0;
  if (::posix_spawnp(&pid, "fio", nullptr, nullptr, argv.data(), environ) != 0 ||
      ::waitpid(pid, &status, 0) != pid || status != 0) {
    return {};
  }
  std::ifstream file(folder / "file", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}

TEST(Pattern, is_read_as_fio_reads_it) {
  const std::vector<std::pair<std::string, Bytes>> cases = {
      {"0xbadc0ffee", bytes_of({0x0b, 0xad, 0xc0, 0xff, 0xee})},
      {"0xdeadBEEF", bytes_of({0xde, 0xad, 0xbe, 0xef})},
      {"0X0", bytes_of({0})},
      {"0x123", bytes_of({0x01, 0x23})},
      {"\"abc\"", bytes_of({'a', 'b', 'c'})},
      {"\"ab\"0x1234\"c\"", bytes_of({'a', 'b', 0x12, 0x34, 'c'})},
      {"0xff0x14", bytes_of({0xff, 0x14})},
      {"120x34", bytes_of({0x0c, 0x34})},
      {"12345", bytes_of({0x39, 0x30})},
      {"256", bytes_of({0, 1})},
      {"0", bytes_of({0})},
      {"-5", bytes_of({0xfb, 0xff, 0xff, 0xff})},
      {"\"ab\"-5\"c\"0", bytes_of({'a', 'b', 0xfb, 0xff, 0xff, 0xff, 'c', 0})}};
  for (const auto& [text, expected] : cases) {
    const auto pattern = parse_pattern(text);
    ASSERT_TRUE(pattern.has_value()) << pattern.error().message;
    EXPECT_TRUE(*pattern == expected) << text;
  }
}

TEST(Pattern, that_makes_no_sense_is_refused_and_named) {
  for (const std::string text : {"", "0x", "0xzz", "0x12zz", "abc", "\"a", "\"\"", "%o", "'file'",
                                 "0x12 0x13", "0x0x12", "4294967295", "-", "1.5"}) {
    const auto pattern = parse_pattern(text);
    ASSERT_FALSE(pattern.has_value()) << text;
    EXPECT_EQ(pattern.error().code, Errc::invalid_argument);
    EXPECT_NE(pattern.error().message.find("\"" + text + "\""), std::string::npos);
    EXPECT_NE(pattern.error().message.find("expected"), std::string::npos);
  }
}

TEST(Pattern, has_at_most_512_bytes) {
  const std::string longest = "0x" + std::string(1024, 'a');
  EXPECT_TRUE(parse_pattern(longest).has_value());
  EXPECT_FALSE(parse_pattern(longest + "a").has_value());
  EXPECT_FALSE(parse_pattern(longest + "\"a\"").has_value());
  EXPECT_FALSE(parse_pattern("\"" + std::string(513, 'a') + "\"").has_value());
}

TEST(Synthetic, a_pattern_goes_on_without_a_break_where_the_bank_begins_anew) {
  const std::string longest = "0x12" + std::string(1020, '5') + "67";
  const std::vector<std::pair<std::string, std::size_t>> cases = {
      {"0xbadc0ffee", 5}, {"0xdeadbeef", 1}, {"0x00", 1},
      {"\"abc\"", 3},     {"\"abcdef\"", 3}, {longest, 1}};
  for (const auto& [text, pages] : cases) {
    const Synthetic what = with_pattern(text);
    const Bytes bank = make_bank(what);
    ASSERT_EQ(bank.size(), pages * kDataPage) << text;
    for (std::size_t at = 0; at < 3 * bank.size(); ++at) {
      ASSERT_EQ(bank[at % bank.size()], what.pattern[at % what.pattern.size()]) << text << at;
    }
  }
}

TEST(Synthetic, random_data_do_not_repeat_and_are_the_same_at_every_run) {
  const Bytes bank = make_bank({});
  EXPECT_EQ(bank.size(), 4096 * kDataPage);
  EXPECT_TRUE(bank == make_bank({}));
  std::set<std::uint64_t> words;
  for (std::size_t at = 0; at < bank.size(); at += 512) {
    std::uint64_t word = 0;
    std::memcpy(&word, bank.data() + at, sizeof word);
    words.insert(word);
  }
  EXPECT_EQ(words.size(), bank.size() / 512);
}

TEST(Synthetic, each_chunk_is_random_and_then_zero) {
  for (const std::uint32_t percentage : {1U, 25U, 33U, 50U, 99U}) {
    const Bytes bank = make_bank(compressible(percentage));
    const std::size_t zeroes = 512 - 512 * (100 - percentage) / 100;
    std::set<std::byte> heads;
    for (std::size_t at = 0; at < 100 * kDataPage; at += 512) {
      const std::size_t found = zeroes_at_end(std::span(bank).subspan(at, 512));
      // A random byte may be zero, too.
      ASSERT_GE(found, zeroes) << percentage;
      ASSERT_LE(found, zeroes + 3) << percentage;
      heads.insert(bank[at]);
    }
    EXPECT_GT(heads.size(), 200U);
  }
}

TEST(Synthetic, nothing_or_all_of_a_chunk_may_be_compressible) {
  const Bytes zeroes = make_bank(compressible(100));
  EXPECT_TRUE(zeroes == Bytes(kDataPage));
  EXPECT_TRUE(make_bank(compressible(0)) == make_bank({}));
}

TEST(Synthetic, with_a_pattern_it_begins_anew_in_the_rest_of_each_chunk) {
  Synthetic what = with_pattern("0xbadc0ffee");
  what.compress_percentage = 50;
  const Bytes bank = make_bank(what);
  for (std::size_t at = 0; at < bank.size(); at += 512) {
    for (std::size_t place = 256; place < 512; ++place) {
      ASSERT_EQ(bank[at + place], what.pattern[(place - 256) % 5]);
    }
  }
  what.compress_percentage = 100;
  EXPECT_TRUE(make_bank(what) == make_bank(with_pattern("0xbadc0ffee")));
}

TEST(Synthetic, chunks_longer_than_a_page_go_on_over_pages) {
  const Bytes bank = make_bank(compressible(50, 3 * 8192));
  EXPECT_EQ(bank.size() % (3 * 8192), 0U);
  EXPECT_GE(bank.size(), 4096 * kDataPage);
  for (std::size_t page = 0; page < bank.size() / kDataPage; ++page) {
    EXPECT_EQ(zeroes_at_end(std::span(bank).subspan(page * kDataPage, kDataPage)) == kDataPage,
              page % 6 >= 3);
  }
}

TEST(Synthetic, same_filled_pages_are_as_many_as_asked_for_and_evenly_spread) {
  for (const std::uint32_t percentage : {1U, 20U, 37U, 100U}) {
    Synthetic what;
    what.same_percentage = percentage;
    const Bytes bank = make_bank(what);
    std::set<std::uint64_t> words;
    std::size_t count = 0;
    for (std::size_t page = 0; page < bank.size() / kDataPage; ++page) {
      const auto view = std::span(bank).subspan(page * kDataPage, kDataPage);
      if (is_same_filled(view)) {
        ++count;
        std::uint64_t word = 0;
        std::memcpy(&word, view.data(), sizeof word);
        words.insert(word);
      }
      ASSERT_EQ(count, (page + 1) * percentage / 100);
    }
    EXPECT_EQ(words.size(), count);
  }
}

TEST(Synthetic, the_other_pages_are_as_the_other_options_say) {
  Synthetic what = with_pattern("0xbadc0ffee");
  what.same_percentage = 50;
  const Bytes bank = make_bank(what);
  ASSERT_EQ(bank.size() / kDataPage % 5, 0U);
  for (std::size_t at = 0; at < kDataPage; ++at) {
    ASSERT_EQ(bank[at], what.pattern[at % 5]);
    ASSERT_EQ(bank[2 * kDataPage + at], what.pattern[(2 * kDataPage + at) % 5]);
  }
  EXPECT_TRUE(is_same_filled(std::span(bank).subspan(kDataPage, kDataPage)));
}

TEST(Synthetic, names_say_what_the_data_are) {
  EXPECT_EQ(name_of({}), "random");
  EXPECT_EQ(name_of(with_pattern("0xbadc0ffee")), "pattern-0xbadc0ffee");
  EXPECT_EQ(name_of(compressible(50)), "compress-50");
  EXPECT_EQ(name_of(compressible(50, 4096)), "compress-50-chunk-4096");
  Synthetic what = with_pattern("0x12");
  what.compress_percentage = 50;
  what.same_percentage = 20;
  EXPECT_EQ(name_of(what), "pattern-0x12+compress-50+same-20");
  what = {};
  what.same_percentage = 20;
  EXPECT_EQ(name_of(what), "same-20");
  EXPECT_LE(name_of(with_pattern("0x" + std::string(1000, 'a'))).size(), 60U);
}

TEST(Synthetic, a_pattern_is_byte_for_byte_what_fio_writes_into_a_block) {
  for (const std::string text : {"0xbadc0ffee", "0x123", "\"abc\"", "-5\"x\"0x0", "120x34"}) {
    const Bytes bank = make_bank(with_pattern(text));
    // A block of five or fifteen pages, and one of a page.
    for (const std::size_t block : {bank.size(), kDataPage}) {
      const Bytes fio =
          written_by_fio({"--buffer_pattern=" + text, "--scramble_buffers=0",
                          "--bs=" + std::to_string(block), "--size=" + std::to_string(block)});
      if (fio.empty()) {
        GTEST_SKIP() << "fio is not here";
      }
      ASSERT_EQ(fio.size(), block);
      EXPECT_TRUE(std::equal(fio.begin(), fio.end(), bank.begin())) << text;
    }
  }
}

TEST(Synthetic, compressible_blocks_have_the_structure_of_fios) {
  const std::array<std::pair<std::uint32_t, std::uint32_t>, 5> cases = {
      {{50, 512}, {33, 512}, {50, 1000}, {20, 1023}, {75, 4096}}};
  for (const auto& [percentage, chunk] : cases) {
    const Bytes bank = make_bank(compressible(percentage, chunk));
    const Bytes fio = written_by_fio({"--buffer_compress_percentage=" + std::to_string(percentage),
                                      "--buffer_compress_chunk=" + std::to_string(chunk),
                                      "--refill_buffers", "--bs=4k", "--size=256k"});
    if (fio.empty()) {
      GTEST_SKIP() << "fio is not here";
    }
    // A byte that is zero in all pages belongs to the rest of a chunk.
    const auto zero_in_all_pages = [](const Bytes& bytes) {
      std::vector<bool> zero(kDataPage, true);
      for (std::size_t at = 0; at < 64 * kDataPage; ++at) {
        zero[at % kDataPage] = zero[at % kDataPage] && bytes[at] == std::byte{0};
      }
      return zero;
    };
    ASSERT_EQ(fio.size(), 64 * kDataPage);
    EXPECT_TRUE(zero_in_all_pages(fio) == zero_in_all_pages(bank)) << percentage << " " << chunk;
  }
}

}  // namespace
}  // namespace uzram::bench
