// make_groups: from settings, data and targets to the groups of a plan.
#include <algorithm>
#include <span>
#include <utility>

#include "base/size.hpp"
#include "bench/memory_check.hpp"
#include "bench/suite_parts.hpp"
#include "bench/synthetic.hpp"
#include "os/kernel_zram.hpp"

namespace uzram::bench {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

void add_note(std::vector<std::string>& notes, std::string note) {
  if (std::find(notes.begin(), notes.end(), note) == notes.end()) {
    notes.push_back(std::move(note));
  }
}

// Whether --algorithm has a say in what the target does.
bool takes_algorithm(const TargetConfig& target) noexcept {
  const bool compresses = target.kind == TargetKind::engine || target.kind == TargetKind::codec ||
                          target.kind == TargetKind::zram;
  return compresses && !target.algorithm_given;
}

// Whether it does nothing with `algorithm` that it has not done with those before.
bool has_had_its_turn(const TargetConfig& target, const Algorithm& algorithm,
                      std::span<const Algorithm> before) {
  if (!takes_algorithm(target)) {
    return !before.empty();
  }
  // Its own level goes before that of the algorithm.
  return target.level_given &&
         std::any_of(before.begin(), before.end(),
                     [&](const Algorithm& other) { return other.name == algorithm.name; });
}

Result<bool> kernel_has(const std::string& algorithm) {
  auto known = os::KernelZram::algorithms();
  if (!known) {
    return std::move(known).error();
  }
  return std::find(known->begin(), known->end(), algorithm) != known->end();
}

Result<void> set_algorithm(TargetConfig& target, const Algorithm& algorithm) {
  // Algorithm and level have columns of their own, so the label stays.
  const std::string label = target.label;
  auto set = vary(target, "algorithm", algorithm.name);
  if (set && !algorithm.level.empty() && !target.level_given) {
    set = vary(target, "level", algorithm.level);
  }
  if (set) {
    set = check_level(target);
  }
  target.label = label;
  return set;
}

// The targets of `group`, with `algorithm` set where their text does not say another. Targets that
// lack it are left out with a note; those that it makes no difference to, after the algorithms
// `before` it, as well, but for the first of all, which the others are compared with.
Result<void> choose_targets(const std::vector<TargetConfig>& targets, const Algorithm& algorithm,
                            std::span<const Algorithm> before, Group& group,
                            std::vector<std::string>& notes) {
  for (std::size_t i = 0; i < targets.size(); ++i) {
    TargetConfig target = targets[i];
    if (has_had_its_turn(target, algorithm, before)) {
      if (i != 0) {
        continue;
      }
      group.first_is_repeated = true;
    }
    if (!takes_algorithm(target)) {
      group.targets.push_back(std::move(target));
      continue;
    }
    if (target.kind == TargetKind::zram) {
      const auto known = kernel_has(algorithm.name);
      if (!known) {
        return known.error();
      }
      if (!*known) {
        add_note(notes,
                 "zram has no " + algorithm.name + " in this kernel" +
                     (i == 0 ? ", so nothing of " + algorithm.name + " has a ratio to it" : ""));
        if (i == 0) {
          group.lacks_first = true;
          group.first_is_repeated = false;
        }
        continue;
      }
    }
    if (auto set = set_algorithm(target, algorithm); !set) {
      return set;
    }
    group.targets.push_back(std::move(target));
  }
  // The repeated one alone has nobody to be compared with.
  if (group.first_is_repeated && group.targets.size() == 1) {
    group.targets.clear();
  }
  return {};
}

// Without a size given: what half of the free memory holds, with a note.
void fit_size(Settings& settings, const std::vector<TargetConfig>& targets, const DataSets& data) {
  if (settings.size_given) {
    return;
  }
  double needed = 1;
  for (const auto& set : data) {
    double of_set = 0;
    for (const TargetConfig& target : targets) {
      of_set += memory_needed(target, settings.size_bytes, *set);
    }
    needed = std::max(needed, of_set);
  }
  const double share = static_cast<double>(memory_available()) / 2 / needed;
  if (share >= 1) {
    return;
  }
  const std::uint64_t before = settings.size_bytes;
  const auto fits = static_cast<std::uint64_t>(static_cast<double>(before) * share);
  settings.size_bytes = std::max(kMiB * 64, fits / (64 * kMiB) * (64 * kMiB));
  settings.notes.push_back("size " + format_size(settings.size_bytes) + " instead of " +
                           format_size(before) + ", to fit in half of the free memory");
}

// What --verify changes in the work itself.
void note_shared_contents(const Group& group, std::vector<std::string>& notes) {
  for (std::size_t i = 0; i < group.phases.size(); ++i) {
    const Phase& phase = group.phases[i];
    const bool writes = phase.access == Access::write || phase.access == Access::read_write;
    if (writes && shares_range(phase) && keeps_contents(group, i)) {
      add_note(notes,
               "what jobs write to a range they share is verified: all of a phase's writes to a "
               "place store the same page there");
    }
  }
}

nlohmann::ordered_json parameters_of(const Settings& settings, const SuiteOptions& options,
                                     const std::vector<Algorithm>& algorithms,
                                     const DataSets& data) {
  nlohmann::ordered_json parameters = {{"size_bytes", settings.size_bytes},
                                       {"jobs", settings.jobs},
                                       {"block_sizes", settings.block_sizes},
                                       {"iodepth", settings.iodepth},
                                       {"loops", settings.loops},
                                       {"runtime_s", settings.runtime_s},
                                       {"rounds", settings.rounds},
                                       {"verify", settings.verify ? "crc32c" : ""}};
  const auto add = [&parameters](std::string_view name, const std::string& value) {
    if (!value.empty()) {
      parameters[std::string(name)] = value;
    }
  };
  std::string targets;
  for (const TargetConfig& target : settings.targets) {
    targets += (targets.empty() ? "" : ",") + target.given;
  }
  add("targets", targets);
  std::string names;
  for (const Algorithm& algorithm : algorithms) {
    names += (names.empty() ? "" : ",") + algorithm.name +
             (algorithm.level.empty() ? "" : ":" + algorithm.level);
  }
  add("algorithm", names);
  add("mode", options.modes);
  add("streams", options.streams);
  add("method", options.methods);
  add("op", options.ops);
  add("tree", options.tree);
  if (options.data.empty()) {
    std::string sets;
    for (const auto& set : data) {
      sets += (sets.empty() ? "" : ",") + set->name();
    }
    add("data", sets);
  }
  add("corpus", options.data.corpus);
  add("buffer_pattern", options.data.buffer_pattern);
  add("buffer_compress_percentage", options.data.buffer_compress_percentage);
  add("buffer_compress_chunk",
      !options.data.buffer_compress_chunk.empty() || options.data.buffer_compress_percentage.empty()
          ? options.data.buffer_compress_chunk
          : std::to_string(kDefaultChunk));
  add("buffer_same_percentage", options.data.buffer_same_percentage);
  if (options.data.buffer_random) {
    parameters["buffer_random"] = true;
  }
  if (settings.latency) {
    parameters["latency"] = true;
  }
  return parameters;
}

}  // namespace

