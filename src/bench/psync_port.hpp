// The port of one system call for each request: pread, pwrite, BLKDISCARD, BLKZEROOUT, fdatasync.
//
// Role: a job's way to a block device or file; submit() does the work, reap() only hands it back.
// Threads: one at a time.
// Cost: nothing beyond the system call but a compare or two.
#pragma once

#include <memory>

#include "bench/device_port.hpp"

namespace uzram::bench {

[[nodiscard]] std::unique_ptr<Port> make_psync_port(const DeviceAccess& access);

}  // namespace uzram::bench
