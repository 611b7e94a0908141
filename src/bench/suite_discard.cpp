// The discard experiment: many discards in flight.
//
// For each operation, block size and number of jobs: fill (not timed), discard or zero all of it in
// order, do so with the holes that are left, fill again, do so in random order. Further loops over
// stored data, or as many as fit the runtime, each follow a fill. Method "sync": each job has a
// thread of its own and one synchronous discard in flight. Method "uring": one thread has all of
// them in flight, through io_uring on a block device, in a queue of the engine, on an NBD
// connection. At the end 4 KiB are read at random, one at a time, while another thread discards the
// whole device.
#include <algorithm>
#include <string>
#include <utility>

#include "bench/suite_parts.hpp"

namespace uzram::bench {
namespace {

const std::string kZero = "zero";
const std::string kUring = "uring";
const std::vector<std::string> kOps = {"discard", kZero};
const std::vector<std::string> kMethods = {"sync", kUring};

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

// `op` is "discard" or "zero".
void add_passes(const Settings& settings, const std::string& op, Phase phase,
                std::vector<Phase>& phases) {
  phase.access = op == kZero ? Access::write_zeroes : Access::discard;
  phases.push_back(fill_of(settings));
  phase.op = op;
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
  phase.op = "rand" + op;
  phase.random = true;
  phases.push_back(phase);
}

std::vector<Phase> phases_of(const Settings& settings, std::uint32_t jobs,
                             std::uint64_t block_size) {
  Phase phase = phase_of(settings, jobs, block_size);
  divide_device(settings, phase);
  phase.runtime_s = settings.runtime_s;
  phase.loops = settings.loops;
  phase.latency = true;
  std::vector<Phase> phases;
  for (const std::string& op : settings.ops) {
    add_passes(settings, op, phase, phases);
  }
  if (jobs == settings.jobs.front() && block_size == settings.block_sizes.front()) {
    constexpr std::uint64_t kReadBlock = 4096;
    Phase reads = phase_of(settings, 1, kReadBlock);
    divide_device(settings, reads);
    reads.op = "randread";
    reads.state = "beside discard";
    reads.random = true;
    reads.runtime_s = settings.runtime_s;
    reads.loops = settings.loops;
    reads.latency = true;
    reads.refill = true;
    reads.beside_discard = true;
    phases.push_back(fill_of(settings));
    phases.push_back(reads);
  }
  return phases;
}

// Words of `option` that are among `known`.
Result<std::vector<std::string>> known_words(std::string_view option, const std::string& text,
                                             const std::vector<std::string>& known) {
  auto words = parse_words(option, text);
  if (!words) {
    return words;
  }
  for (const std::string& word : *words) {
    if (std::ranges::find(known, word) == known.end()) {
      return Error{Errc::invalid_argument, 0,
                   std::string(option) + " \"" + word + "\": expected " + known.front() + " or " +
                       known.back()};
    }
  }
  return words;
}

// Each target by each method; a block device with io=… only by the one that says. What exists once,
// a device or an export, can be discarded by one method at a time, so it is in another list for
// each.
std::vector<std::vector<TargetConfig>> by_methods(const std::vector<TargetConfig>& targets,
                                                  const std::vector<std::string>& methods) {
  std::vector<std::vector<TargetConfig>> lists(methods.size());
  for (const TargetConfig& target : targets) {
    std::size_t list = 0;
    for (const std::string& method : methods) {
      const IoPath io = method == kUring ? IoPath::uring : IoPath::psync;
      if (target.io != IoPath::automatic && target.io != io) {
        continue;
      }
      TargetConfig& variant = lists[list].emplace_back(target);
      variant.io = io;
      variant.one_thread = io == IoPath::uring;
      variant.label += ":method=" + method;
      list += place_of(target).empty() ? 0 : 1;
    }
  }
  std::erase_if(lists, [](const auto& list) { return list.empty(); });
  for (auto& list : lists) {
    make_labels_unique(list);
  }
  return lists;
}

// What a discard leaves no choice in.
Result<void> check_load(const Settings& settings) {
  if (settings.iodepth != 1) {
    return Error{Errc::invalid_argument, 0,
                 "--iodepth \"" + std::to_string(settings.iodepth) +
                     "\": expected 1; --jobs says how many discards are in flight"};
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
                       "\": a codec has nothing to discard; expected engine, zram, a block device, "
                       "a file or an NBD URI"};
    }
  }
  return {};
}

}  // namespace

Result<Plan> plan_discard(const SuiteOptions& options) {
  auto methods =
      known_words("--method", options.methods.empty() ? "sync,uring" : options.methods, kMethods);
  auto ops = known_words("--op", options.ops.empty() ? "discard" : options.ops, kOps);
  if (const Error* const error = first_error(methods, ops)) {
    return *error;
  }
  auto settings = read_settings(options, kDefaults);
  if (!settings) {
    return std::move(settings).error();
  }
  settings->ops = *std::move(ops);
  auto algorithms = read_algorithms(options, "lz4");
  auto checked = check_targets(settings->targets);
  auto load = check_load(*settings);
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
  Plan plan;
  for (const auto& targets : by_methods(settings->targets, *methods)) {
    auto part = make_groups(*settings, options, *data, *algorithms, targets, phases_of);
    if (!part) {
      return part;
    }
    if (plan.groups.empty()) {
      plan = *std::move(part);
      continue;
    }
    for (Group& group : part->groups) {
      group.lacks_first = true;
      plan.groups.push_back(std::move(group));
    }
  }
  if (plan.groups.empty()) {
    return Error{Errc::invalid_argument, 0,
                 "--method \"" + options.methods +
                     "\": no target takes part in it; leave out io=…, "
                     "or add the other method"};
  }
  return plan;
}

}  // namespace uzram::bench
