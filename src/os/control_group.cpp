#include "os/control_group.hpp"

#include <charconv>
#include <cstddef>
#include <optional>
#include <utility>

#include "os/proc_text.hpp"

namespace uzram::os {
namespace {

// mountinfo writes blanks, tabs, line ends and backslashes as \ooo.
std::string unescape(std::string_view field) {
  std::string plain;
  while (!field.empty()) {
    unsigned code = 0;
    if (field.size() >= 4 && field[0] == '\\' &&
        std::from_chars(field.data() + 1, field.data() + 4, code, 8).ptr == field.data() + 4) {
      plain += static_cast<char>(code);
      field.remove_prefix(4);
    } else {
      plain += field[0];
      field.remove_prefix(1);
    }
  }
  return plain;
}

bool list_contains(std::string_view list, std::string_view word) noexcept {
  while (!list.empty()) {
    if (take_until(list, ',') == word) {
      return true;
    }
  }
  return false;
}

// One mount of the hierarchy: `root` of the hierarchy is what shows at `point`.
struct Mount {
  GroupVersion version = GroupVersion::v2;
  std::string root;
  std::string point;
};

std::vector<Mount> parse_mountinfo(std::string_view text, std::string_view controller) {
  std::vector<Mount> mounts;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    // "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS TAG… - TYPE SOURCE SUPEROPTIONS"
    for (int skipped = 0; skipped < 3; ++skipped) {
      take_until(line, ' ');
    }
    const std::string_view root = take_until(line, ' ');
    const std::string_view point = take_until(line, ' ');
    const std::size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) {
      continue;
    }
    line.remove_prefix(dash + 3);
    const std::string_view type = take_until(line, ' ');
    take_until(line, ' ');
    if (type == "cgroup2") {
      mounts.push_back({GroupVersion::v2, unescape(root), unescape(point)});
    } else if (type == "cgroup" && list_contains(line, controller)) {
      mounts.push_back({GroupVersion::v1, unescape(root), unescape(point)});
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

void add_groups(const std::vector<Mount>& mounts, GroupVersion version, std::string_view group,
                std::vector<ControlGroup>& groups) {
  // Of several mounts the one that shows most ancestors. When none shows the group, what is
  // mounted is most likely a container's own group under another name: take its top.
  const Mount* chosen = nullptr;
  std::string_view path;
  for (const Mount& mount : mounts) {
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
  const std::vector<Mount> mounts = parse_mountinfo(mountinfo, controller);
  std::vector<ControlGroup> groups;
  for (const GroupVersion version : {GroupVersion::v1, GroupVersion::v2}) {
    if (const auto group = find_group(membership, version, controller)) {
      add_groups(mounts, version, *group, groups);
    }
  }
  return groups;
}

}  // namespace uzram::os
