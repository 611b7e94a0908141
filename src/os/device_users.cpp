#include "os/device_users.hpp"

#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <vector>

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "os/mounts.hpp"
#include "os/proc_text.hpp"

namespace uzram::os {
namespace {

namespace fs = std::filesystem;

std::string text_of(dev_t number) {
  return std::to_string(major(number)) + ":" + std::to_string(minor(number));
}

bool is_device(const std::string& path, dev_t number) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISBLK(status.st_mode) && status.st_rdev == number;
}

std::string mounted_on(dev_t number) {
  for (const Mount& mount : parse_mounts(slurp("/proc/self/mountinfo").value_or(""))) {
    if (number != 0 && disk_of(mount) == number) {
      return mount.point;
    }
  }
  return {};
}

bool is_swap(dev_t number) {
  std::ifstream file("/proc/swaps");
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    if (is_device(unescape(line.substr(0, line.find_first_of(" \t"))), number)) {
      return true;
    }
  }
  return false;
}

// "dm-0 (root)", or empty.
std::string holder_in(const fs::path& folder) {
  std::error_code ended;
  for (fs::directory_iterator entry(folder / "holders", ended); entry != fs::directory_iterator();
       entry.increment(ended)) {
    std::string name = entry->path().filename().string();
    std::ifstream file(entry->path() / "dm/name");
    if (std::string mapping; file >> mapping) {
      name.append(" (").append(mapping).append(")");
    }
    return name;
  }
  return {};
}

std::string mounted_or_swap(dev_t number) {
  std::string where = mounted_on(number);
  return where.empty() && is_swap(number) ? "[SWAP]" : where;
}

std::string use_of(const fs::path& folder, dev_t number) {
  if (std::string where = mounted_on(number); !where.empty()) {
    return "is mounted on " + where;
  }
  if (is_swap(number)) {
    return "is used as swap";
  }
  if (std::string holder = holder_in(folder); !holder.empty()) {
    return "is held by " + holder;
  }
  return {};
}

// The number of the device with that folder, 0 when it cannot be told.
dev_t number_of(const fs::path& folder) {
  std::ifstream file(folder / "dev");
  unsigned major_number = 0;
  unsigned minor_number = 0;
  char colon = 0;
  return file >> major_number >> colon >> minor_number ? makedev(major_number, minor_number) : 0;
}

// The same of the device with that folder.
std::string use_of(const fs::path& folder) {
  const dev_t number = number_of(folder);
  return number == 0 ? std::string() : use_of(folder, number);
}

bool is_partition(const fs::path& folder) {
  std::error_code absent;
  return fs::exists(folder / "partition", absent);
}

}  // namespace

std::string device_folder(dev_t number) {
  std::error_code failed;
  const fs::path folder = fs::canonical("/sys/dev/block/" + text_of(number), failed);
  return failed ? std::string() : folder.string();
}

std::string disk_folder(const std::string& folder) {
  return is_partition(folder) ? fs::path(folder).parent_path().string() : folder;
}

std::string mount_point(dev_t number) {
  std::string where = mounted_or_swap(number);
  std::error_code ended;
  for (fs::directory_iterator entry(device_folder(number), ended);
       where.empty() && entry != fs::directory_iterator(); entry.increment(ended)) {
    if (is_partition(entry->path())) {
      where = mounted_or_swap(number_of(entry->path()));
    }
  }
  return where;
}

std::string mount_point(const std::string& path) {
  struct stat status {};
  const bool is_there = ::stat(path.c_str(), &status) == 0 && S_ISBLK(status.st_mode);
  return is_there ? mount_point(status.st_rdev) : std::string();
}

std::string device_users(dev_t number) {
  const fs::path folder = device_folder(number);
  if (std::string use = use_of(folder, number); !use.empty()) {
    return use;
  }
  if (is_partition(folder)) {
    const fs::path disk = folder.parent_path();
    const std::string use = use_of(disk);
    return use.empty() ? use : "is a partition of " + disk.filename().string() + ", which " + use;
  }
  std::error_code ended;
  for (fs::directory_iterator entry(folder, ended); entry != fs::directory_iterator();
       entry.increment(ended)) {
    if (!is_partition(entry->path())) {
      continue;
    }
    if (const std::string use = use_of(entry->path()); !use.empty()) {
      return "has a partition " + entry->path().filename().string() + ", which " + use;
    }
  }
  return {};
}

}  // namespace uzram::os
