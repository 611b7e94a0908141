// Whatever a file of results holds, reading it ends in results or a message, results come back the
// same after another round through JSON, and the text outputs can print them.
//
// Input: the text of a file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "bench/outputs.hpp"
#include "bench/results.hpp"

namespace {

using uzram::bench::FioStyle;
using uzram::bench::ResultFile;

void require(bool held) {
  if (!held) {
    std::abort();
  }
}

// No text may hold what steers a terminal.
void require_plain(const std::string& text) {
  for (const char byte : text) {
    require(byte == '\n' || (static_cast<unsigned char>(byte) >= 0x20 && byte != 0x7f));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(  // NOLINT(readability-identifier-naming)
    const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  const uzram::Result<ResultFile> results = uzram::bench::parse_results(text);
  if (!results) {
    require(!results.error().message.empty());
    return 0;
  }
  const nlohmann::ordered_json json = uzram::bench::to_json(*results);
  const uzram::Result<ResultFile> back = uzram::bench::parse_results(json.dump());
  require(back.has_value());
  require(uzram::bench::to_json(*back) == json);

  require_plain(uzram::bench::format_tables(*results));
  require_plain(uzram::bench::format_fio(*results, FioStyle::fio2));
  require_plain(uzram::bench::format_fio(*results, FioStyle::fio3));
  const uzram::Result<std::string> comparison =
      uzram::bench::format_comparison(*results, *back, {});
  require_plain(comparison ? *comparison : comparison.error().message);
  return 0;
}
