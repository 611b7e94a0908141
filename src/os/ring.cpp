#include "os/ring.hpp"

#include <array>
#include <cerrno>
#include <new>

namespace uzram::os {
namespace {

constexpr std::string_view kOldestKernel = "Linux 5.11 or later";

}  // namespace

Error ring_error(int errno_value, std::string_view kernel) {
  Error error = system_error("io_uring", errno_value);
  switch (errno_value) {
    case ENOSYS:
    case EINVAL:
      error.code = Errc::unsupported;
      error.message.append(": expected ").append(kernel);
      error.message += ", and a seccomp filter that lets it through";
      break;
    case EPERM:
    case EACCES:
      error.code = Errc::unsupported;
      error.message +=
          ": not permitted here: set /proc/sys/kernel/io_uring_disabled to 0, or allow "
          "io_uring_setup in the seccomp filter of the container";
      break;
    case ENOMEM:
      error.message += ": raise the limit on locked memory (ulimit -l)";
      break;
    default:
      break;
  }
  return error;
}

Result<std::unique_ptr<Ring>> Ring::create(unsigned entries, unsigned completions) {
  // Best first: 6.1 completes work only where the thread waits, 5.19 without interrupting it.
  constexpr std::array<unsigned, 3> kFlags = {
      IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, IORING_SETUP_COOP_TASKRUN, 0};
  std::unique_ptr<Ring> ring(new (std::nothrow) Ring);
  if (!ring) {
    return ring_error(ENOMEM, kOldestKernel);
  }
  int result = -EINVAL;
  for (const unsigned flags : kFlags) {
    io_uring_params parameters{};
    // Made here, enabled by the thread it will belong to.
    parameters.flags = flags | IORING_SETUP_R_DISABLED | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
    parameters.cq_entries = completions;
    result = io_uring_queue_init_params(entries, &ring->ring_, &parameters);
    if (result != -EINVAL) {
      break;
    }
  }
  if (result < 0) {
    return ring_error(-result, kOldestKernel);
  }
  ring->made_ = true;
  return ring;
}

Ring::~Ring() {
  if (made_) {
    io_uring_queue_exit(&ring_);
  }
}

int Ring::enable() noexcept {
  // liburing 2.3 declares io_uring_enable_rings but its shared library does not export it.
  const unsigned descriptor = static_cast<unsigned>(ring_.ring_fd);
  return io_uring_register(descriptor, IORING_REGISTER_ENABLE_RINGS, nullptr, 0);
}

io_uring_sqe& Ring::entry() noexcept {
  io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
  while (sqe == nullptr) {
    // Fails for a moment only: the kernel is out of memory or its completion queue is full.
    io_uring_submit(&ring_);
    sqe = io_uring_get_sqe(&ring_);
  }
  return *sqe;
}

void Ring::submit(bool wait, std::optional<std::chrono::milliseconds> timeout) noexcept {
  // Interruptions and time-outs show in what has completed: nothing.
  if (!wait) {
    io_uring_submit_and_get_events(&ring_);
  } else if (!timeout) {
    io_uring_submit_and_wait(&ring_, 1);
  } else {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(*timeout);
    __kernel_timespec limit{};
    limit.tv_sec = seconds.count();
    limit.tv_nsec = std::chrono::nanoseconds(*timeout - seconds).count();
    io_uring_cqe* first = nullptr;
    io_uring_submit_and_wait_timeout(&ring_, &first, 1, &limit, nullptr);
  }
}

}  // namespace uzram::os
