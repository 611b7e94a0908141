// DeviceDirectory: the devices a running server offers, for everything that lists or changes them.
//
// Ownership: the devices belong to whoever added them and must outlive the directory.
// Errors: add refuses a second device of a name.
// Threads: any; an internal mutex guards the list, and what is handed out are copies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "uzram/device.hpp"

#include "base/mutex.hpp"

namespace uzram::control {

struct DeviceEntry {
  Device* device = nullptr;
  std::string name;
  // Where clients reach it.
  std::vector<std::string> exports;
  // The kernel's block device, such as /dev/ublkb0; empty when there is none.
  std::string node{};
};

class DeviceDirectory {
 public:
  // REQUIRES: entry.device is not nullptr. Errors: exists.
  Result<void> add(DeviceEntry entry);
  // In the order they were added.
  [[nodiscard]] std::vector<DeviceEntry> list() const;
  [[nodiscard]] std::optional<DeviceEntry> find(std::string_view name) const;

 private:
  mutable Mutex mutex_;
  std::vector<DeviceEntry> entries_ UZRAM_GUARDED_BY(mutex_);
};

}  // namespace uzram::control
