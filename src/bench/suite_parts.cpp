#include "bench/suite_parts.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/option_value.hpp"
#include "base/size.hpp"
#include "bench/target.hpp"
#include "codec/codec.hpp"
#include "os/kernel_zram.hpp"

namespace uzram::bench {
namespace {

constexpr std::uint32_t kMostJobs = 1024;
constexpr std::uint32_t kMostDepth = 4096;
constexpr std::uint32_t kMostRounds = 1000;
constexpr std::uint32_t kMostLoops = 1000000;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

bool read_number(std::string_view text, std::uint32_t& number) noexcept {
  return take_number(text, number) && number != 0;
}

std::string_view either(const std::string& given, std::string_view fallback) noexcept {
  return given.empty() ? fallback : std::string_view(given);
}

Result<std::vector<std::uint64_t>> read_block_sizes(std::string_view text) {
  auto words = parse_words("--block-size", text);
  if (!words) {
    return std::move(words).error();
  }
  std::vector<std::uint64_t> sizes;
  for (const std::string& word : *words) {
    auto size = parse_size("--block-size", word);
    if (!size) {
      return std::move(size).error();
    }
    if (*size == 0 || *size % kDataPage != 0 || *size > kLongestBlock) {
      return refuse_option("--block-size", word, "a multiple of 4K, at most 4M");
    }
    if (std::find(sizes.begin(), sizes.end(), *size) == sizes.end()) {
      sizes.push_back(*size);
    }
  }
  return sizes;
}

Result<std::uint64_t> read_size(std::string_view text) {
  auto size = parse_size("--size", text);
  if (!size) {
    return size;
  }
  if (*size < kMiB || *size > kMaxDiskSize) {
    return refuse_option("--size", text, "a size from 1M to 16T");
  }
  return round_up(*size, kMiB);
}

// Whether both are one compressor at one level, its default one when none is given.
bool are_same(const Algorithm& one, const Algorithm& other) {
  const auto level_of = [](const Algorithm& algorithm) {
    const codec::CodecInfo& info = *codec::find(algorithm.name);
    const auto level =
        algorithm.level.empty() ? info.default_level : codec::level_from(info, algorithm.level);
    return level ? std::to_string(*level) : algorithm.level;
  };
  return one.name == other.name && level_of(one) == level_of(other);
}

// The kernel's zram is in every run that can have it: it is what the numbers are compared with.
Result<std::vector<TargetConfig>> default_targets(std::string_view targets,
                                                  std::vector<std::string>& notes) {
  std::string list(targets);
  if (const auto available = os::KernelZram::available(); available) {
    list += ",zram";
  } else {
    notes.push_back("the kernel's zram is left out: " + available.error().message);
  }
  return parse_targets({list});
}

Result<void> read_load(const SuiteOptions& options, const Defaults& defaults, Settings& settings) {
  auto jobs = parse_numbers("--jobs", either(options.jobs, defaults.jobs), kMostJobs);
  auto block_sizes = read_block_sizes(either(options.block_sizes, defaults.block_sizes));
  auto iodepth = parse_number("--iodepth", either(options.iodepth, defaults.iodepth), kMostDepth);
  auto loops = parse_number("--loops", either(options.loops, defaults.loops), kMostLoops);
  auto runtime = parse_seconds("--runtime", either(options.runtime, defaults.runtime));
  auto rounds = parse_number("--rounds", either(options.rounds, "5"), kMostRounds);
  auto size = read_size(either(options.size, defaults.size));
  if (const Error* const error =
          first_error(jobs, block_sizes, iodepth, loops, runtime, rounds, size)) {
    return *error;
  }
  if (!options.verify.empty() && options.verify != "crc32c") {
    return refuse_option("--verify", options.verify, "crc32c");
  }
  settings.jobs = *std::move(jobs);
  settings.block_sizes = *std::move(block_sizes);
  settings.iodepth = *iodepth;
  settings.loops = *loops;
  settings.runtime_s = *runtime;
  settings.length_given = !options.loops.empty() || !options.runtime.empty();
  settings.rounds = *rounds;
  settings.size_bytes = *size;
  settings.size_given = !options.size.empty();
  settings.verify = !options.verify.empty();
  settings.latency = options.latency;
  return check_room_for_jobs(settings);
}

}  // namespace

Result<std::uint32_t> parse_number(std::string_view option, std::string_view text,
                                   std::uint32_t most) {
  std::uint32_t number = 0;
  if (!read_number(text, number) || number > most) {
    return refuse_option(option, text, "a number from 1 to " + std::to_string(most));
  }
  return number;
}

Result<std::vector<std::uint32_t>> parse_numbers(std::string_view option, std::string_view text,
                                                 std::uint32_t most) {
  const Error refused = refuse_option(
      option, text, "numbers from 1 to " + std::to_string(most) + ", such as 1-10 or 1,2,4");
  auto words = parse_words(option, text);
  if (!words) {
    return refused;
  }
  std::vector<std::uint32_t> numbers;
  for (const std::string_view word : *words) {
    const std::size_t dash = std::min(word.find('-'), word.size());
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    if (!read_number(word.substr(0, dash), first) ||
        !read_number(dash == word.size() ? word : word.substr(dash + 1), last) || last < first ||
        last > most) {
      return refused;
    }
    for (; first <= last; ++first) {
      if (std::find(numbers.begin(), numbers.end(), first) == numbers.end()) {
        numbers.push_back(first);
      }
    }
  }
  return numbers;
}

Result<std::vector<std::string>> parse_words(std::string_view option, std::string_view text) {
  std::vector<std::string> words;
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    if (comma == 0) {
      return refuse_option(option, text, "words separated by commas, none of them empty");
    }
    words.emplace_back(rest.substr(0, comma));
    if (comma == rest.size()) {
      return words;
    }
    rest.remove_prefix(comma + 1);
  }
}

