#include "bench/suite.hpp"

#include <algorithm>
#include <array>

#include "bench/target.hpp"

namespace uzram::bench {
namespace {

constexpr std::array<SuiteInfo, 5> kSuites = {{
    {"streams", "Shared compression streams against one for each CPU, for 1 to 10 jobs",
     plan_streams},
    {"async", "Work done by the submitter, by workers, or by both", plan_async},
    {"nowait", "Verified random writes and reads of many jobs, with submission latency",
     plan_nowait},
    {"discard", "Discards in flight, of stored data and of holes", plan_discard},
    {"pages", "Pages of real programs: each compressor, against the bare codec", plan_pages},
}};

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
  std::vector<std::string> checked;
  for (const Group& group : plan->groups) {
    for (const TargetConfig& target : group.targets) {
      if (std::find(checked.begin(), checked.end(), target.given) != checked.end()) {
        continue;
      }
      checked.push_back(target.given);
      if (auto allowed = check_target(target, options.yes); !allowed) {
        return std::move(allowed).error();
      }
    }
  }
  return plan;
}

}  // namespace uzram::bench
