// What several suites share: reading options, variants of targets, phases of the six tests.
//
// Errors: invalid_argument, naming the option, its value and what is expected.
// Threads: pure functions, but for asking what the kernel's zram offers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/plan.hpp"
#include "bench/suite.hpp"

namespace uzram::bench {

// "1-10", "1,2,4", "1-4,8": numbers from 1 to `most`.
Result<std::vector<std::uint32_t>> parse_numbers(std::string_view option, std::string_view text,
                                                 std::uint32_t most);
Result<std::uint32_t> parse_number(std::string_view option, std::string_view text,
                                   std::uint32_t most);
// "a,b,c"; empty parts are refused.
Result<std::vector<std::string>> parse_words(std::string_view option, std::string_view text);
// "60", "60s", "2m": seconds.
Result<double> parse_seconds(std::string_view option, std::string_view text);

// The options of all suites, read; a suite fills in what was not given.
struct Settings {
  std::vector<TargetConfig> targets;
  std::uint64_t size_bytes = 0;
  bool size_given = false;
  std::vector<std::uint32_t> jobs;
  std::vector<std::uint64_t> block_sizes;
  std::uint32_t iodepth = 1;
  std::uint32_t loops = 1;
  double runtime_s = 0;
  // One of --loops and --runtime was given.
  bool length_given = false;
  std::uint32_t rounds = 5;
  bool verify = false;
  bool latency = false;
  // What the discard suite does.
  std::vector<std::string> ops;
  std::vector<std::string> notes;
};

// What the experiment of a suite says.
struct Defaults {
  std::string_view targets = "engine";
  std::string_view size;
  std::string_view jobs = "1";
  std::string_view block_sizes = "4K";
  std::string_view iodepth = "1";
  std::string_view loops = "1";
  std::string_view runtime = "0";
};

// Whether each job has a block. Errors: invalid_argument.
Result<void> check_room_for_jobs(const Settings& settings);

// Without --target: the defaults, and the kernel's zram where this user can make one.
Result<Settings> read_settings(const SuiteOptions& options, const Defaults& defaults);

// The data of a suite that has none of its own: as the options say, else this machine's memory.
Result<DataSets> data_or_machine(const SuiteOptions& options);

// Without options those of the streams experiment: buffers of one pattern of five bytes, and buffers
// half compressible; its compressor, lzo where this build has it.
Result<DataSets> data_of_experiment(const SuiteOptions& options);
[[nodiscard]] std::string_view experiment_algorithm() noexcept;

// One algorithm of a run, "zstd" or "zstd:3".
struct Algorithm {
  std::string name;
  std::string level;
};
// `fallback` when the option is empty.
Result<std::vector<Algorithm>> read_algorithms(const SuiteOptions& options,
                                               std::string_view fallback);

// Each target that has `key` to vary, once for each value; the others as they are.
Result<std::vector<TargetConfig>> with_variants(const std::vector<TargetConfig>& targets,
                                                std::string_view key,
                                                const std::vector<std::string>& values);

// What phases have in common: how they are driven, as the settings say. Without a range.
[[nodiscard]] Phase phase_of(const Settings& settings, std::uint32_t jobs,
                             std::uint64_t block_size);
// The jobs of `phase` share the device between them.
void divide_device(const Settings& settings, Phase& phase);

// The six tests of the streams experiment on a fresh device, and the reads twice: of holes before
// the writes, of stored data after them.
[[nodiscard]] std::vector<Phase> six_tests(const Settings& settings, std::uint32_t jobs,
                                           std::uint64_t block_size);

// The bytes each of `jobs` jobs works on, all from offset 0: size/jobs - size/10, or 0.9*size/jobs
// where nothing would be left, in whole MiB (at least one block).
[[nodiscard]] std::uint64_t experiment_job_bytes(std::uint64_t size_bytes, std::uint32_t jobs,
                                                 std::uint64_t block_size) noexcept;

// What the suites do with all this: a group for each data set, algorithm, block size and number of
// jobs, in which all of `targets` do the phases that `phases_of` lays out.
using PhasesOf = std::vector<Phase> (*)(const Settings& settings, std::uint32_t jobs,
                                        std::uint64_t block_size);
Result<Plan> make_groups(Settings settings, const SuiteOptions& options, const DataSets& data,
                         const std::vector<Algorithm>& algorithms,
                         const std::vector<TargetConfig>& targets, PhasesOf phases_of);

// A suite of pages: its data are those of the options or of this machine, its compressor lz4 unless
// they say others.
Result<Plan> plan_of_pages(const SuiteOptions& options, const Defaults& defaults,
                           PhasesOf phases_of);

// The error of the first of `results` that has one, or null.
template <typename... Results>
[[nodiscard]] const Error* first_error(const Results&... results) noexcept {
  const Error* found = nullptr;
  ((found = found == nullptr && !results ? &results.error() : found), ...);
  return found;
}

}  // namespace uzram::bench
