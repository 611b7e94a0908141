#include "bench/slow_port.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace uzram::bench {
namespace {

using Clock = std::chrono::steady_clock;

class SlowPort final : public Port {
 public:
  SlowPort(std::unique_ptr<Port> port, double percent)
      : port_(std::move(port)), percent_(percent) {}

  void submit(std::span<Request* const> batch) noexcept override {
    wait_if_due();
    in_flight_ += batch.size();
    port_->submit(batch);
  }

  // The first of a batch that comes back may have waited for all of it and the others for nothing,
  // so what they took is looked at when all are back or more are submitted.
  Request* reap() noexcept override {
    Request* const request = port_->reap();
    if (request != nullptr) {
      ++requests_;
      if (--in_flight_ == 0) {
        wait_if_due();
      }
    }
    return request;
  }

  bool has_completed() noexcept override { return port_->has_completed(); }

  void execute(Request& request) noexcept override {
    port_->execute(request);
    ++requests_;
    // One that may take as long as all before it, and is the last.
    burst_ = request.op == Op::flush ? 1 : burst_;
    wait_if_due();
  }

  void begin() noexcept override {
    port_->begin();
    // What the requests left over from the last stretch took is lost: less than kBurst.
    worked_since_ = Clock::now();
    requests_ = 0;
    burst_ = 1;
  }

  std::string failure() const override { return port_->failure(); }

 private:
  // Reading the clock at every request would itself slow short ones down.
  static constexpr unsigned kMostRequests = 32;
  static constexpr Clock::duration kBurst = std::chrono::microseconds(10);

  void wait_if_due() noexcept {
    if (requests_ < burst_) {
      return;
    }
    const auto worked = Clock::now() - worked_since_;
    const auto of_one = std::max(worked / requests_, Clock::duration(1));
    const unsigned most = std::min(2 * burst_, kMostRequests);
    burst_ = static_cast<unsigned>(std::clamp<std::int64_t>(kBurst / of_one, 1, most));
    const auto until =
        worked_since_ + std::chrono::duration_cast<Clock::duration>(worked * (1 + percent_ / 100));
    do {
      worked_since_ = Clock::now();
    } while (worked_since_ < until);
    requests_ = 0;
  }

  std::unique_ptr<Port> port_;
  const double percent_;
  Clock::time_point worked_since_ = Clock::now();
  // Completed since then.
  unsigned requests_ = 0;
  std::size_t in_flight_ = 0;
  // After so many requests it waits.
  unsigned burst_ = 1;
};

class SlowTarget final : public Target {
 public:
  SlowTarget(std::unique_ptr<Target> target, double percent)
      : target_(std::move(target)), percent_(percent) {}

  const TargetInfo& info() const noexcept override { return target_->info(); }

  Result<std::unique_ptr<Port>> open_port(std::uint32_t iodepth) override {
    auto port = target_->open_port(iodepth);
    if (!port) {
      return port;
    }
    return std::unique_ptr<Port>(std::make_unique<SlowPort>(*std::move(port), percent_));
  }

  MemoryUse memory() const override { return target_->memory(); }
  std::optional<pid_t> server() const override { return target_->server(); }

 private:
  std::unique_ptr<Target> target_;
  const double percent_;
};

}  // namespace

std::unique_ptr<Target> make_slow_target(std::unique_ptr<Target> target, double percent) {
  return std::make_unique<SlowTarget>(std::move(target), percent);
}

}  // namespace uzram::bench
