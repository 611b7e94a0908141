// The streams experiment: N shared compression streams against one for each CPU.
//
// For each kind of buffer and each number of jobs: the six tests, every job over the same range from
// offset 0, on a fresh device; reads of holes before the writes and of stored data after them.
#include <utility>

#include "bench/suite_parts.hpp"

namespace uzram::bench {
namespace {

constexpr Defaults kDefaults = {"engine", "3G", "1-10", "4K", "1", "1", "0"};

}  // namespace

Result<Plan> plan_streams(const SuiteOptions& given) {
  SuiteOptions options = given;
  if (options.streams.empty()) {
    options.streams = "4,8,per-cpu";
  }
  auto settings = read_settings(options, kDefaults);
  if (!settings) {
    return std::move(settings).error();
  }
  auto data = data_of_experiment(options);
  auto algorithms = read_algorithms(options, experiment_algorithm());
  auto streams = parse_words("--streams", options.streams);
  if (const Error* const error = first_error(data, algorithms, streams)) {
    return *error;
  }
  auto variants = with_variants(settings->targets, "streams", *streams);
  if (!variants) {
    return std::move(variants).error();
  }
  return make_groups(*std::move(settings), options, *data, *algorithms, *variants, six_tests);
}

}  // namespace uzram::bench
