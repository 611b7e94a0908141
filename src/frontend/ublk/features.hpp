// Which features of ublk's driver a device is made with.
//
// Role: set-up. Kernels from 6.0 on have come to know more and more; what this server needs is a way to
// bring a request's data over that does not want a buffer for every tag.
// Errors: see choose_flags.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "uzram/error.hpp"

namespace uzram::ublk {

// How a queue gets at the data of requests.
enum class DataPath : std::uint8_t {
  user_copy,  // pread and pwrite on the character device (6.5)
  get_data,  // the driver copies to and from the address it is told when the request is there (6.1)
};

// The flags to ask for. `offered`: what the driver says it has, nothing when it is too old to say.
// `allowed`: what may be used of it.
[[nodiscard]] std::uint64_t choose_flags(std::optional<std::uint64_t> offered, bool privileged,
                                         std::uint64_t allowed) noexcept;

// What the flags of the device that was made mean. Errors: unsupported.
[[nodiscard]] Result<DataPath> data_path_of(std::uint64_t flags);

}  // namespace uzram::ublk
