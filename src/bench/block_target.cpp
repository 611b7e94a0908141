#include <cerrno>

#include <unistd.h>

#include "base/size.hpp"
#include "bench/device_port.hpp"
#include "bench/target.hpp"
#include "os/block_device.hpp"
#include "os/kernel_zram.hpp"

namespace uzram::bench {
namespace {

class BlockTarget final : public Target {
 public:
  BlockTarget(os::BlockDevice device, TargetInfo info, bool uring)
      : device_(std::move(device)), info_(std::move(info)) {
    access_.fd = device_.fd();
    access_.is_file = device_.is_file();
    access_.uring = uring;
    if (!info_.algorithm.empty()) {
      access_.write_hint = zram_write_hint(device_.name());
    }
  }

  [[nodiscard]] const TargetInfo& info() const noexcept override { return info_; }

  Result<std::unique_ptr<Port>> open_port(std::uint32_t iodepth) override {
    return open_device_port(access_, iodepth);
  }

  [[nodiscard]] MemoryUse memory() const override { return zram_memory(device_.name()); }

 private:
  const os::BlockDevice device_;
  const TargetInfo info_;
  DeviceAccess access_;
};

// Requests are whole multiples of a data page.
Result<void> check_geometry(const os::BlockDevice& device, std::uint64_t size_bytes) {
  if (device.size_bytes() < size_bytes) {
    return Error{Errc::invalid_argument, 0,
                 device.path() + " has " + format_size(device.size_bytes()) +
                     ", less than the run's " + format_size(size_bytes) +
                     "; lower the size or name a larger one"};
  }
  if (device.logical_block_bytes() > kDataPage) {
    return Error{Errc::unsupported, 0,
                 device.path() + " has blocks of " + format_size(device.logical_block_bytes()) +
                     ": expected at most " + format_size(kDataPage)};
  }
  return {};
}

// Discards the range, so that memory and flash are free, and zeroes it where that does not make it
// read as zeroes. Whether it was zeroed.
Result<bool> empty(const os::BlockDevice& device, std::uint64_t size_bytes) {
  bool discards = device.can_discard();
  if (discards) {
    const int failed = os::discard_range(device.fd(), device.is_file(), 0, size_bytes);
    if (failed != 0 && failed != EOPNOTSUPP) {
      return system_error("cannot discard the start of " + device.path(), failed);
    }
    discards = failed == 0;
  }
  const auto is_empty = looks_empty(size_bytes, [&](std::byte* page, std::uint64_t offset) {
    return ::pread(device.fd(), page, kDataPage, static_cast<off_t>(offset)) ==
           static_cast<ssize_t>(kDataPage);
  });
  if (!is_empty) {
    return system_error("cannot read " + device.path(), errno);
  }
  if (*is_empty && discards) {
    return false;
  }
  if (const int failed = os::zero_range(device.fd(), device.is_file(), 0, size_bytes);
      failed != 0) {
    return system_error("cannot zero the start of " + device.path(), failed);
  }
  return true;
}

}  // namespace

Result<void> check_block_target(const TargetConfig& config, std::uint64_t size_bytes,
                                bool consent) {
  const auto device = os::BlockDevice::open(config.address);
  if (!device) {
    return device.error();
  }
  if (consent) {
    return {};
  }
  return Error{Errc::invalid_argument, 0,
               device->description() + ": its first " + format_size(size_bytes) +
                   " would be overwritten and cannot be brought back; pass --yes if that is what "
                   "you want"};
}

Result<std::unique_ptr<Target>> open_block_target(const TargetConfig& config,
                                                  const TargetNeeds& needs) {
  auto device = os::BlockDevice::open(config.address);
  if (!device) {
    return std::move(device).error();
  }
  if (auto fits = check_geometry(*device, needs.size_bytes); !fits) {
    return std::move(fits).error();
  }
  auto zeroed = empty(*device, needs.size_bytes);
  if (!zeroed) {
    return std::move(zeroed).error();
  }
  const bool uring = goes_by_uring(config.io, needs.iodepth);
  TargetInfo info;
  info.path = path_name(uring, device->is_file());
  info.zeroed = *zeroed;
  info.algorithm = os::zram_algorithm(device->name());
  if (!info.algorithm.empty()) {
    // MemoryUse::peak counts from here.
    os::reset_zram_mem_used_max(device->name());
  }
  return std::unique_ptr<Target>(
      std::make_unique<BlockTarget>(*std::move(device), std::move(info), uring));
}

}  // namespace uzram::bench
