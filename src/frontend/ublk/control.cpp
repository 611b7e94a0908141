#include "frontend/ublk/control.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <liburing.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/ring.hpp"

namespace uzram::ublk {
namespace {

constexpr unsigned kRingEntries = 4;
// A driver that is interrupted wants to be asked again; one that always is does not get better.
constexpr int kMostInterruptions = 100;
// How long a removal waits for others to close the device.
constexpr std::chrono::milliseconds kRemovalPatience{5000};
constexpr std::size_t kLongestPath = 32;
constexpr std::string_view kCharacterPrefix = "/dev/ublkc";

Error open_error(int errno_value) {
  Error error = system_error(kControlPath, errno_value);
  if (errno_value == EACCES || errno_value == EPERM) {
    error.code = Errc::read_only;
    error.message += ": expected root, or permission to open it (docs/ublk.md)";
  } else if (errno_value == ENOENT || errno_value == ENODEV || errno_value == ENXIO) {
    error.code = Errc::unsupported;
    error.message +=
        ": expected a kernel with ublk and its module loaded (modprobe ublk_drv; Linux 6.1 or "
        "later with CONFIG_BLK_DEV_UBLK). Without it use NBD: leave out --ublk and connect "
        "nbd-client, or nbdfuse with a loop device";
  }
  return error;
}

Error command_error(std::string_view what, std::uint32_t id, int errno_value) {
  Error error = system_error(fmt::format("ublk: {} of device {}", what, id), errno_value);
  if (errno_value == ENODEV) {
    error.code = Errc::not_found;
    error.message += ": there is none of this number; see uzram ublk list";
  } else if (errno_value == EPERM || errno_value == EACCES) {
    error.code = Errc::read_only;
    error.message += ": it belongs to another user; expected root or that user";
  }
  return error;
}

// What a driver may say of an opcode it does not know.
bool is_unknown_opcode(int result) noexcept {
  return result == -ENODEV || result == -EINVAL || result == -EOPNOTSUPP || result == -ENOTTY;
}

std::uint32_t opcode(ControlOp op, bool ioctl_encoding) noexcept {
  const auto number = static_cast<std::uint32_t>(op);
  if (!ioctl_encoding) {
    return number;
  }
  const bool reads = op == ControlOp::get_queue_affinity || op == ControlOp::get_dev_info ||
                     op == ControlOp::get_dev_info2 || op == ControlOp::get_features;
  return (reads ? kReadsControl : kWritesControl) | number;
}

}  // namespace

std::string block_node(std::uint32_t id) { return fmt::format("/dev/ublkb{}", id); }

std::string character_node(std::uint32_t id) { return fmt::format("{}{}", kCharacterPrefix, id); }

namespace {

// Whether this thread may make devices that everybody may use: CAP_SYS_ADMIN.
bool may_administrate() noexcept {
  __user_cap_header_struct header{};
  header.version = _LINUX_CAPABILITY_VERSION_3;
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  return ::syscall(SYS_capget, &header, sets.data()) == 0 &&
         (sets[CAP_TO_INDEX(CAP_SYS_ADMIN)].effective & CAP_TO_MASK(CAP_SYS_ADMIN)) != 0;
}

}  // namespace

Control::Control(os::Descriptor fd) noexcept
    : fd_(std::move(fd)), privileged_(may_administrate()) {}

Control::~Control() {
  if (ring_) {
    io_uring_queue_exit(ring_.get());
  }
}

Result<std::unique_ptr<Control>> Control::open() {
  os::Descriptor fd(::open(kControlPath, O_RDWR | O_CLOEXEC));
  if (!fd.is_open()) {
    return open_error(errno);
  }
  std::unique_ptr<Control> control(new Control(std::move(fd)));
  if (Result<void> made = control->make_ring(); !made) {
    return std::move(made).error();
  }
  control->ask_features();
  return control;
}

Result<void> Control::make_ring() {
  ring_ = std::make_unique<io_uring>();
  const int result = io_uring_queue_init(kRingEntries, ring_.get(), IORING_SETUP_SQE128);
  if (result < 0) {
    ring_.reset();
    return os::ring_error(-result, "Linux 6.1 or later");
  }
  return {};
}

int Control::submit(ControlOp op, const ControlCommand& command,
                    std::optional<std::chrono::milliseconds> patience) noexcept {
  if (!ring_) {
    return -EIO;
  }
  io_uring_sqe* const sqe = io_uring_get_sqe(ring_.get());
  if (sqe == nullptr) {
    return -EBUSY;
  }
  io_uring_prep_rw(IORING_OP_URING_CMD, sqe, fd_.get(), nullptr, 0, 0);
  sqe->cmd_op = opcode(op, ioctl_encoding_);
  std::memcpy(reinterpret_cast<std::byte*>(sqe) + kCommandOffset, &command, sizeof command);
  int result = io_uring_submit(ring_.get());
  if (result < 0) {
    return result;
  }
  io_uring_cqe* done = nullptr;
  do {
    if (patience) {
      __kernel_timespec limit{};
      limit.tv_sec = patience->count() / 1000;
      limit.tv_nsec = patience->count() % 1000 * 1'000'000;
      result = io_uring_wait_cqe_timeout(ring_.get(), &done, &limit);
    } else {
      result = io_uring_wait_cqe(ring_.get(), &done);
    }
  } while (result == -EINTR);
  if (result < 0) {
    // Closing the ring ends the kernel's waiting.
    io_uring_queue_exit(ring_.get());
    ring_.reset();
    return result;
  }
  result = done->res;
  io_uring_cqe_seen(ring_.get(), done);
  return result;
}

int Control::command(ControlOp op, std::uint32_t id, std::span<std::byte> buffer,
                     std::uint64_t data,
                     std::optional<std::chrono::milliseconds> patience) noexcept {
  ControlCommand command{};
  command.device_id = id;
  command.length = static_cast<std::uint16_t>(buffer.size());
  command.address = reinterpret_cast<std::uintptr_t>(buffer.data());
  command.data = data;
  return submit(op, command, patience);
}

int Control::device_command(ControlOp op, std::uint32_t id, std::span<std::byte> buffer,
                            std::uint64_t data,
                            std::optional<std::chrono::milliseconds> patience) noexcept {
  int result = -EINTR;
  if (privileged_ && op != ControlOp::get_dev_info2) {
    for (int i = 0; result == -EINTR && i < kMostInterruptions; ++i) {
      result = command(op, id, buffer, data, patience);
    }
    return result;
  }
  // The path, and what the caller's buffer holds, in one.
  std::array<std::byte, kLongestPath + sizeof(cpu_set_t)> joined{};
  std::array<char, kLongestPath> path{};
  const auto digits = std::copy(kCharacterPrefix.begin(), kCharacterPrefix.end(), path.begin());
  std::to_chars(digits, path.end(), id);
  std::memcpy(joined.data(), path.data(), path.size());
  const std::size_t begin = kLongestPath;
  if (begin + buffer.size() > joined.size()) {
    return -EINVAL;
  }
  std::copy(buffer.begin(), buffer.end(), joined.begin() + begin);
  ControlCommand command{};
  command.device_id = id;
  command.length = static_cast<std::uint16_t>(begin + buffer.size());
  command.address = reinterpret_cast<std::uintptr_t>(joined.data());
  command.data = data;
  // The driver ends the path at its first zero.
  command.path_length = static_cast<std::uint16_t>(begin);
  for (int i = 0; result == -EINTR && i < kMostInterruptions; ++i) {
    result = submit(op, command, patience);
  }
  std::copy_n(joined.begin() + begin, buffer.size(), buffer.begin());
  return result;
}

void Control::ask_features() noexcept {
  std::uint64_t features = 0;
  if (command(ControlOp::get_features, kAnyId, std::as_writable_bytes(std::span(&features, 1)), 0) <
      0) {
    // Linux 6.4 takes both kinds of numbers, earlier ones only the bare.
    use_legacy_numbers();
  } else {
    features_ = features;
  }
}

Result<void> Control::add(DeviceInfo& info) {
  const std::uint32_t id = info.device_id;
  const int result =
      command(ControlOp::add_dev, id, std::as_writable_bytes(std::span(&info, 1)), 0);
  if (result >= 0) {
    return {};
  }
  const std::string what =
      id == kAnyId ? std::string("ublk: a new device") : fmt::format("ublk: device {}", id);
  if (result == -EEXIST) {
    return Error{Errc::exists, EEXIST,
                 what +
                     ": there is one of this number; expected another ID, or none to take the "
                     "first free one, or this one removed (uzram ublk remove)"};
  }
  if (result == -EPERM || result == -EACCES) {
    return Error{Errc::read_only, -result,
                 what +
                     ": the kernel does not let this user make one; expected root, or Linux 6.3 "
                     "or later with ublk's parameter for unprivileged devices above 0"};
  }
  return system_error(what, -result);
}

Result<void> Control::set_parameters(std::uint32_t id, Parameters& parameters) {
  const int result =
      device_command(ControlOp::set_params, id, std::as_writable_bytes(std::span(&parameters, 1)));
  return result < 0 ? Result<void>(command_error("parameters", id, -result)) : Result<void>();
}

Result<void> Control::start(std::uint32_t id) {
  const int result =
      device_command(ControlOp::start_dev, id, {}, static_cast<std::uint64_t>(::getpid()));
  return result < 0 ? Result<void>(command_error("start", id, -result)) : Result<void>();
}

Result<void> Control::stop(std::uint32_t id) {
  const int result = device_command(ControlOp::stop_dev, id, {});
  return result < 0 ? Result<void>(command_error("stop", id, -result)) : Result<void>();
}

Result<void> Control::remove(std::uint32_t id) {
  const int result = device_command(ControlOp::del_dev, id, {}, 0, kRemovalPatience);
  if (result == -ETIME) {
    if (Result<void> made = make_ring(); !made) {
      return made;
    }
    return Error{
        Errc::busy, EBUSY,
        fmt::format("ublk: device {} is stopped but still open somewhere (mounted, swapped "
                    "on, or its server has not ended); it goes when it is closed",
                    id)};
  }
  return result < 0 ? Result<void>(command_error("removal", id, -result)) : Result<void>();
}

Result<DeviceInfo> Control::info(std::uint32_t id) {
  DeviceInfo info{};
  const std::span<std::byte> buffer = std::as_writable_bytes(std::span(&info, 1));
  // The second kind finds out for itself whether the device wants its path; Linux 6.3.
  int result = device_command(ControlOp::get_dev_info2, id, buffer);
  if (is_unknown_opcode(result)) {
    result = device_command(ControlOp::get_dev_info, id, buffer);
  }
  if (result < 0) {
    return command_error("state", id, -result);
  }
  return info;
}

cpu_set_t Control::affinity(std::uint32_t id, std::uint32_t queue) noexcept {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (device_command(ControlOp::get_queue_affinity, id, std::as_writable_bytes(std::span(&cpus, 1)),
                     queue) < 0) {
    CPU_ZERO(&cpus);
  }
  return cpus;
}

}  // namespace uzram::ublk
