// Ports to block devices and files: which way a job takes and how its failures read.
//
// Role: shared by the targets zram and block device and by the two ports below them.
// Errors: a failed request completes with the code of its errno; IoFailure has the words.
// Threads: a DeviceAccess is immutable, an IoFailure belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "uzram/error.hpp"
#include "uzram/request.hpp"

#include "bench/target.hpp"
#include "bench/target_config.hpp"

namespace uzram::bench {

// A device as its ports see it.
struct DeviceAccess {
  // Opened with O_DIRECT; belongs to the target.
  int fd = -1;
  bool is_file = false;
  bool uring = false;
  // Appended to what a failed write says: what EIO means on this device.
  std::string write_hint;
};

// Whether a target with `io` goes by io_uring when its phases have up to `iodepth` in flight.
[[nodiscard]] constexpr bool goes_by_uring(IoPath io, std::uint32_t iodepth) noexcept {
  return io == IoPath::uring || (io == IoPath::automatic && iodepth > 1);
}

// TargetInfo::path.
[[nodiscard]] constexpr std::string_view path_name(bool uring, bool is_file = false) noexcept {
  return uring ? "io_uring" : is_file ? "pread, pwrite, fallocate" : "pread, pwrite, BLKDISCARD";
}

// What EIO on a write means on the zram device `name`.
[[nodiscard]] std::string zram_write_hint(std::string_view name);

// MemoryUse of the zram device `name`, from its mm_stat; nothing when it is no zram device.
[[nodiscard]] MemoryUse zram_memory(std::string_view name);

// Errors: those of making a ring.
[[nodiscard]] Result<std::unique_ptr<Port>> open_device_port(const DeviceAccess& access,
                                                             std::uint32_t iodepth);

// Why the last failed request of a port failed.
class IoFailure {
 public:
  // Remembers that `request` failed at byte `at` of the device, and returns its status. An errno of
  // 0: the device ended there.
  Errc note(const Request& request, std::uint64_t at, int failed_errno) noexcept;

  [[nodiscard]] std::string text(std::string_view write_hint) const;

 private:
  bool any_ = false;
  Op op_ = Op::read;
  std::uint64_t at_ = 0;
  int errno_ = 0;
};

}  // namespace uzram::bench
