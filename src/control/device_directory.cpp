#include "control/device_directory.hpp"

#include <algorithm>
#include <utility>

namespace uzram::control {

Result<void> DeviceDirectory::add(DeviceEntry entry) {
  const MutexLock lock(mutex_);
  for (const DeviceEntry& present : entries_) {
    if (present.name == entry.name) {
      return Error{Errc::exists, 0,
                   "device \"" + entry.name + "\": there is one of this name; choose another"};
    }
  }
  entries_.push_back(std::move(entry));
  return {};
}

std::vector<DeviceEntry> DeviceDirectory::list() const {
  const MutexLock lock(mutex_);
  return entries_;
}

std::optional<DeviceEntry> DeviceDirectory::find(std::string_view name) const {
  const MutexLock lock(mutex_);
  for (const DeviceEntry& entry : entries_) {
    if (entry.name == name) {
      return entry;
    }
  }
  return std::nullopt;
}

}  // namespace uzram::control
