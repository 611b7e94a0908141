// Who uses a block device.
//
// Role: words for a refusal, after the kernel has refused to open a device exclusively.
// Threads: any.
#pragma once

#include <string>

#include <sys/types.h>

namespace uzram::os {

// What uses the device `number`, one of its partitions or the disk it is a partition of: "is mounted
// on /srv", "has a partition sda1, which is
// used as swap", "is held by dm-0 (root)"; empty when it cannot
// be told, such as for a mount of another mount namespace.
[[nodiscard]] std::string device_users(dev_t number);

// Where the device or one of its partitions is mounted as this process sees it, "[SWAP]" when it is used
// as swap; empty for neither.
[[nodiscard]] std::string mount_point(dev_t number);
// The same of the block device at `path`; empty when there is none.
[[nodiscard]] std::string mount_point(const std::string& path);

// The folder of the device in /sys, empty when there is none.
[[nodiscard]] std::string device_folder(dev_t number);

// The folder of the disk that has the partition with `folder`; of a whole disk the same again.
[[nodiscard]] std::string disk_folder(const std::string& folder);

}  // namespace uzram::os
