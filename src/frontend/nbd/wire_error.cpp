#include "frontend/nbd/wire_error.hpp"

namespace uzram::nbd {

WireError wire_error(Errc code, Command command) noexcept {
  switch (code) {
    case Errc::ok:
      return WireError::ok;
    case Errc::invalid_argument:
      return WireError::einval;
    case Errc::out_of_range:
      // Growing past the end is a lack of room to a writer, a wrong question to everybody else.
      return command == Command::write || command == Command::write_zeroes ? WireError::enospc
                                                                           : WireError::einval;
    case Errc::no_space:
      return WireError::enospc;
    case Errc::read_only:
      return WireError::eperm;
    case Errc::unsupported:
      // The protocol keeps ENOTSUP for zeroing that cannot be fast.
      return command == Command::write_zeroes ? WireError::enotsup : WireError::einval;
    case Errc::corrupt:
    case Errc::busy:
    case Errc::exists:
    case Errc::not_found:
    case Errc::incompressible:
    case Errc::system:
      return WireError::eio;
  }
  return WireError::eio;
}

}  // namespace uzram::nbd
