#include "bench/psync_port.hpp"

#include <cerrno>

#include <unistd.h>

#include "uzram/fifo.hpp"

#include "bench/port_parts.hpp"
#include "os/block_device.hpp"

namespace uzram::bench {
namespace {

class PsyncPort final : public Port {
 public:
  explicit PsyncPort(const DeviceAccess& access)
      : fd_(access.fd), is_file_(access.is_file), write_hint_(access.write_hint) {}

  void submit(std::span<Request* const> batch) noexcept override {
    for (Request* const request : batch) {
      execute(*request);
      completed_.push(*request);
    }
  }

  Request* reap() noexcept override { return completed_.pop(); }

  [[nodiscard]] bool has_completed() noexcept override { return !completed_.empty(); }

  void execute(Request& request) noexcept override {
    switch (request.op) {
      case Op::read:
        transfer<::pread>(request);
        return;
      case Op::write:
        transfer<::pwrite>(request);
        return;
      case Op::discard:
        finish(request, os::discard_range(fd_, is_file_, request.offset, request.length));
        return;
      case Op::write_zeroes:
      case Op::allocate_zeroes:
        finish(request, os::zero_range(fd_, is_file_, request.offset, request.length));
        return;
      case Op::flush:
        finish(request, ::fdatasync(fd_) == 0 ? 0 : errno);
        return;
    }
  }

  [[nodiscard]] std::string failure() const override { return failure_.text(write_hint_); }

 private:
  template <auto kCall>
  void transfer(Request& request) noexcept {
    std::uint64_t done = 0;
    do {
      const ssize_t moved = kCall(fd_, request.buffer + done, request.length - done,
                                  static_cast<off_t>(request.offset + done));
      if (moved <= 0) {
        if (moved < 0 && errno == EINTR) {
          continue;
        }
        request.status = failure_.note(request, request.offset + done, moved < 0 ? errno : 0);
        return;
      }
      done += static_cast<std::uint64_t>(moved);
    } while (done < request.length);
    request.status = Errc::ok;
  }

  void finish(Request& request, int failed_errno) noexcept {
    request.status =
        failed_errno == 0 ? Errc::ok : failure_.note(request, request.offset, failed_errno);
  }

  const int fd_;
  const bool is_file_;
  const std::string write_hint_;
  Fifo<Request> completed_;
  IoFailure failure_;
};

}  // namespace

std::unique_ptr<Port> make_psync_port(const DeviceAccess& access) {
  return std::make_unique<PsyncPort>(access);
}

}  // namespace uzram::bench
