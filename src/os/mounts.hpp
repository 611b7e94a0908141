// The mounts of this process, as /proc/self/mountinfo lists them.
//
// Threads: pure functions; mount_id_of any.
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
  std::string point;
  std::string source;
};

// In the order of the text; lines of another form are left out.
[[nodiscard]] std::vector<Mount> parse_mounts(std::string_view mountinfo);

// The mount that holds `path`, or its nearest folder that there is. Empty when the kernel, before
// Linux 5.8, does not tell.
[[nodiscard]] std::optional<std::uint64_t> mount_id_of(std::string path);

}  // namespace uzram::os
