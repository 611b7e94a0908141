#include "bench/device_port.hpp"

#include <cerrno>
#include <system_error>

#include "bench/psync_port.hpp"
#include "bench/uring_port.hpp"
#include "os/kernel_zram.hpp"

namespace uzram::bench {
namespace {

Errc code_of(int failed_errno) noexcept {
  switch (failed_errno) {
    case 0:
      return Errc::out_of_range;
    case EINVAL:
      return Errc::invalid_argument;
    case ENOSPC:
    case ENOMEM:
    case EDQUOT:
      return Errc::no_space;
    case EPERM:
    case EACCES:
    case EROFS:
      return Errc::read_only;
    case EOPNOTSUPP:
    case ENOTTY:
      return Errc::unsupported;
    case EBUSY:
      return Errc::busy;
    default:
      return Errc::system;
  }
}

std::string_view name_of(Op op) noexcept {
  switch (op) {
    case Op::read:
      return "read";
    case Op::write:
      return "write";
    case Op::discard:
      return "discard";
    case Op::write_zeroes:
    case Op::allocate_zeroes:
      return "write of zeroes";
    case Op::flush:
      break;
  }
  return "flush";
}

}  // namespace

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
  return access.uring ? make_uring_port(access, iodepth) : make_psync_port(access);
}

Errc IoFailure::note(const Request& request, std::uint64_t at, int failed_errno) noexcept {
  any_ = true;
  unsupported_ = false;
  op_ = request.op;
  at_ = at;
  errno_ = failed_errno;
  return code_of(failed_errno);
}

Errc IoFailure::note_unsupported(const Request& request) noexcept {
  any_ = true;
  unsupported_ = true;
  op_ = request.op;
  return Errc::unsupported;
}

std::string IoFailure::text(std::string_view write_hint) const {
  if (!any_) {
    return {};
  }
  std::string words(name_of(op_));
  if (unsupported_) {
    return "asynchronous " + words + " through io_uring is not in this version; io=psync does it";
  }
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
