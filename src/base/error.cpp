#include "uzram/error.hpp"

#include <string>
#include <system_error>

namespace uzram {

std::string_view errno_name(Errc code) noexcept {
  switch (code) {
    case Errc::ok:
      return "OK";
    case Errc::invalid_argument:
    case Errc::out_of_range:
      return "EINVAL";
    case Errc::no_space:
      return "ENOSPC";
    case Errc::corrupt:
    case Errc::incompressible:
    case Errc::system:
      return "EIO";
    case Errc::read_only:
      return "EPERM";
    case Errc::unsupported:
      return "ENOTSUP";
    case Errc::busy:
      return "EBUSY";
    case Errc::exists:
      return "EEXIST";
    case Errc::not_found:
      return "ENOENT";
  }
  return "EIO";
}

std::string_view describe(Errc code) noexcept {
  switch (code) {
    case Errc::ok:
      return "success";
    case Errc::invalid_argument:
      return "invalid argument";
    case Errc::out_of_range:
      return "range ends beyond the device";
    case Errc::no_space:
      return "no room left";
    case Errc::corrupt:
      return "stored data is corrupt";
    case Errc::read_only:
      return "read-only";
    case Errc::unsupported:
      return "not supported";
    case Errc::busy:
      return "busy";
    case Errc::exists:
      return "exists already";
    case Errc::not_found:
      return "not found";
    case Errc::incompressible:
      return "does not compress";
    case Errc::system:
      return "system error";
  }
  return "unknown error";
}

Error system_error(std::string_view context, int errno_value) {
  std::string message(context);
  message += ": ";
  message += std::generic_category().message(errno_value);
  return Error{Errc::system, errno_value, std::move(message)};
}

}  // namespace uzram
