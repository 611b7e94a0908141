#include "support/kernel_zram.hpp"

#include <array>
#include <cerrno>
#include <fstream>

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace uzram::test {
namespace {

const std::string kControl = "/sys/class/zram-control/";

std::string attribute(int number, const std::string& name) {
  return "/sys/block/zram" + std::to_string(number) + "/" + name;
}

bool write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.flush();
  return file.good();
}

}  // namespace

Result<std::unique_ptr<KernelZram>> KernelZram::create(const std::string& algorithm,
                                                       std::uint64_t disksize_bytes) {
  const auto unsupported = [](const std::string& what) {
    return Error{Errc::unsupported, 0, what};
  };
  auto device = std::unique_ptr<KernelZram>(new KernelZram);
  std::ifstream hot_add(kControl + "hot_add");
  if (!(hot_add >> device->number_)) {
    return unsupported("cannot make a kernel zram device: no " + kControl +
                       "hot_add that this user may read");
  }
  if (!write_text(attribute(device->number_, "comp_algorithm"), algorithm)) {
    return unsupported("the kernel's zram does not know the algorithm " + algorithm);
  }
  if (!write_text(attribute(device->number_, "disksize"), std::to_string(disksize_bytes))) {
    return unsupported("cannot set the kernel zram's disksize");
  }
  device->path_ = "/dev/zram" + std::to_string(device->number_);
  device->fd_ = ::open(device->path_.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC);
  if (device->fd_ < 0) {
    return system_error("cannot open " + device->path_, errno);
  }
  return device;
}

KernelZram::~KernelZram() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
  if (number_ >= 0) {
    // Something that looks at new block devices may hold it for a moment.
    for (int attempt = 0; attempt < 100; ++attempt) {
      if (write_text(kControl + "hot_remove", std::to_string(number_))) {
        return;
      }
      ::usleep(20000);
    }
  }
}

bool KernelZram::discard(std::uint64_t offset, std::uint64_t length) const noexcept {
  std::array<std::uint64_t, 2> range = {offset, length};
  return ::ioctl(fd_, BLKDISCARD, range.data()) == 0;
}

KernelZram::MmStat KernelZram::mm_stat() const {
  std::ifstream file(attribute(number_, "mm_stat"));
  MmStat stat;
  file >> stat.orig_data_size >> stat.compr_data_size >> stat.mem_used_total >> stat.mem_limit >>
      stat.mem_used_max >> stat.same_pages >> stat.pages_compacted >> stat.huge_pages;
  return stat;
}

}  // namespace uzram::test
