#include "os/cpu_quota.hpp"

#include <algorithm>
#include <cstdint>
#include <new>
#include <string_view>

#include "os/control_group.hpp"
#include "os/proc_text.hpp"

namespace uzram::os {
namespace {

std::optional<double> ratio(std::optional<std::uint64_t> quota_us,
                            std::optional<std::uint64_t> period_us) noexcept {
  if (!quota_us || !period_us || *quota_us == 0 || *period_us == 0) {
    return std::nullopt;
  }
  return static_cast<double>(*quota_us) / static_cast<double>(*period_us);
}

std::optional<double> quota_of(const ControlGroup& group) {
  if (group.version == GroupVersion::v2) {
    // "QUOTA PERIOD", QUOTA "max" for none.
    const std::string text = slurp(group.directory + "/cpu.max").value_or("");
    std::string_view rest = text;
    const std::string_view quota = take_until(rest, ' ');
    return ratio(leading_number(quota), leading_number(rest));
  }
  // -1, which is no such number, for none.
  return ratio(leading_number(slurp(group.directory + "/cpu.cfs_quota_us").value_or("")),
               leading_number(slurp(group.directory + "/cpu.cfs_period_us").value_or("")));
}

}  // namespace

std::optional<double> cpu_quota(const std::string& proc) noexcept {
  std::optional<double> tightest;
  try {
    for (const ControlGroup& group :
         find_control_groups(slurp(proc + "/self/cgroup").value_or(""),
                             slurp(proc + "/self/mountinfo").value_or(""), "cpu")) {
      if (const std::optional<double> quota = quota_of(group)) {
        tightest = std::min(*quota, tightest.value_or(*quota));
      }
    }
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
  return tightest;
}

}  // namespace uzram::os
