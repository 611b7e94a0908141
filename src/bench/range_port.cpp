#include "bench/range_port.hpp"

#include <utility>
#include <vector>

#include "os/range_queue.hpp"

namespace uzram::bench {
namespace {

class RangePort final : public Port {
 public:
  RangePort(std::unique_ptr<Port> io, std::unique_ptr<os::RangeQueue> ranges,
            std::string write_hint, std::uint32_t iodepth)
      : io_(std::move(io)), ranges_(std::move(ranges)), write_hint_(std::move(write_hint)) {
    slots_.resize(iodepth);
    for (Slot& slot : slots_) {
      free_.push_back(&slot);
    }
    others_.reserve(iodepth);
  }

  void submit(std::span<Request* const> batch) noexcept override {
    others_.clear();
    for (Request* const request : batch) {
      if (request->op == Op::discard || request->op == Op::write_zeroes) {
        start(*request);
      } else {
        others_.push_back(request);
      }
    }
    if (!others_.empty()) {
      io_->submit(others_);
    }
  }

  Request* reap() noexcept override {
    if (free_.size() == slots_.size() || io_->has_completed()) {
      return io_->reap();
    }
    const os::Range* const range = ranges_->reap();
    Slot& slot = slots_[range->user_data];
    Request& request = *slot.request;
    request.status = range->failed_errno == 0
                         ? Errc::ok
                         : failure_.note(request, request.offset, range->failed_errno);
    failed_last_ = range->failed_errno != 0;
    free_.push_back(&slot);
    return &request;
  }

  [[nodiscard]] bool has_completed() noexcept override {
    return io_->has_completed() || ranges_->has_completed();
  }

  void execute(Request& request) noexcept override {
    Request* const one = &request;
    submit({&one, 1});
    [[maybe_unused]] const Request* const done = reap();
  }

  [[nodiscard]] std::string failure() const override {
    return failed_last_ ? failure_.text(write_hint_) : io_->failure();
  }

  [[nodiscard]] std::string note() const override {
    switch (ranges_->way(os::RangeOp::discard)) {
      case os::RangeWay::uring:
        return {};
      case os::RangeWay::uring_worker:
        return "its queue takes no discard that may not wait, so they went with IOSQE_ASYNC";
      case os::RangeWay::threads:
        break;
    }
    return "this kernel has no discard through io_uring, so threads did it";
  }

 private:
  struct Slot {
    Request* request = nullptr;
    os::Range range;
  };

  void start(Request& request) noexcept {
    Slot& slot = *free_.back();
    free_.pop_back();
    slot.request = &request;
    slot.range.op = request.op == Op::discard ? os::RangeOp::discard : os::RangeOp::write_zeroes;
    slot.range.offset = request.offset;
    slot.range.length = request.length;
    slot.range.user_data = static_cast<std::uint64_t>(&slot - slots_.data());
    ranges_->submit(slot.range);
  }

  const std::unique_ptr<Port> io_;
  const std::unique_ptr<os::RangeQueue> ranges_;
  const std::string write_hint_;
  std::vector<Slot> slots_;
  std::vector<Slot*> free_;
  std::vector<Request*> others_;
  IoFailure failure_;
  bool failed_last_ = false;
};

}  // namespace

Result<std::unique_ptr<Port>> make_range_port(const DeviceAccess& access, std::unique_ptr<Port> io,
                                              std::uint32_t iodepth) {
  auto ranges = os::RangeQueue::create(access.fd, {.depth = iodepth});
  if (!ranges) {
    return std::move(ranges).error();
  }
  return std::unique_ptr<Port>(
      std::make_unique<RangePort>(std::move(io), *std::move(ranges), access.write_hint, iodepth));
}

}  // namespace uzram::bench
