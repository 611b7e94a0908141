#include "os/cpu_quota.hpp"

#include <algorithm>
#include <cstdint>
#include <new>
#include <string_view>

#include "base/option_value.hpp"
#include "os/control_group.hpp"
#include "os/proc_text.hpp"

namespace uzram::os {
namespace {

// CPUs, when each text is a number and nothing else.
std::optional<double> ratio(std::string_view quota_us, std::string_view period_us) noexcept {
  std::uint64_t quota = 0;
  std::uint64_t period = 0;
  if (!take_number(quota_us, quota) || !take_number(period_us, period) || quota == 0 ||
      period == 0) {
    return std::nullopt;
  }
  return static_cast<double>(quota) / static_cast<double>(period);
}

// The one line of a group's file, without its end.
std::string read_line(const ControlGroup& group, const char* name) {
  std::string text = slurp(group.directory + "/" + name).value_or("");
  if (text.ends_with('\n')) {
    text.pop_back();
  }
  return text;
}

std::optional<double> quota_of(const ControlGroup& group) {
  if (group.version == GroupVersion::v2) {
    // "QUOTA PERIOD", QUOTA "max" for none.
    const std::string line = read_line(group, "cpu.max");
    std::string_view period = line;
    const std::string_view quota = take_until(period, ' ');
    return ratio(quota, period);
  }
  // -1, which is no such number, for none.
  return ratio(read_line(group, "cpu.cfs_quota_us"), read_line(group, "cpu.cfs_period_us"));
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
