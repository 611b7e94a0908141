#include "bench/uring_port.hpp"

#include <array>
#include <cerrno>
#include <vector>

#include <liburing.h>

#include "uzram/fifo.hpp"

#include "bench/port_parts.hpp"

namespace uzram::bench {
namespace {

// A request in flight, and how much of it has been moved.
struct Slot {
  Request* request = nullptr;
  std::uint64_t done = 0;
};

class UringPort final : public Port {
 public:
  UringPort(const DeviceAccess& access, std::uint32_t iodepth)
      : fd_(access.fd), write_hint_(access.write_hint), slots_(iodepth) {
    free_.reserve(iodepth);
    for (std::uint32_t slot = iodepth; slot > 0; --slot) {
      free_.push_back(slot - 1);
    }
  }

  ~UringPort() override {
    if (made_) {
      ::io_uring_queue_exit(&ring_);
    }
  }

  // Returns 0 or a negative errno.
  int make_ring() noexcept {
    // Best first: 5.19 completes without interrupting the thread. A ring for one thread only would
    // be the thread's that makes it, and that need not be the job's.
    constexpr std::array<unsigned, 2> kFlags = {
        IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG, 0};
    int result = -EINVAL;
    for (const unsigned flags : kFlags) {
      result = ::io_uring_queue_init(static_cast<unsigned>(slots_.size()), &ring_, flags);
      if (result != -EINVAL) {
        break;
      }
    }
    made_ = result == 0;
    return result;
  }

  void submit(std::span<Request* const> batch) noexcept override {
    for (Request* const request : batch) {
      if (broken_errno_ != 0) {
        complete(*request, failure_.note(*request, request->offset, broken_errno_));
      } else {
        const std::uint32_t slot = free_.back();
        free_.pop_back();
        slots_[slot] = {request, 0};
        queue(slot);
      }
    }
    enter();
  }

  Request* reap() noexcept override {
    while (completed_.empty() && free_.size() < slots_.size()) {
      io_uring_cqe* cqe = nullptr;
      // Fails when a signal interrupts it.
      if (::io_uring_wait_cqe(&ring_, &cqe) == 0) {
        const auto slot = static_cast<std::uint32_t>(cqe->user_data);
        const int result = cqe->res;
        ::io_uring_cqe_seen(&ring_, cqe);
        take(slot, result);
      }
    }
    return completed_.pop();
  }

  // True as well when a part of a request has completed and reap() will wait for the rest.
  [[nodiscard]] bool has_completed() noexcept override {
    return !completed_.empty() || ::io_uring_cq_ready(&ring_) != 0 ||
           (IO_URING_READ_ONCE(*ring_.sq.kflags) & IORING_SQ_TASKRUN) != 0;
  }

  void execute(Request& request) noexcept override {
    Request* const batch = &request;
    submit({&batch, 1});
    [[maybe_unused]] const Request* const done = reap();
  }

  [[nodiscard]] std::string failure() const override { return failure_.text(write_hint_); }

 private:
  // Appends what is left of the request; there is an entry for each slot.
  void queue(std::uint32_t slot) noexcept {
    const Slot& work = slots_[slot];
    const Request& request = *work.request;
    io_uring_sqe* const sqe = ::io_uring_get_sqe(&ring_);
    const auto length = static_cast<unsigned>(request.length - work.done);
    if (request.op == Op::read) {
      ::io_uring_prep_read(sqe, fd_, request.buffer + work.done, length,
                           request.offset + work.done);
    } else if (request.op == Op::write) {
      ::io_uring_prep_write(sqe, fd_, request.buffer + work.done, length,
                            request.offset + work.done);
    } else {
      ::io_uring_prep_fsync(sqe, fd_, IORING_FSYNC_DATASYNC);
    }
    sqe->user_data = slot;
  }

  void enter() noexcept {
    while (::io_uring_sq_ready(&ring_) != 0) {
      const int result = ::io_uring_submit(&ring_);
      // Interrupted, or the kernel is short of memory for a moment.
      if (result < 0 && result != -EINTR && result != -EAGAIN && result != -EBUSY) {
        break_with(-result);
        return;
      }
    }
  }

  // The ring takes no more: what it has not taken, the last of its entries, fails.
  void break_with(int failed_errno) noexcept {
    broken_errno_ = failed_errno;
    for (unsigned left = ::io_uring_sq_ready(&ring_); left > 0; --left) {
      const unsigned entry = (ring_.sq.sqe_tail - left) & *ring_.sq.kring_mask;
      fail(static_cast<std::uint32_t>(ring_.sq.sqes[entry].user_data), failed_errno);
    }
    ring_.sq.sqe_tail = *ring_.sq.khead;
  }

  void take(std::uint32_t slot, int result) noexcept {
    Slot& work = slots_[slot];
    Request& request = *work.request;
    if (result == -EINTR || result == -EAGAIN) {
      go_on(slot);
    } else if (result < 0) {
      fail(slot, -result);
    } else if (request.op == Op::flush) {
      succeed(slot);
    } else if (result == 0) {
      fail(slot, 0);
    } else {
      work.done += static_cast<std::uint64_t>(result);
      if (work.done == request.length) {
        succeed(slot);
      } else {
        go_on(slot);
      }
    }
  }

  void go_on(std::uint32_t slot) noexcept {
    if (broken_errno_ != 0) {
      fail(slot, broken_errno_);
    } else {
      queue(slot);
      enter();
    }
  }

  void succeed(std::uint32_t slot) noexcept {
    complete(*slots_[slot].request, Errc::ok);
    free_.push_back(slot);
  }

  void fail(std::uint32_t slot, int failed_errno) noexcept {
    const Slot& work = slots_[slot];
    complete(*work.request,
             failure_.note(*work.request, work.request->offset + work.done, failed_errno));
    free_.push_back(slot);
  }

  void complete(Request& request, Errc status) noexcept {
    request.status = status;
    completed_.push(request);
  }

  const int fd_;
  const std::string write_hint_;
  io_uring ring_{};
  bool made_ = false;
  // What the kernel said when it refused to take entries at all.
  int broken_errno_ = 0;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  Fifo<Request> completed_;
  IoFailure failure_;
};

Error ring_error(std::uint32_t iodepth, int failed_errno) {
  Error error = system_error("io_uring for " + std::to_string(iodepth) + " requests", failed_errno);
  switch (failed_errno) {
    case EINVAL:
      error.code = Errc::invalid_argument;
      error.message += ": expected an iodepth of 1 to 32768";
      break;
    case ENOSYS:
      error.code = Errc::unsupported;
      error.message += ": this kernel has none; io=psync does without";
      break;
    case EPERM:
    case EACCES:
      error.code = Errc::unsupported;
      error.message +=
          ": not permitted here: set /proc/sys/kernel/io_uring_disabled to 0, allow io_uring_setup "
          "in the seccomp filter of the container, or use io=psync";
      break;
    case ENOMEM:
      error.message += ": raise the limit on locked memory (ulimit -l)";
      break;
    default:
      break;
  }
  return error;
}

}  // namespace

Result<std::unique_ptr<Port>> make_uring_port(const DeviceAccess& access, std::uint32_t iodepth) {
  constexpr std::uint32_t kMostEntries = 32768;
  if (iodepth == 0 || iodepth > kMostEntries) {
    return ring_error(iodepth, EINVAL);
  }
  auto port = std::make_unique<UringPort>(access, iodepth);
  if (const int result = port->make_ring(); result != 0) {
    return ring_error(iodepth, -result);
  }
  return std::unique_ptr<Port>(std::move(port));
}

}  // namespace uzram::bench
