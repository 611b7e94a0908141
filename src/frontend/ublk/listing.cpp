#include "frontend/ublk/listing.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include <fcntl.h>

#include "base/option_value.hpp"
#include "os/descriptor.hpp"

namespace uzram::ublk {
namespace {

constexpr std::string_view kPrefix = "ublkc";

}  // namespace

std::vector<std::uint32_t> device_ids(std::string_view folder) {
  std::vector<std::uint32_t> ids;
  std::error_code failure;
  for (std::filesystem::directory_iterator at(folder, failure), end; !failure && at != end;
       at.increment(failure)) {
    const std::string name = at->path().filename().string();
    std::uint32_t id = 0;
    if (name.starts_with(kPrefix) &&
        take_number(std::string_view(name).substr(kPrefix.size()), id)) {
      ids.push_back(id);
    }
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::string_view state_name(DeviceState state) noexcept {
  switch (state) {
    case DeviceState::dead:
      return "dead";
    case DeviceState::live:
      return "live";
    case DeviceState::quiesced:
      return "quiesced";
    case DeviceState::fail_io:
      return "fail-io";
  }
  return "unknown";
}

bool is_in_use(const std::string& node) noexcept {
  const os::Descriptor fd(::open(node.c_str(), O_RDONLY | O_EXCL | O_CLOEXEC));
  return !fd.is_open() && errno == EBUSY;
}

Result<void> stop_and_remove(Control& control, std::uint32_t id) {
  if (Result<void> stopped = control.stop(id); !stopped) {
    return stopped;
  }
  return control.remove(id);
}

}  // namespace uzram::ublk
