// The port of an io_uring: up to its depth of requests in flight, one system call for each batch.
//
// Role: a job's way to a block device or file at more than one request at a time. Reads, writes and
// flushes: discards and writes of zeroes do not come here, see range_port.hpp.
// Ownership: the ring goes with the port.
// Errors: making says what forbids io_uring and what to do.
// Threads: one at a time; the next may be another one when nothing is in flight.
#pragma once

#include <cstdint>
#include <memory>

#include "uzram/error.hpp"

#include "bench/device_port.hpp"

namespace uzram::bench {

// Errors: unsupported when the kernel has no io_uring or does not allow it; invalid_argument
// (iodepth); system.
[[nodiscard]] Result<std::unique_ptr<Port>> make_uring_port(const DeviceAccess& access,
                                                            std::uint32_t iodepth);

}  // namespace uzram::bench
