#include "codec_case.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "support/corpus.hpp"
#include "support/hostile.hpp"

namespace uzram::codec {

std::ostream& operator<<(std::ostream& out, const CodecCase& codec_case) {
  return out << codec_case.info->name << " level " << codec_case.level << " page "
             << codec_case.page_size_bytes;
}

bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

std::vector<CodecCase> all_cases() {
  std::vector<CodecCase> cases;
  for (const CodecInfo& info : registry()) {
    std::set levels = {info.min_level, info.default_level, info.max_level};
    if (info.min_level < 0) {
      // zstd's lowest level is so fast that it finds nothing in a page.
      levels.insert(-1);
    }
    for (const int level : levels) {
      for (const std::uint32_t page_size_bytes : {4096U, 65536U}) {
        cases.push_back({&info, level, page_size_bytes});
      }
    }
  }
  return cases;
}

std::string case_name(const testing::TestParamInfo<CodecCase>& info) {
  const CodecCase& codec_case = info.param;
  std::string level = std::to_string(codec_case.level);
  std::ranges::replace(level, '-', 'm');
  return std::string(codec_case.info->name) + "_level_" + level + "_page_" +
         std::to_string(codec_case.page_size_bytes);
}

void CodecTest::SetUp() {
  const CodecCase& codec_case = GetParam();
  Result<std::unique_ptr<Codec>> codec =
      make(codec_case.info->name, codec_case.level, codec_case.page_size_bytes);
  ASSERT_TRUE(codec) << codec.error().message;
  codec_ = *std::move(codec);
  Result<std::unique_ptr<Workspace>> workspace = codec_->make_workspace();
  ASSERT_TRUE(workspace) << workspace.error().message;
  workspace_ = *std::move(workspace);
}

std::vector<std::byte> CodecTest::compressed(std::span<const std::byte> page) {
  std::vector<std::byte> room(ample());
  const CompressResult result = compress(page, room);
  if (result.status != Errc::ok || result.size == 0 || result.size > room.size()) {
    ADD_FAILURE() << "compress: " << describe(result.status) << ", size " << result.size;
    return {};
  }
  room.resize(result.size);
  return room;
}

Errc CodecTest::decompress(std::span<const std::byte> src, std::span<std::byte> dst) {
  return codec_->decompress(codec_->decompress_needs_workspace() ? workspace_.get() : nullptr, src,
                            dst);
}

testing::AssertionResult CodecTest::round_trips(std::span<const std::byte> page) {
  const std::vector<std::byte> packed = compressed(page);
  std::vector<std::byte> decoded(page.size(), std::byte{0x77});
  const Errc status = decompress(packed, decoded);
  if (status != Errc::ok) {
    return testing::AssertionFailure() << "decompress: " << describe(status);
  }
  if (!same(decoded, page)) {
    return testing::AssertionFailure() << "the page came back different";
  }
  return testing::AssertionSuccess();
}

std::vector<std::vector<std::byte>> CodecTest::sample_pages() const {
  std::vector<std::vector<std::byte>> pages;
  for (const test::Corpus& corpus : test::sample_corpora()) {
    const auto views = corpus.pages(page_size());
    pages.emplace_back(views[1].begin(), views[1].end());
  }
  for (test::HostilePage& page : test::hostile_pages(page_size(), 1)) {
    pages.push_back(std::move(page.bytes));
  }
  return pages;
}

}  // namespace uzram::codec