Result<double> parse_seconds(std::string_view option, std::string_view text) {
  constexpr double kMost = 86400;
  double seconds = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, seconds);
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  if (unit == "m") {
    seconds *= 60;
  }
  const bool possible = seconds >= 0 && seconds <= kMost;
  if (problem != std::errc{} || !possible || (!unit.empty() && unit != "s" && unit != "m")) {
    return refuse_option(option, text, "seconds up to a day, such as 60, 0.5s or 2m");
  }
  return seconds;
}

Result<void> check_room_for_jobs(const Settings& settings) {
  const std::uint64_t smallest =
      *std::max_element(settings.block_sizes.begin(), settings.block_sizes.end()) *
      *std::max_element(settings.jobs.begin(), settings.jobs.end());
  if (settings.size_bytes < smallest) {
    return refuse_option("--size", format_size(settings.size_bytes),
                         "at least " + format_size(smallest) + ", a block for each job");
  }
  return {};
}

Result<Settings> read_settings(const SuiteOptions& options, const Defaults& defaults) {
  Settings settings;
  if (auto read = read_load(options, defaults, settings); !read) {
    return std::move(read).error();
  }
  auto targets = options.targets.empty() ? default_targets(defaults.targets, settings.notes)
                                         : parse_targets(options.targets);
  if (!targets) {
    return std::move(targets).error();
  }
  settings.targets = *std::move(targets);
  return settings;
}

Result<DataSets> data_or_machine(const SuiteOptions& options) {
  if (!options.data.empty()) {
    return make_data_sets(options.data);
  }
  auto sample = sample_machine();
  if (!sample) {
    return std::move(sample).error();
  }
  return DataSets{*std::move(sample)};
}

Result<DataSets> data_of_experiment(const SuiteOptions& options) {
  if (!options.data.empty()) {
    return make_data_sets(options.data);
  }
  auto pattern = pattern_data("0xbadc0ffee");
  auto compressible = compressible_data(50);
  if (!pattern || !compressible) {
    return pattern ? std::move(compressible).error() : std::move(pattern).error();
  }
  return DataSets{*std::move(pattern), *std::move(compressible)};
}

std::string_view experiment_algorithm() noexcept {
  return codec::find("lzo") != nullptr ? "lzo" : "lz4";
}