Result<Plan> make_groups(Settings settings, const SuiteOptions& options, const DataSets& data,
                         const std::vector<Algorithm>& algorithms,
                         const std::vector<TargetConfig>& targets, PhasesOf phases_of) {
  fit_size(settings, targets, data);
  if (auto room = check_room_for_jobs(settings); !room) {
    return std::move(room).error();
  }
  Plan plan;
  plan.rounds = settings.rounds;
  for (const auto& set : data) {
    for (const Algorithm& algorithm : algorithms) {
      Group group;
      group.data = set;
      group.size_bytes = settings.size_bytes;
      const auto before =
          std::span(algorithms).first(static_cast<std::size_t>(&algorithm - algorithms.data()));
      if (auto chosen = choose_targets(targets, algorithm, before, group, settings.notes);
          !chosen) {
        return std::move(chosen).error();
      }
      if (group.targets.empty()) {
        continue;
      }
      for (const std::uint64_t block_size : settings.block_sizes) {
        for (const std::uint32_t jobs : settings.jobs) {
          group.phases = phases_of(settings, jobs, block_size);
          note_shared_contents(group, settings.notes);
          plan.groups.push_back(group);
        }
      }
    }
  }
  if (plan.groups.empty()) {
    return Error{Errc::unsupported, 0,
                 "none of the targets has any of the algorithms; " +
                     (settings.notes.empty() ? "" : settings.notes.back())};
  }
  plan.parameters = parameters_of(settings, options, algorithms, data);
  plan.notes = std::move(settings.notes);
  return plan;
}

}  // namespace uzram::bench
