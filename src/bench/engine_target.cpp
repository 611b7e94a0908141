// The engine in process: a Device made for the run, used through its own calls (one request at a
// time) or a Queue (several).
#include <string>
#include <utility>

#include "uzram/device.hpp"

#include "bench/target.hpp"

namespace uzram::bench {
namespace {

class EnginePort final : public Port {
 public:
  explicit EnginePort(Device& device)
      : device_(device), queue_(device), async_(device.options().mode == Mode::async) {}

  void submit(std::span<Request* const> batch) noexcept override { queue_.submit(batch); }

  Request* reap() noexcept override {
    Request* request = next_ == nullptr ? queue_.wait() : std::exchange(next_, nullptr);
    return request == nullptr ? nullptr : remember(request);
  }

  bool has_completed() noexcept override {
    if (next_ == nullptr) {
      next_ = queue_.reap();
    }
    return next_ != nullptr;
  }

  void execute(Request& request) noexcept override {
    if (async_) {
      // A call of the device would be carried out by this thread; the mode is to hand it over.
      Request* const one = &request;
      queue_.submit({&one, 1});
      (void)queue_.wait();
    } else {
      call(request);
    }
    remember(&request);
  }

  std::string failure() const override {
    if (failed_ == Errc::ok) {
      return {};
    }
    std::string text = std::string(errno_name(failed_)) + ", " + std::string(describe(failed_));
    if (failed_ == Errc::no_space) {
      text += "; take a smaller --size or raise the limit";
    }
    return text;
  }

 private:
  void call(Request& request) noexcept {
    switch (request.op) {
      case Op::read:
        request.status = device_.read(request.offset, {request.buffer, request.length});
        break;
      case Op::write:
        request.status = device_.write(request.offset, {request.buffer, request.length});
        break;
      case Op::discard:
        request.status = device_.discard(request.offset, request.length);
        break;
      case Op::write_zeroes:
      case Op::allocate_zeroes:
        request.status =
            device_.write_zeroes(request.offset, request.length, request.op == Op::allocate_zeroes);
        break;
      case Op::flush:
        request.status = device_.flush();
        break;
    }
  }

  Request* remember(Request* request) noexcept {
    if (request->status != Errc::ok) [[unlikely]] {
      failed_ = request->status;
    }
    return request;
  }

  Device& device_;
  Queue queue_;
  const bool async_;
  // Taken from the queue to see whether there was one.
  Request* next_ = nullptr;
  Errc failed_ = Errc::ok;
};

class EngineTarget final : public Target {
 public:
  explicit EngineTarget(std::unique_ptr<Device> device) : device_(std::move(device)) {
    const DeviceOptions options = device_->options();
    info_ = {"function call", options.algorithm, options.level,
             std::string(mode_name(options.mode)), options.max_comp_streams};
  }

  const TargetInfo& info() const noexcept override { return info_; }

  Result<std::unique_ptr<Port>> open_port(std::uint32_t /*iodepth*/) override {
    return std::unique_ptr<Port>(std::make_unique<EnginePort>(*device_));
  }

  MemoryUse memory() const override {
    const DeviceStats stats = device_->stats();
    return {stats.orig_data_size, stats.compr_data_size, stats.mem_used_total,
            stats.mem_used_max + stats.table_bytes + stats.metadata_bytes};
  }

 private:
  std::unique_ptr<Device> device_;
  TargetInfo info_;
};

}  // namespace

Result<std::unique_ptr<Target>> open_engine_target(const TargetConfig& config,
                                                   const TargetNeeds& needs) {
  DeviceOptions options = config.device.options;
  options.name = "bench";
  options.disksize_bytes = needs.size_bytes;
  auto device = Device::create(options);
  if (!device) {
    return std::move(device).error();
  }
  return std::unique_ptr<Target>(std::make_unique<EngineTarget>(*std::move(device)));
}

}  // namespace uzram::bench
