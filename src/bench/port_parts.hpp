// What all ports share: the names of operations and the codes of errnos.
//
// Threads: pure functions.
#pragma once

#include <cerrno>
#include <string_view>

#include "uzram/error.hpp"
#include "uzram/request.hpp"

namespace uzram::bench {

// In messages.
[[nodiscard]] constexpr std::string_view op_name(Op op) noexcept {
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

// The status of a request that failed with this errno; 0: the device ended there.
[[nodiscard]] constexpr Errc status_of_errno(int failed_errno) noexcept {
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

}  // namespace uzram::bench
