#include "bench/data_options.hpp"

#include <utility>

#include "base/option_value.hpp"
#include "base/size.hpp"
#include "bench/corpus.hpp"
#include "bench/sample.hpp"
#include "bench/synthetic.hpp"

namespace uzram::bench {
namespace {

constexpr std::uint64_t kFewestMachinePages = 64;

Error together(std::string_view one, std::string_view other) {
  return {
      Errc::invalid_argument, 0,
      std::string(one) + " and " + std::string(other) + " cannot be combined; give one of them"};
}

Result<std::uint32_t> parse_percentage(std::string_view option, const std::string& text) {
  std::uint32_t value = 0;
  if (!take_number(text, value) || value > 100) {
    return refuse_option(option, text, "a whole number from 0 to 100");
  }
  return value;
}

Result<std::uint32_t> parse_chunk(const std::string& text) {
  constexpr std::string_view kOption = "--buffer-compress-chunk";
  const auto size = parse_size(kOption, text);
  if (!size) {
    return size.error();
  }
  if (*size == 0 || *size > kLongestChunk || (*size > kDataPage && *size % kDataPage != 0)) {
    return refuse_option(kOption, text, "1 to 4096 bytes, or a multiple of 4096 up to 1M");
  }
  return static_cast<std::uint32_t>(*size);
}

// Options that make no sense together.
Result<void> check_combination(const DataOptions& options) {
  const std::pair<std::string_view, bool> buffers[] = {
      {"--buffer-pattern", !options.buffer_pattern.empty()},
      {"--buffer-compress-percentage", !options.buffer_compress_percentage.empty()},
      {"--buffer-compress-chunk", !options.buffer_compress_chunk.empty()},
      {"--buffer-same-percentage", !options.buffer_same_percentage.empty()},
      {"--buffer-random", options.buffer_random}};
  for (const auto& [option, given] : buffers) {
    if (given && !options.corpus.empty()) {
      return together("--corpus", option);
    }
  }
  if (options.buffer_random && !options.buffer_pattern.empty()) {
    return together("--buffer-random", "--buffer-pattern");
  }
  if (options.buffer_random && !options.buffer_compress_percentage.empty()) {
    return together("--buffer-random", "--buffer-compress-percentage");
  }
  if (!options.buffer_compress_chunk.empty() && options.buffer_compress_percentage.empty()) {
    return refuse_option("--buffer-compress-chunk", options.buffer_compress_chunk,
                         "--buffer-compress-percentage with it");
  }
  return {};
}

Result<Synthetic> parse_buffers(const DataOptions& options) {
  Synthetic what;
  if (!options.buffer_pattern.empty()) {
    auto pattern = parse_pattern(options.buffer_pattern);
    if (!pattern) {
      return Error{Errc::invalid_argument, 0, "--buffer-" + pattern.error().message};
    }
    what.pattern_text = options.buffer_pattern;
    what.pattern = *std::move(pattern);
  }
  if (!options.buffer_compress_percentage.empty()) {
    const auto percentage =
        parse_percentage("--buffer-compress-percentage", options.buffer_compress_percentage);
    if (!percentage) {
      return percentage.error();
    }
    what.compress_percentage = *percentage;
  }
  if (!options.buffer_compress_chunk.empty()) {
    const auto chunk = parse_chunk(options.buffer_compress_chunk);
    if (!chunk) {
      return chunk.error();
    }
    what.compress_chunk = *chunk;
  }
  if (!options.buffer_same_percentage.empty()) {
    const auto same = parse_percentage("--buffer-same-percentage", options.buffer_same_percentage);
    if (!same) {
      return same.error();
    }
    what.same_percentage = *same;
  }
  return what;
}

}  // namespace

Result<DataSets> make_data_sets(const DataOptions& options) {
  if (Result<void> checked = check_combination(options); !checked) {
    return checked.error();
  }
  if (!options.corpus.empty()) {
    return load_data_sets(options.corpus);
  }
  const auto what = parse_buffers(options);
  if (!what) {
    return what.error();
  }
  auto set = make_synthetic(*what);
  if (!set) {
    return set.error();
  }
  return DataSets{*std::move(set)};
}

Result<std::shared_ptr<const DataSet>> sample_machine() {
  const auto sample = take_sample({{}, kSamplePages});
  if (!sample) {
    return sample.error();
  }
  const std::size_t pages = sample->bytes.size() / kDataPage;
  if (pages < kFewestMachinePages) {
    return Error{Errc::not_found, 0,
                 "only " + std::to_string(pages) +
                     " pages of this machine's processes may be read, expected at least " +
                     std::to_string(kFewestMachinePages) +
                     "; run as root, or give --corpus or a --buffer-... option"};
  }
  return DataSet::make("machine", sample->bytes);
}

Result<std::shared_ptr<const DataSet>> pattern_data(std::string_view pattern) {
  auto bytes = parse_pattern(pattern);
  if (!bytes) {
    return bytes.error();
  }
  Synthetic what;
  what.pattern_text = pattern;
  what.pattern = *std::move(bytes);
  return make_synthetic(what);
}

Result<std::shared_ptr<const DataSet>> compressible_data(std::uint32_t percentage) {
  Synthetic what;
  what.compress_percentage = percentage;
  return make_synthetic(what);
}

Result<std::shared_ptr<const DataSet>> random_data() { return make_synthetic({}); }

}  // namespace uzram::bench
