// A port that discards and zeroes a block device or file with many ranges in flight.
//
// Role: above the io_uring port, which does the rest.
// Threads: as Port.
#pragma once

#include <cstdint>
#include <memory>

#include "uzram/error.hpp"

#include "bench/device_port.hpp"

namespace uzram::bench {

// Errors: those of making a queue.
[[nodiscard]] Result<std::unique_ptr<Port>> make_range_port(const DeviceAccess& access,
                                                            std::unique_ptr<Port> io,
                                                            std::uint32_t iodepth);

}  // namespace uzram::bench
