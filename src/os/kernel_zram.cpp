#include "os/kernel_zram.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "base/size.hpp"

namespace uzram::os {
namespace {

namespace fs = std::filesystem;

std::string attribute_path(std::string_view device, std::string_view attribute) {
  return "/sys/block/" + std::string(device) + "/" + std::string(attribute);
}

// Returns 0 or an errno.
int write_attribute(std::string_view device, std::string_view attribute, std::string_view text) {
  const Descriptor file(::open(attribute_path(device, attribute).c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.is_open()) {
    return errno;
  }
  return ::write(file.get(), text.data(), text.size()) >= 0 ? 0 : errno;
}

// The words of comp_algorithm, "[lzo-rle] lzo lz4", the brackets left in place.
std::vector<std::string> algorithm_words(std::string_view device) {
  std::vector<std::string> words;
  std::ifstream file(attribute_path(device, "comp_algorithm"));
  for (std::string word; file >> word;) {
    words.push_back(word);
  }
  return words;
}

std::string without_brackets(const std::string& word) {
  return word.size() > 2 && word.front() == '[' ? word.substr(1, word.size() - 2) : word;
}

// In the order of the alphabet.
std::vector<std::string> algorithms_of(std::string_view device) {
  std::vector<std::string> names;
  for (const std::string& word : algorithm_words(device)) {
    names.push_back(without_brackets(word));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::optional<ZramMmStat> zram_mm_stat(std::string_view name) {
  std::ifstream file(attribute_path(name, "mm_stat"));
  ZramMmStat stat;
  if (!(file >> stat.orig_data_size >> stat.compr_data_size >> stat.mem_used_total >>
        stat.mem_limit >> stat.mem_used_max >> stat.same_pages >> stat.pages_compacted)) {
    return std::nullopt;
  }
  file >> stat.huge_pages >> stat.huge_pages_since;
  return stat;
}

std::string zram_algorithm(std::string_view name) {
  for (const std::string& word : algorithm_words(name)) {
    if (word.front() == '[') {
      return without_brackets(word);
    }
  }
  return {};
}

bool reset_zram_mem_used_max(std::string_view name) {
  return write_attribute(name, "mem_used_max", "0") == 0;
}

KernelZram::KernelZram(std::unique_ptr<ZramKeeper> keeper)
    : keeper_(std::move(keeper)), path_("/dev/" + keeper_->name()) {}

Result<std::unique_ptr<KernelZram>> KernelZram::create(const std::string& algorithm,
                                                       std::optional<int> level,
                                                       std::uint64_t disksize_bytes) {
  auto keeper = ZramKeeper::start();
  if (!keeper) {
    return std::move(keeper).error();
  }
  auto device = std::unique_ptr<KernelZram>(new KernelZram(*std::move(keeper)));
  if (auto set = device->set_algorithm(algorithm); !set) {
    return std::move(set).error();
  }
  if (level) {
    if (auto set = device->set_level(algorithm, *level); !set) {
      return std::move(set).error();
    }
  }
  if (auto set = device->set_disksize(disksize_bytes); !set) {
    Error error = std::move(set).error();
    if (level) {
      error.message += " (algorithm " + algorithm + ", level " + std::to_string(*level) + ")";
    }
    return error;
  }
  device->fd_ = Descriptor(::open(device->path().c_str(), O_RDWR | O_DIRECT | O_EXCL | O_CLOEXEC));
  if (!device->fd_.is_open()) {
    return system_error("cannot open " + device->path(), errno);
  }
  return device;
}

Result<void> KernelZram::set_algorithm(const std::string& algorithm) const {
  // Writing nothing is no write for the kernel.
  const int failed =
      algorithm.empty() ? EINVAL : write_attribute(name(), "comp_algorithm", algorithm);
  if (failed == 0) {
    return {};
  }
  if (failed != EINVAL && failed != E2BIG) {
    return system_error("zram algorithm \"" + algorithm + "\"", failed);
  }
  std::string known;
  for (const std::string& other : algorithms_of(name())) {
    known += (known.empty() ? "" : ", ") + other;
  }
  return Error{Errc::unsupported, failed,
               "zram algorithm \"" + algorithm + "\": this kernel's zram has " + known};
}

Result<void> KernelZram::set_level(const std::string& algorithm, int level) const {
  const std::string what = "zram level " + std::to_string(level);
  // The kernel takes a level for these and pays it no heed.
  constexpr std::array<std::string_view, 3> kWithoutLevels = {"842", "lzo", "lzo-rle"};
  if (std::find(kWithoutLevels.begin(), kWithoutLevels.end(), algorithm) != kWithoutLevels.end()) {
    return Error{Errc::invalid_argument, 0,
                 what + ": " + algorithm + " has no levels; leave it out"};
  }
  const int failed = write_attribute(name(), "algorithm_params",
                                     "algo=" + algorithm + " level=" + std::to_string(level));
  if (failed == ENOENT || failed == EACCES) {
    return Error{Errc::unsupported, failed,
                 what +
                     ": this kernel's zram has no algorithm_params, which came with Linux 6.12; "
                     "leave the level out"};
  }
  if (failed != 0) {
    Error error = system_error(what + " for " + algorithm, failed);
    error.code = failed == EINVAL ? Errc::invalid_argument : Errc::system;
    return error;
  }
  return {};
}

Result<void> KernelZram::set_disksize(std::uint64_t disksize_bytes) const {
  const int failed = write_attribute(name(), "disksize", std::to_string(disksize_bytes));
  if (failed == 0) {
    return {};
  }
  Error error =
      system_error(name() + ": cannot set a disksize of " + format_size(disksize_bytes), failed);
  switch (failed) {
    case EINVAL:
      error.code = Errc::invalid_argument;
      break;
    case EBUSY:
      error.code = Errc::busy;
      error.message += ": another program has set up this new device; try again";
      break;
    default:
      break;
  }
  return error;
}

ZramMmStat KernelZram::mm_stat() const { return zram_mm_stat(name()).value_or(ZramMmStat{}); }

Result<std::vector<std::string>> KernelZram::algorithms() {
  std::error_code ended;
  for (fs::directory_iterator entry("/sys/block", ended); entry != fs::directory_iterator();
       entry.increment(ended)) {
    const std::string name = entry->path().filename().string();
    if (name.compare(0, 4, "zram") != 0) {
      continue;
    }
    // Empty when the device has gone meanwhile.
    auto names = algorithms_of(name);
    if (!names.empty()) {
      return names;
    }
  }
  auto keeper = ZramKeeper::start();
  if (!keeper) {
    return std::move(keeper).error();
  }
  return algorithms_of((*keeper)->name());
}

}  // namespace uzram::os
