#include "bench/suite.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "base/size.hpp"
#include "bench/target.hpp"

namespace uzram::bench {
namespace {

constexpr std::array<SuiteInfo, 6> kSuites = {{
    {"streams", "Shared compression streams against one for each CPU, for 1 to 10 jobs",
     plan_streams},
    {"async", "Work done by the submitter, by workers, or by both", plan_async},
    {"nowait", "Verified random writes and reads of many jobs, with submission latency",
     plan_nowait},
    {"discard", "Discards in flight, of stored data and of holes", plan_discard},
    {"pages", "Pages of real programs: each compressor, against the bare codec", plan_pages},
    {"ageing", "Memory and speed after many random overwrites by pages of other sizes",
     plan_ageing},
}};

// Whatever a suite has laid out: no job reaches beyond the range that its targets were made for.
Result<void> check_ranges(const Plan& plan) {
  for (const Group& group : plan.groups) {
    for (const Phase& phase : group.phases) {
      const std::uint64_t end = (phase.jobs - 1) * phase.job_stride + phase.job_bytes;
      if (phase.job_bytes < phase.block_size || end > group.size_bytes) {
        return Error{Errc::invalid_argument, 0,
                     phase.op + ": " + std::to_string(phase.jobs) + " jobs with blocks of " +
                         format_size(phase.block_size) + " have no room in --size " +
                         format_size(group.size_bytes) +
                         "; give a larger --size, fewer --jobs or a smaller --block-size"};
      }
    }
  }
  return {};
}

// Targets take turns, so one that is named twice would find what its other self has written.
Result<void> check_different(const Plan& plan) {
  for (const Group& group : plan.groups) {
    std::map<std::string, const TargetConfig*> places;
    for (const TargetConfig& target : group.targets) {
      const std::string place = place_of(target);
      if (place.empty()) {
        continue;
      }
      if (const auto [known, fresh] = places.emplace(place, &target); !fresh) {
        return Error{Errc::invalid_argument, 0,
                     "--target \"" + target.given + "\" and \"" + known->second->given +
                         "\" are the same; expected each device and export once"};
      }
    }
  }
  return {};
}

}  // namespace

std::span<const SuiteInfo> suites() noexcept { return kSuites; }

Result<Plan> make_plan(std::string_view name, const SuiteOptions& options) {
  const auto* const suite = std::find_if(
      kSuites.begin(), kSuites.end(), [name](const SuiteInfo& info) { return info.name == name; });
  auto plan = suite->plan(options);
  if (!plan) {
    return plan;
  }
  plan->suite = name;
  if (auto fits = check_ranges(*plan); !fits) {
    return std::move(fits).error();
  }
  if (auto different = check_different(*plan); !different) {
    return std::move(different).error();
  }
  std::vector<std::string> checked;
  for (const Group& group : plan->groups) {
    for (const TargetConfig& target : group.targets) {
      if (std::find(checked.begin(), checked.end(), target.given) != checked.end()) {
        continue;
      }
      checked.push_back(target.given);
      if (auto allowed = check_target(target, group.size_bytes, options.yes); !allowed) {
        return std::move(allowed).error();
      }
    }
  }
  return plan;
}

}  // namespace uzram::bench
