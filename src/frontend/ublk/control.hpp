// Control: the kernel's ublk driver, asked to make, start, stop and remove devices.
//
// Role: set-up and removal; nothing of it is on the data path.
// Ownership: owns /dev/ublk-control and a ring for it. Devices belong to the kernel and stay when this
// goes.
// Errors: Results with a message that names the device, what failed and what to do. A command that
// waits in the kernel is given up after its time: the device is then still there.
// Threads: one at a time. start() waits until the queues have fetched all of their tags, so other
// threads do that.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <sched.h>

#include "uzram/error.hpp"

#include "frontend/ublk/abi.hpp"
#include "os/descriptor.hpp"

struct io_uring;

namespace uzram::ublk {

// "/dev/ublkb3", and "/dev/ublkc3", through which its server reaches it.
[[nodiscard]] std::string block_node(std::uint32_t id);
[[nodiscard]] std::string character_node(std::uint32_t id);

class Control {
 public:
  // Errors: unsupported (this kernel has no ublk, or no io_uring, or its module is not loaded),
  // read_only (no permission), system.
  static Result<std::unique_ptr<Control>> open();
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  // What the driver says it has; nothing before Linux 6.5.
  [[nodiscard]] std::optional<std::uint64_t> features() const noexcept { return features_; }
  // Whether commands are ioctl numbers, and not the bare ones that all drivers before Linux 6.4 want.
  [[nodiscard]] bool ioctl_encoding() const noexcept { return ioctl_encoding_; }
  // Whether it may make devices that everybody may use: CAP_SYS_ADMIN, when it was opened.
  [[nodiscard]] bool privileged() const noexcept { return privileged_; }
  // Has this one, and the queues that ask it, behave as with an old driver.
  void use_legacy_numbers() noexcept {
    ioctl_encoding_ = false;
    features_.reset();
  }

  // Makes the device that `info` asks for, and fills in what the driver has made of it. Errors: exists,
  // read_only, system.
  Result<void> add(DeviceInfo& info);
  Result<void> set_parameters(std::uint32_t id, Parameters& parameters);
  // Returns when the block device is there. REQUIRES: each queue has fetched, or is about to.
  Result<void> start(std::uint32_t id);
  // Returns when no request is on its way any more and the queues' tags have come back.
  Result<void> stop(std::uint32_t id);
  // Returns when the device is gone, so nobody may have it open. Errors: busy when somebody still has
  // after five seconds; the device then goes when they let go of it.
  Result<void> remove(std::uint32_t id);
  // Errors: not_found; read_only: it is somebody else's.
  Result<DeviceInfo> info(std::uint32_t id);
  // The CPUs whose requests go to that queue. Nothing set when it cannot be told.
  [[nodiscard]] cpu_set_t affinity(std::uint32_t id, std::uint32_t queue) noexcept;

 private:
  explicit Control(os::Descriptor fd) noexcept;

  // Sends one command and waits. `buffer` is read or written by the driver. Returns 0 or more, or a
  // negative errno; -ETIME: given up.
  int command(ControlOp op, std::uint32_t id, std::span<std::byte> buffer, std::uint64_t data,
              std::optional<std::chrono::milliseconds> patience = std::nullopt) noexcept;
  // command() for devices, whose buffer must begin with their path where the driver wants it.
  int device_command(ControlOp op, std::uint32_t id, std::span<std::byte> buffer,
                     std::uint64_t data = 0,
                     std::optional<std::chrono::milliseconds> patience = std::nullopt) noexcept;
  int submit(ControlOp op, const ControlCommand& command,
             std::optional<std::chrono::milliseconds> patience) noexcept;
  [[nodiscard]] Result<void> make_ring();
  void ask_features() noexcept;

  const os::Descriptor fd_;
  // Empty after a command has been given up: the kernel may still work on it.
  std::unique_ptr<io_uring> ring_;
  std::optional<std::uint64_t> features_;
  bool ioctl_encoding_ = true;
  const bool privileged_;
};

}  // namespace uzram::ublk
