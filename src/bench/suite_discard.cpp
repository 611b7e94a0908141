// The discard experiment: many discards in flight.
//
// For each block size and number of jobs: fill (not timed), discard all of it in order, discard the
// holes that are left, fill again, discard in random order. Further loops over stored data, or as many
// as fit the runtime, each follow a fill. Each job has a thread of its own and one
// synchronous discard in flight ("sync"); one thread with all of them in flight through io_uring
// ("uring") is not in this version.
#include <utility>

#include "bench/suite_parts.hpp"

namespace uzram::bench {
namespace {

constexpr Defaults kDefaults = {"engine", "1G", "64", "4K,1M", "1", "3", "0"};

// A pass over holes in long blocks takes a millisecond, but needs no fill before it.
constexpr double kHolesSeconds = 0.25;

Phase fill_of(const Settings& settings) {
  constexpr std::uint64_t kFillBlock = std::uint64_t{1} << 20;
  Phase fill;
  fill.op = "fill";
  fill.access = Access::write;
  fill.block_size = kFillBlock;
  fill.job_bytes = settings.size_bytes;
  fill.timed = false;
  return fill;
}

std::vector<Phase> phases_of(const Settings& settings, std::uint32_t jobs,
                             std::uint64_t block_size) {
  Phase phase = phase_of(settings, jobs, block_size);
  divide_device(settings, phase);
  phase.access = Access::discard;
  phase.runtime_s = settings.runtime_s;
  phase.loops = settings.loops;
  phase.latency = true;
  std::vector<Phase> phases = {fill_of(settings)};
  phase.op = "discard";
  phase.state = "stored";
  phase.refill = true;
  phases.push_back(phase);
  Phase holes = phase;
  holes.state = "holes";
  holes.refill = false;
  if (!settings.length_given) {
    holes.runtime_s = kHolesSeconds;
  }
  phases.push_back(holes);
  phases.push_back(fill_of(settings));
  phase.op = "randdiscard";
  phase.random = true;
  phases.push_back(phase);
  return phases;
}

Result<void> check_methods(const SuiteOptions& options) {
  auto methods = parse_words("--method", options.methods);
  if (!methods) {
    return std::move(methods).error();
  }
  for (const std::string& method : *methods) {
    if (method == "uring") {
      return Error{Errc::unsupported, 0,
                   "--method \"uring\": asynchronous discard through io_uring is not in this "
                   "version; --method sync measures synchronous threads"};
    }
    if (method != "sync") {
      return Error{Errc::invalid_argument, 0,
                   "--method \"" + method + "\": expected sync or uring"};
    }
  }
  return {};
}

// What a discard leaves no choice in.
Result<void> check_load(const Settings& settings) {
  if (settings.iodepth != 1) {
    return Error{
        Errc::invalid_argument, 0,
        "--iodepth \"" + std::to_string(settings.iodepth) +
            "\": expected 1, as each job has one synchronous discard in flight; --jobs says "
            "how many there are"};
  }
  if (settings.verify) {
    return Error{Errc::invalid_argument, 0,
                 "--verify: there is nothing to read in this suite; leave it out"};
  }
  return {};
}

Result<void> check_targets(const std::vector<TargetConfig>& targets) {
  for (const TargetConfig& target : targets) {
    if (target.kind == TargetKind::codec) {
      return Error{Errc::unsupported, 0,
                   "--target \"" + target.given +
                       "\": a codec has nothing to discard; expected engine, zram, a block device "
                       "or an NBD URI"};
    }
    if (target.io == IoPath::uring) {
      return Error{Errc::unsupported, 0,
                   "--target \"" + target.given +
                       "\": asynchronous discard through io_uring is not in this version; leave "
                       "out io=uring"};
    }
  }
  return {};
}

}  // namespace

Result<Plan> plan_discard(const SuiteOptions& given) {
  SuiteOptions options = given;
  if (options.methods.empty()) {
    options.methods = "sync";
  }
  if (auto known = check_methods(options); !known) {
    return std::move(known).error();
  }
  auto settings = read_settings(options, kDefaults);
  if (!settings) {
    return std::move(settings).error();
  }
  auto algorithms = read_algorithms(options, "lz4");
  auto checked = check_targets(settings->targets);
  auto load = check_load(*settings);
  for (TargetConfig& target : settings->targets) {
    // Discards are synchronous, however many a job has in flight.
    target.io = IoPath::psync;
  }
  auto data = options.data.empty() ? Result<DataSets>(DataSets{}) : make_data_sets(options.data);
  if (const Error* const error = first_error(algorithms, checked, load, data)) {
    return *error;
  }
  if (data->empty()) {
    auto compressible = compressible_data(50);
    if (!compressible) {
      return std::move(compressible).error();
    }
    data->push_back(*std::move(compressible));
  }
  const std::vector<TargetConfig> targets = settings->targets;
  return make_groups(*std::move(settings), options, *data, *algorithms, targets, phases_of);
}

}  // namespace uzram::bench
