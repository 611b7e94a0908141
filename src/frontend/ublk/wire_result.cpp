#include "frontend/ublk/wire_result.hpp"

#include <cerrno>

namespace uzram::ublk {

std::int32_t wire_error(Errc code) noexcept {
  switch (code) {
    case Errc::ok:
      return 0;
    case Errc::no_space:
      return -ENOSPC;
    case Errc::unsupported:
      return -EOPNOTSUPP;
    // The kernel has checked the range and that the disk may be written: this is its mistake or ours.
    case Errc::invalid_argument:
    case Errc::out_of_range:
    case Errc::read_only:
    case Errc::corrupt:
    case Errc::busy:
    case Errc::exists:
    case Errc::not_found:
    case Errc::incompressible:
    case Errc::system:
      return -EIO;
  }
  return -EIO;
}

}  // namespace uzram::ublk
