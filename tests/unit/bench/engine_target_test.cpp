#include <string>

#include <gtest/gtest.h>

#include "bench/target.hpp"
#include "port_exercise.hpp"

namespace uzram::bench::test {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kPage = 4096;

Result<std::unique_ptr<Target>> open(Mode mode) {
  TargetConfig config;
  config.device.options.mode = mode;
  config.device.options.workers = 2;
  TargetNeeds needs;
  needs.size_bytes = 8 * kMiB;
  return open_engine_target(config, needs);
}

TEST(EngineTarget, data_round_trips_in_every_mode_at_depths_1_and_8) {
  for (const Mode mode : {Mode::nowait, Mode::async, Mode::automatic}) {
    for (const std::uint32_t iodepth : {1U, 8U, 64U}) {
      auto target = open(mode);
      ASSERT_TRUE(target) << target.error().message;
      EXPECT_EQ((*target)->info().mode, mode_name(mode));
      EXPECT_FALSE((*target)->info().zeroed);
      check_round_trip(**target, iodepth);
    }
  }
}

TEST(EngineTarget, what_has_completed_is_reaped_once_and_without_waiting) {
  for (const Mode mode : {Mode::nowait, Mode::async, Mode::automatic}) {
    const auto target = open(mode);
    ASSERT_TRUE(target) << target.error().message;
    auto port = (*target)->open_port(2);
    ASSERT_TRUE(port) << port.error().message;
    EXPECT_FALSE((*port)->has_completed());
    EXPECT_EQ((*port)->reap(), nullptr);
    const AlignedBytes data = random_bytes(2 * kPage, 1);
    Request first = make_request(Op::write, 0, kPage, data.get());
    Request second = make_request(Op::write, kPage, kPage, data.get() + kPage);
    Request* const batch[] = {&first, &second};
    (*port)->submit(batch);
    while (!(*port)->has_completed()) {
    }
    // Asking again changes nothing.
    EXPECT_TRUE((*port)->has_completed());
    Request* const one = (*port)->reap();
    Request* const other = (*port)->reap();
    EXPECT_TRUE((one == &first && other == &second) || (one == &second && other == &first));
    EXPECT_EQ(first.status, Errc::ok);
    EXPECT_EQ(second.status, Errc::ok);
    EXPECT_FALSE((*port)->has_completed());
    EXPECT_EQ((*port)->reap(), nullptr);
  }
}

TEST(EngineTarget, a_port_may_go_while_requests_are_in_flight) {
  for (const Mode mode : {Mode::nowait, Mode::async, Mode::automatic}) {
    const auto target = open(mode);
    ASSERT_TRUE(target) << target.error().message;
    const AlignedBytes data = random_bytes(kMiB, 1);
    Request request = make_request(Op::write, 0, kMiB, data.get());
    auto port = (*target)->open_port(1);
    ASSERT_TRUE(port) << port.error().message;
    Request* const one = &request;
    (*port)->submit({&one, 1});
    port->reset();
    EXPECT_EQ(request.status, Errc::ok);
    EXPECT_EQ((*target)->memory().orig_data_size, kMiB);
  }
}

TEST(EngineTarget, a_request_beyond_the_end_fails_with_the_reason) {
  for (const Mode mode : {Mode::nowait, Mode::async, Mode::automatic}) {
    const auto target = open(mode);
    ASSERT_TRUE(target) << target.error().message;
    auto port = (*target)->open_port(1);
    ASSERT_TRUE(port) << port.error().message;
    const AlignedBytes data = random_bytes(kPage, 1);
    Request request = make_request(Op::write, 8 * kMiB, kPage, data.get());
    (*port)->execute(request);
    EXPECT_EQ(request.status, Errc::out_of_range);
    EXPECT_NE((*port)->failure(), "");
  }
}

}  // namespace
}  // namespace uzram::bench::test
