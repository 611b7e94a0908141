// CodecTest: the fixture of the contract tests, run for every codec of the registry at its lowest,
// default and highest level and with the smallest and the largest page.
//
// Threads: compress and decompress use the fixture's workspace, so one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "codec/codec.hpp"

namespace uzram::codec {

struct CodecCase {
  const CodecInfo* info = nullptr;
  int level = 0;
  std::uint32_t page_size_bytes = 0;

  // At their highest level some codecs take milliseconds a page.
  [[nodiscard]] bool is_slow() const {
    return level == info->max_level && level != info->default_level;
  }
};

std::ostream& operator<<(std::ostream& out, const CodecCase& codec_case);
[[nodiscard]] std::vector<CodecCase> all_cases();
// Whether they hold the same bytes; quick in builds without optimisation too.
[[nodiscard]] bool same(std::span<const std::byte> a, std::span<const std::byte> b);
// Such as "zstd_level_m131072_page_4096".
[[nodiscard]] std::string case_name(const testing::TestParamInfo<CodecCase>& info);

class CodecTest : public testing::TestWithParam<CodecCase> {
 protected:
  void SetUp() override;

  [[nodiscard]] std::size_t page_size() const { return GetParam().page_size_bytes; }
  // Enough for what any codec makes of a page.
  [[nodiscard]] std::size_t ample() const { return page_size() * 2 + 1024; }

  [[nodiscard]] CompressResult compress(std::span<const std::byte> page, std::span<std::byte> dst) {
    return codec_->compress(*workspace_, page, dst);
  }
  // Compresses with ample room; a failure is reported and gives an empty vector.
  [[nodiscard]] std::vector<std::byte> compressed(std::span<const std::byte> page);
  // Gives no workspace when the codec needs none.
  [[nodiscard]] Errc decompress(std::span<const std::byte> src, std::span<std::byte> dst);
  // Compresses with ample room and decompresses.
  [[nodiscard]] testing::AssertionResult round_trips(std::span<const std::byte> page);

  // Fewer repetitions with large pages, which take longer: `count` for the smallest page.
  [[nodiscard]] std::size_t repeat(std::size_t count) const {
    return page_size() == 4096 ? count : count / 8 + 1;
  }

  // Some compressible and some incompressible pages.
  [[nodiscard]] std::vector<std::vector<std::byte>> sample_pages() const;

  std::unique_ptr<Codec> codec_;
  std::unique_ptr<Workspace> workspace_;
};

#define UZRAM_FOR_EVERY_CODEC(suite) \
  INSTANTIATE_TEST_SUITE_P(Every, suite, testing::ValuesIn(all_cases()), case_name)

}  // namespace uzram::codec