Result<std::vector<Algorithm>> read_algorithms(const SuiteOptions& options,
                                               std::string_view fallback) {
  auto words = parse_words("--algorithm", either(options.algorithms, fallback));
  if (!words) {
    return std::move(words).error();
  }
  std::vector<Algorithm> algorithms;
  for (const std::string& word : *words) {
    const std::size_t colon = std::min(word.find(':'), word.size());
    Algorithm algorithm{word.substr(0, colon), colon == word.size() ? "" : word.substr(colon + 1)};
    if (codec::find(algorithm.name) == nullptr) {
      return refuse_option("--algorithm", word,
                           "one of " + codec::names() + ", with :LEVEL as wanted");
    }
    if (std::none_of(algorithms.begin(), algorithms.end(),
                     [&](const Algorithm& other) { return are_same(algorithm, other); })) {
      algorithms.push_back(std::move(algorithm));
    }
  }
  return algorithms;
}

Result<std::vector<TargetConfig>> with_variants(const std::vector<TargetConfig>& targets,
                                                std::string_view key,
                                                const std::vector<std::string>& values) {
  std::vector<std::string> distinct;
  for (const std::string& value : values) {
    if (std::find(distinct.begin(), distinct.end(), value) == distinct.end()) {
      distinct.push_back(value);
    }
  }
  std::vector<TargetConfig> variants;
  for (const TargetConfig& target : targets) {
    const bool given = key == "streams" ? target.streams_given : target.mode_given;
    if (target.kind != TargetKind::engine || given) {
      variants.push_back(target);
      continue;
    }
    for (const std::string& value : distinct) {
      variants.push_back(target);
      if (auto set = vary(variants.back(), key, value); !set) {
        return std::move(set).error();
      }
    }
  }
  make_labels_unique(variants);
  return variants;
}

std::uint64_t experiment_job_bytes(std::uint64_t size_bytes, std::uint32_t jobs,
                                   std::uint64_t block_size) noexcept {
  const std::uint64_t whole = size_bytes / jobs;
  const std::uint64_t tenth = size_bytes / 10;
  std::uint64_t bytes = whole > tenth ? (whole - tenth) / kMiB * kMiB : 0;
  if (bytes == 0) {
    bytes = whole / 10 * 9;
  }
  return std::max(block_size, bytes / block_size * block_size);
}

Phase phase_of(const Settings& settings, std::uint32_t jobs, std::uint64_t block_size) {
  Phase phase;
  phase.jobs = jobs;
  phase.block_size = block_size;
  phase.iodepth = settings.iodepth;
  phase.latency = settings.latency;
  phase.verify = settings.verify;
  return phase;
}

void divide_device(const Settings& settings, Phase& phase) {
  phase.job_bytes = settings.size_bytes / phase.jobs / phase.block_size * phase.block_size;
  phase.job_stride = phase.job_bytes;
}

Result<Plan> plan_of_pages(const SuiteOptions& options, const Defaults& defaults,
                           PhasesOf phases_of) {
  auto settings = read_settings(options, defaults);
  if (!settings) {
    return std::move(settings).error();
  }
  auto algorithms = read_algorithms(options, "lz4");
  if (!algorithms) {
    return std::move(algorithms).error();
  }
  auto data = data_or_machine(options);
  if (!data) {
    return std::move(data).error();
  }
  const std::vector<TargetConfig> targets = settings->targets;
  return make_groups(*std::move(settings), options, *data, *algorithms, targets, phases_of);
}

std::vector<Phase> six_tests(const Settings& settings, std::uint32_t jobs,
                             std::uint64_t block_size) {
  Phase phase = phase_of(settings, jobs, block_size);
  phase.loops = settings.loops;
  phase.runtime_s = settings.runtime_s;
  phase.job_bytes = experiment_job_bytes(settings.size_bytes, jobs, block_size);
  std::vector<Phase> phases;
  const auto add = [&](std::string_view op, Access access, bool random, std::string_view state) {
    phase.op = op;
    phase.access = access;
    phase.random = random;
    phase.state = state;
    phases.push_back(phase);
  };
  add("read", Access::read, false, "holes");
  add("randread", Access::read, true, "holes");
  add("write", Access::write, false, "");
  phase.generation = 1;
  add("randwrite", Access::write, true, "");
  phase.generation = 2;
  add("rw", Access::read_write, false, "");
  phase.generation = 3;
  add("randrw", Access::read_write, true, "");
  add("read", Access::read, false, "stored");
  add("randread", Access::read, true, "stored");
  return phases;
}

}  // namespace uzram::bench
