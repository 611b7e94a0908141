#include "frontend/ublk/features.hpp"

#include <fmt/format.h>

#include "frontend/ublk/abi.hpp"

namespace uzram::ublk {

std::uint64_t choose_flags(std::optional<std::uint64_t> offered, bool privileged,
                           std::uint64_t allowed) noexcept {
  // A driver that cannot be asked leaves out what it does not know, and says so in its answer.
  const std::uint64_t known = offered.value_or(kNeedGetData | kUnprivileged) & allowed;
  if (!privileged) {
    // The driver refuses user_copy to those.
    return (known & kNeedGetData) | kUnprivileged;
  }
  return (known & kUserCopy) != 0 ? kUserCopy : known & kNeedGetData;
}

Result<DataPath> data_path_of(std::uint64_t flags) {
  if ((flags & kUserCopy) != 0) {
    return DataPath::user_copy;
  }
  if ((flags & kNeedGetData) != 0) {
    return DataPath::get_data;
  }
  return Error{
      Errc::unsupported, 0,
      fmt::format("ublk: features {:#x} of the kernel's driver: expected USER_COPY (0x80) or "
                  "NEED_GET_DATA (0x4), which Linux 6.1 and later have",
                  flags)};
}

}  // namespace uzram::ublk
