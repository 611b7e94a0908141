#include "bench/device_port.hpp"
#include "bench/target.hpp"
#include "os/kernel_zram.hpp"

namespace uzram::bench {
namespace {

class ZramTarget final : public Target {
 public:
  ZramTarget(std::unique_ptr<os::KernelZram> device, TargetInfo info, bool uring)
      : device_(std::move(device)), info_(std::move(info)) {
    access_.fd = device_->fd();
    access_.uring = uring;
    access_.write_hint = zram_write_hint(device_->name());
  }

  [[nodiscard]] const TargetInfo& info() const noexcept override { return info_; }

  Result<std::unique_ptr<Port>> open_port(std::uint32_t iodepth) override {
    return open_device_port(access_, iodepth);
  }

  [[nodiscard]] MemoryUse memory() const override { return zram_memory(device_->name()); }

 private:
  const std::unique_ptr<os::KernelZram> device_;
  const TargetInfo info_;
  DeviceAccess access_;
};

}  // namespace

Result<std::unique_ptr<Target>> open_zram_target(const TargetConfig& config,
                                                 const TargetNeeds& needs) {
  const DeviceOptions& options = config.device.options;
  auto device = os::KernelZram::create(options.algorithm, options.level, needs.size_bytes);
  if (!device) {
    return std::move(device).error();
  }
  const bool uring = goes_by_uring(config.io, needs.iodepth);
  TargetInfo info;
  info.path = path_name(uring);
  info.algorithm = options.algorithm;
  info.level = options.level;
  info.streams = 0;
  return std::unique_ptr<Target>(
      std::make_unique<ZramTarget>(*std::move(device), std::move(info), uring));
}

}  // namespace uzram::bench
