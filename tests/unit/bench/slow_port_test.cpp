#include "bench/slow_port.hpp"

#include <array>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace uzram::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kWork(1);

// Works for a millisecond a request, within submit() or execute(); completed ones come at once.
class BusyPort final : public Port {
 public:
  void submit(std::span<Request* const> batch) noexcept override {
    for (Request* const request : batch) {
      execute(*request);
      completed_.push_back(request);
    }
  }
  Request* reap() noexcept override {
    if (completed_.empty()) {
      return nullptr;
    }
    Request* const request = completed_.back();
    completed_.pop_back();
    return request;
  }
  bool has_completed() noexcept override { return !completed_.empty(); }
  void execute(Request& /*request*/) noexcept override { std::this_thread::sleep_for(kWork); }
  std::string failure() const override { return {}; }

 private:
  std::vector<Request*> completed_;
};

class BusyTarget final : public Target {
 public:
  const TargetInfo& info() const noexcept override { return info_; }
  Result<std::unique_ptr<Port>> open_port(std::uint32_t /*iodepth*/) override {
    return std::unique_ptr<Port>(std::make_unique<BusyPort>());
  }
  MemoryUse memory() const override { return {}; }

 private:
  TargetInfo info_;
};

constexpr int kStretches = 3;

// All of these can only take longer than asked for.

TEST(SlowPort, batches_are_slowed_down_though_their_requests_come_back_at_once) {
  auto slow = make_slow_target(std::make_unique<BusyTarget>(), 100);
  auto port = slow->open_port(2);
  ASSERT_TRUE(port.has_value());
  constexpr int kBatches = 4;
  std::array<Request, 2> requests;
  const std::array<Request*, 2> batch = {&requests[0], &requests[1]};
  const auto start = Clock::now();
  for (int stretch = 0; stretch < kStretches; ++stretch) {
    (*port)->begin();
    for (int i = 0; i < kBatches; ++i) {
      (*port)->submit(batch);
      do {
        EXPECT_NE((*port)->reap(), nullptr);
      } while ((*port)->has_completed());
    }
  }
  EXPECT_EQ((*port)->reap(), nullptr);
  EXPECT_GE(Clock::now() - start, kStretches * kBatches * 2 * 2 * kWork);
}

TEST(SlowPort, requests_in_flight_all_the_time_are_slowed_down) {
  auto slow = make_slow_target(std::make_unique<BusyTarget>(), 100);
  auto port = slow->open_port(2);
  ASSERT_TRUE(port.has_value());
  constexpr int kRequests = 8;
  std::array<Request, kRequests> requests;
  const auto submit = [&port](Request& request) {
    Request* const one = &request;
    (*port)->submit({&one, 1});
  };
  const auto start = Clock::now();
  (*port)->begin();
  submit(requests[0]);
  for (int i = 1; i < kRequests; ++i) {
    submit(requests[i]);
    EXPECT_NE((*port)->reap(), nullptr);
  }
  EXPECT_NE((*port)->reap(), nullptr);
  EXPECT_GE(Clock::now() - start, kRequests * 2 * kWork);
}

TEST(SlowPort, few_long_requests_are_slowed_down_in_every_stretch) {
  auto slow = make_slow_target(std::make_unique<BusyTarget>(), 100);
  auto port = slow->open_port(1);
  ASSERT_TRUE(port.has_value());
  const auto start = Clock::now();
  for (int stretch = 0; stretch < kStretches; ++stretch) {
    Request request;
    (*port)->begin();
    (*port)->execute(request);
    (*port)->execute(request);
  }
  EXPECT_GE(Clock::now() - start, kStretches * 2 * 2 * kWork);
}

}  // namespace
}  // namespace uzram::bench
