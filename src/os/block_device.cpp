#include "os/block_device.hpp"

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/size.hpp"
#include "os/device_users.hpp"

namespace uzram::os {
namespace {

namespace fs = std::filesystem;

// What direct I/O on a file needs at most, whatever is below it.
constexpr std::uint32_t kFileBlockBytes = 4096;

// The first line without spaces around it, empty when there is none.
std::string line_of(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  constexpr const char* kSpaces = " \t\r";
  const std::size_t begin = line.find_first_not_of(kSpaces);
  if (begin == std::string::npos) {
    return {};
  }
  return line.substr(begin, line.find_last_not_of(kSpaces) - begin + 1);
}

Error read_only(const std::string& path) {
  return Error{Errc::read_only, EROFS, path + " is read-only; expected a device to write to"};
}

Error cannot_open(const std::string& path, dev_t number, int failed) {
  Error error = system_error(path, failed);
  switch (failed) {
    case EBUSY: {
      const std::string use = device_users(number);
      error.code = Errc::busy;
      error.message =
          path + " " +
          (use.empty()
               ? "is in use: another program or mount namespace holds it, or it is named twice"
               : use) +
          "; expected a device that nothing uses";
      break;
    }
    case EROFS:
      return read_only(path);
    case ETXTBSY:
      error.code = Errc::busy;
      error.message =
          path + " is swapped on, or a program that runs; expected a file that nothing uses";
      break;
    case EACCES:
    case EPERM:
      error.message += "; run as root or as a user who may write to it";
      break;
    default:
      break;
  }
  return error;
}

int range_ioctl(int fd, unsigned long command, std::uint64_t offset,
                std::uint64_t length) noexcept {
  std::array<std::uint64_t, 2> range = {offset, length};
  int failed = 0;
  do {
    failed = ::ioctl(fd, command, range.data()) == 0 ? 0 : errno;
  } while (failed == EINTR);
  return failed;
}

int range_fallocate(int fd, int mode, std::uint64_t offset, std::uint64_t length) noexcept {
  int failed = 0;
  do {
    failed = ::fallocate(fd, mode, static_cast<off_t>(offset), static_cast<off_t>(length)) == 0
                 ? 0
                 : errno;
  } while (failed == EINTR);
  return failed;
}

}  // namespace

Result<BlockDevice> BlockDevice::open(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    Error error = system_error(path, errno);
    error.code = error.saved_errno == ENOENT ? Errc::not_found : Errc::system;
    error.message += "; expected a block device or a file";
    return error;
  }
  if (S_ISREG(status.st_mode)) {
    return open_file(path, static_cast<std::uint64_t>(status.st_size));
  }
  if (!S_ISBLK(status.st_mode)) {
    return Error{Errc::invalid_argument, ENOTBLK, path + " is neither a block device nor a file"};
  }
  BlockDevice device;
  device.path_ = path;
  device.fd_ = Descriptor(::open(path.c_str(), O_RDWR | O_DIRECT | O_EXCL | O_CLOEXEC));
  if (!device.fd_.is_open()) {
    return cannot_open(path, status.st_rdev, errno);
  }
  int block = 0;
  int write_protected = 0;
  if (::ioctl(device.fd(), BLKGETSIZE64, &device.size_bytes_) != 0 ||
      ::ioctl(device.fd(), BLKSSZGET, &block) != 0 ||
      ::ioctl(device.fd(), BLKROGET, &write_protected) != 0) {
    return system_error(path, errno);
  }
  if (write_protected != 0) {
    return read_only(path);
  }
  if (device.size_bytes_ == 0) {
    return Error{Errc::invalid_argument, 0,
                 path +
                     " has no size: expected a loop device with a file, a zram device with a "
                     "disksize, a drive with a medium"};
  }
  device.logical_block_bytes_ = static_cast<std::uint32_t>(block);
  const fs::path folder = device_folder(status.st_rdev);
  device.folder_ = folder.string();
  device.name_ = folder.filename().string();
  device.can_discard_ = discard_limits(status.st_rdev).most_bytes != 0;
  return device;
}

Result<BlockDevice> BlockDevice::open_file(const std::string& path, std::uint64_t size_bytes) {
  BlockDevice device;
  device.path_ = path;
  device.size_bytes_ = size_bytes;
  device.logical_block_bytes_ = kFileBlockBytes;
  device.can_discard_ = true;
  device.is_file_ = true;
  device.fd_ = Descriptor(::open(path.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
  if (!device.fd_.is_open() && errno == EINVAL) {
    // Its filesystem has no direct I/O.
    device.fd_ = Descriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  }
  if (!device.fd_.is_open()) {
    return cannot_open(path, 0, errno);
  }
  if (::flock(device.fd(), LOCK_EX | LOCK_NB) != 0) {
    return cannot_open(path, 0, errno == EWOULDBLOCK ? EBUSY : errno);
  }
  if (size_bytes == 0) {
    return Error{Errc::invalid_argument, 0,
                 path + " is empty: expected a file of the wanted size, as of truncate -s 1G"};
  }
  return device;
}

std::string BlockDevice::description() const {
  if (is_file_) {
    return path_ + " (" + format_size(size_bytes_) + ", file)";
  }
  const fs::path folder = folder_;
  const fs::path disk = disk_folder(folder_);
  std::string text = path_ + " (" + format_size(size_bytes_) + ", ";
  text += disk == folder ? name_ : "partition of " + disk.filename().string();
  if (const std::string file = line_of(folder / "loop/backing_file"); !file.empty()) {
    text += " on " + file;
  }
  if (const std::string mapping = line_of(folder / "dm/name"); !mapping.empty()) {
    text += ", " + mapping;
  }
  if (const std::string model = line_of(disk / "device/model"); !model.empty()) {
    text += ", " + model;
  }
  return text + ")";
}

DiscardLimits discard_limits(dev_t number) {
  // Partitions have no queue of their own.
  const fs::path queue = disk_folder(device_folder(number)) + "/queue";
  const auto number_in = [&](const char* name) {
    std::uint64_t value = 0;
    std::istringstream(line_of(queue / name)) >> value;
    return value;
  };
  return {number_in("discard_max_bytes"), number_in("discard_granularity")};
}

int discard_range(int fd, bool is_file, std::uint64_t offset, std::uint64_t length) noexcept {
  return is_file ? range_fallocate(fd, hole_mode(), offset, length)
                 : range_ioctl(fd, BLKDISCARD, offset, length);
}

int zero_range(int fd, bool is_file, std::uint64_t offset, std::uint64_t length) noexcept {
  return is_file ? range_fallocate(fd, zero_mode(), offset, length)
                 : range_ioctl(fd, BLKZEROOUT, offset, length);
}

int hole_mode() noexcept { return FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE; }
int zero_mode() noexcept { return FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE; }

}  // namespace uzram::os
