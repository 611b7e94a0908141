// Control groups: those that may limit this process.
//
// Role: shared by what reads a limit of them, memory or CPU time.
// Threads: pure functions.
// Source: cgroups(7); the formats of /proc/self/cgroup and /proc/self/mountinfo in proc(5).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace uzram::os {

enum class GroupVersion { v1, v2 };

// One group: that of the process, or an ancestor of it.
struct ControlGroup {
  GroupVersion version = GroupVersion::v2;
  // As in /proc/self/cgroup: "/" or "/a/b".
  std::string name;
  // Where its files are.
  std::string directory;
  // Version 1: it has ancestors that no mount shows.
  bool hides_ancestors = false;
};

// The groups of the process, each followed by its ancestors as far as mounts show them. Of version 1
// those of the hierarchy that has `controller`. The texts are those of PROC/self/cgroup and
// PROC/self/mountinfo.
[[nodiscard]] std::vector<ControlGroup> find_control_groups(std::string_view membership,
                                                            std::string_view mountinfo,
                                                            std::string_view controller);

}  // namespace uzram::os
