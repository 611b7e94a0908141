#include "os/control_group.hpp"

#include <cstddef>
#include <optional>
#include <utility>

#include "os/mounts.hpp"
#include "os/proc_text.hpp"

namespace uzram::os {
namespace {

bool list_contains(std::string_view list, std::string_view word) noexcept {
  while (!list.empty()) {
    if (take_until(list, ',') == word) {
      return true;
    }
  }
  return false;
}

// One mount of the hierarchy: `root` of the hierarchy is what shows at `point`.
struct GroupMount {
  GroupVersion version = GroupVersion::v2;
  std::string root;
  std::string point;
};

std::vector<GroupMount> group_mounts(std::string_view mountinfo, std::string_view controller) {
  std::vector<GroupMount> mounts;
  for (Mount& mount : parse_mounts(mountinfo)) {
    if (mount.type == "cgroup2") {
      mounts.push_back({GroupVersion::v2, std::move(mount.root), std::move(mount.point)});
    } else if (mount.type == "cgroup" && list_contains(mount.options, controller)) {
      mounts.push_back({GroupVersion::v1, std::move(mount.root), std::move(mount.point)});
    }
  }
  return mounts;
}

// The group of the process in the hierarchy of `version`.
std::optional<std::string_view> find_group(std::string_view membership, GroupVersion version,
                                           std::string_view controller) {
  while (!membership.empty()) {
    std::string_view line = take_until(membership, '\n');
    const std::string_view hierarchy = take_until(line, ':');
    const std::string_view controllers = take_until(line, ':');
    const bool wanted = version == GroupVersion::v2 ? hierarchy == "0" && controllers.empty()
                                                    : list_contains(controllers, controller);
    if (wanted) {
      return line;
    }
  }
  return std::nullopt;
}

// `group` as seen from `root`: "" for itself, else it begins with a slash. Nothing when it lies
// outside, which "/.." says of a group outside the control group namespace.
std::optional<std::string_view> below(std::string_view root, std::string_view group) {
  if (root == "/") {
    root = "";
  }
  if (!group.starts_with(root)) {
    return std::nullopt;
  }
  group.remove_prefix(root.size());
  if (group == "/") {
    group = "";
  }
  if (group == "/.." || group.starts_with("/../") || !(group.empty() || group[0] == '/')) {
    return std::nullopt;
  }
  return group;
}

void add_groups(const std::vector<GroupMount>& mounts, GroupVersion version, std::string_view group,
                std::vector<ControlGroup>& groups) {
  // Of several mounts the one that shows most ancestors. When none shows the group, what is
  // mounted is most likely a container's own group under another name: take its top.
  const GroupMount* chosen = nullptr;
  std::string_view path;
  for (const GroupMount& mount : mounts) {
    if (mount.version != version) {
      continue;
    }
    const auto inside = below(mount.root, group);
    if (chosen == nullptr || (inside && inside->size() >= path.size())) {
      chosen = &mount;
      path = inside.value_or("");
    }
  }
  if (chosen == nullptr) {
    return;
  }
  while (true) {
    ControlGroup each;
    each.version = version;
    each.name = chosen->root == "/" ? std::string(path) : chosen->root + std::string(path);
    if (each.name.empty()) {
      each.name = "/";
    }
    each.directory = chosen->point + std::string(path);
    each.hides_ancestors = version == GroupVersion::v1 && path.empty() && chosen->root != "/";
    groups.push_back(std::move(each));
    if (path.empty()) {
      return;
    }
    path = path.substr(0, path.rfind('/'));
  }
}

}  // namespace

std::vector<ControlGroup> find_control_groups(std::string_view membership,
                                              std::string_view mountinfo,
                                              std::string_view controller) {
  const std::vector<GroupMount> mounts = group_mounts(mountinfo, controller);
  std::vector<ControlGroup> groups;
  for (const GroupVersion version : {GroupVersion::v1, GroupVersion::v2}) {
    if (const auto group = find_group(membership, version, controller)) {
      add_groups(mounts, version, *group, groups);
    }
  }
  return groups;
}

}  // namespace uzram::os
