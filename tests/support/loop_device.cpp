#include "support/loop_device.hpp"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

namespace uzram::test {

Result<std::unique_ptr<LoopDevice>> LoopDevice::make(std::uint64_t size_bytes, bool read_only) {
  auto device = std::unique_ptr<LoopDevice>(new LoopDevice);
  if (auto attached = device->attach(size_bytes, read_only); !attached) {
    return std::move(attached).error();
  }
  return device;
}

Result<std::unique_ptr<LoopDevice>> LoopDevice::make_without_discard(std::uint64_t size_bytes) {
  auto device = std::unique_ptr<LoopDevice>(new LoopDevice);
  const std::string folder = device->folder_ / "";
  if (::mount("none", folder.c_str(), "ramfs", 0, nullptr) != 0) {
    return system_error("cannot mount a ramfs", errno);
  }
  auto attached = device->attach(size_bytes, false);
  // Stays until nobody has the file open.
  ::umount2(folder.c_str(), MNT_DETACH);
  if (!attached) {
    return std::move(attached).error();
  }
  return device;
}

Result<void> LoopDevice::attach(std::uint64_t size_bytes, bool read_only) {
  const int control = ::open("/dev/loop-control", O_RDWR | O_CLOEXEC);
  if (control < 0) {
    return system_error("/dev/loop-control", errno);
  }
  const int image = ::open(file().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  int failed = image < 0 || ::ftruncate(image, static_cast<off_t>(size_bytes)) != 0 ? errno : EBUSY;
  loop_config config{};
  config.fd = static_cast<unsigned>(image);
  config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
  if (read_only) {
    config.info.lo_flags |= LO_FLAGS_READ_ONLY;
  }
  // Another program may take the free one first.
  for (int attempt = 0; attempt < 1000 && failed == EBUSY; ++attempt) {
    const int number = ::ioctl(control, LOOP_CTL_GET_FREE);
    path_ = "/dev/loop" + std::to_string(number);
    fd_ = ::open(path_.c_str(), (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC);
    failed = fd_ >= 0 && ::ioctl(fd_, LOOP_CONFIGURE, &config) == 0 ? 0 : errno;
    if (failed != 0 && fd_ >= 0) {
      ::close(fd_);
      fd_ = -1;
    }
  }
  ::close(control);
  if (image >= 0) {
    ::close(image);
  }
  if (failed != 0) {
    return system_error("cannot make a loop device " + path_, failed);
  }
  return {};
}

LoopDevice::~LoopDevice() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

}  // namespace uzram::test
