#include "support/loop_device.hpp"

#include <cerrno>

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace uzram::test {

Result<std::unique_ptr<LoopDevice>> LoopDevice::make(std::uint64_t size_bytes, bool read_only) {
  auto device = std::unique_ptr<LoopDevice>(new LoopDevice);
  const int control = ::open("/dev/loop-control", O_RDWR | O_CLOEXEC);
  if (control < 0) {
    return system_error("/dev/loop-control", errno);
  }
  const int file = ::open(device->file().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  int failed = file < 0 || ::ftruncate(file, static_cast<off_t>(size_bytes)) != 0 ? errno : EBUSY;
  loop_config config{};
  config.fd = static_cast<unsigned>(file);
  config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
  if (read_only) {
    config.info.lo_flags |= LO_FLAGS_READ_ONLY;
  }
  // Another program may take the free one first.
  for (int attempt = 0; attempt < 1000 && failed == EBUSY; ++attempt) {
    const int number = ::ioctl(control, LOOP_CTL_GET_FREE);
    device->path_ = "/dev/loop" + std::to_string(number);
    device->fd_ = ::open(device->path_.c_str(), (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC);
    failed = device->fd_ >= 0 && ::ioctl(device->fd_, LOOP_CONFIGURE, &config) == 0 ? 0 : errno;
    if (failed != 0 && device->fd_ >= 0) {
      ::close(device->fd_);
      device->fd_ = -1;
    }
  }
  ::close(control);
  if (file >= 0) {
    ::close(file);
  }
  if (failed != 0) {
    return system_error("cannot make a loop device " + device->path_, failed);
  }
  return device;
}

LoopDevice::~LoopDevice() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

}  // namespace uzram::test
