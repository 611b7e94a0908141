#include "bench/device_port.hpp"

#include <cerrno>
#include <system_error>

#include "bench/port_parts.hpp"
#include "bench/psync_port.hpp"
#include "bench/range_port.hpp"
#include "bench/uring_port.hpp"
#include "os/kernel_zram.hpp"

namespace uzram::bench {
std::string zram_write_hint(std::string_view name) {
  return "zram gives this when its mem_limit is reached or the machine has no memory left, see "
         "/sys/block/" +
         std::string(name) + "/mm_stat";
}

MemoryUse zram_memory(std::string_view name) {
  const auto stat = os::zram_mm_stat(name);
  if (!stat) {
    return {};
  }
  MemoryUse use;
  use.orig_data_size = stat->orig_data_size;
  use.compr_data_size = stat->compr_data_size;
  use.mem_used_total = stat->mem_used_total;
  use.peak = stat->mem_used_max;
  return use;
}

Result<std::unique_ptr<Port>> open_device_port(const DeviceAccess& access, std::uint32_t iodepth) {
  if (!access.uring) {
    return make_psync_port(access);
  }
  auto io = make_uring_port(access, iodepth);
  if (!io) {
    return io;
  }
  return make_range_port(access, *std::move(io), iodepth);
}

Errc IoFailure::note(const Request& request, std::uint64_t at, int failed_errno) noexcept {
  any_ = true;
  op_ = request.op;
  at_ = at;
  errno_ = failed_errno;
  return status_of_errno(failed_errno);
}

std::string IoFailure::text(std::string_view write_hint) const {
  if (!any_) {
    return {};
  }
  std::string words(op_name(op_));
  if (op_ != Op::flush) {
    words += " at byte " + std::to_string(at_);
  }
  words += ": ";
  if (errno_ == 0) {
    return words + "the device ends there";
  }
  words += std::generic_category().message(errno_);
  if (op_ == Op::write && errno_ == EIO && !write_hint.empty()) {
    words += "; " + std::string(write_hint);
  }
  return words;
}

}  // namespace uzram::bench
