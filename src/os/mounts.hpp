// The mounts of this process, as /proc/self/mountinfo lists them.
//
// Source: proc(5).
// Threads: pure functions; mount_id_of and disk_of any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace uzram::os {

struct Mount {
  std::uint64_t id = 0;
  // The mount it is mounted in.
  std::uint64_t parent = 0;
  // Of the file system; major number 0 where that is on no block device, or on several.
  dev_t device = 0;
  // What of the file system shows at `point`.
  std::string root;
  std::string point;
  // Of the file system: "ext4", "cgroup2".
  std::string type;
  std::string source;
  // The file system's own, separated by commas.
  std::string options;
};

// Undoes what the kernel does to blanks, tabs, line ends and backslashes in the files of proc: \ooo.
[[nodiscard]] std::string unescape(std::string_view field);

// In the order of the text; lines of another form are left out.
[[nodiscard]] std::vector<Mount> parse_mounts(std::string_view mountinfo);

// The block device the file system is on; 0: none. Some, such as btrfs, only name it.
[[nodiscard]] dev_t disk_of(const Mount& mount);

// The mount that holds `path`, or its nearest folder that there is. Empty when the kernel, before
// Linux 5.8, does not tell.
[[nodiscard]] std::optional<std::uint64_t> mount_id_of(std::string path);

}  // namespace uzram::os
