#include "bench/latency.hpp"

#include <memory>

#include <gtest/gtest.h>

namespace uzram::bench {
namespace {

TEST(LatencyHistogram, percentiles_are_exact_to_a_sixty_fourth) {
  const auto histogram = std::make_unique<LatencyHistogram>();
  for (std::uint64_t ns = 1; ns <= 100000; ++ns) {
    histogram->add(ns);
  }
  const Latency latency = histogram->summary();
  EXPECT_EQ(latency.min_ns, 1U);
  EXPECT_EQ(latency.max_ns, 100000U);
  EXPECT_DOUBLE_EQ(latency.avg_ns, 50000.5);
  EXPECT_NEAR(static_cast<double>(latency.p50_ns), 50000, 50000.0 / 64);
  EXPECT_NEAR(static_cast<double>(latency.p99_ns), 99000, 99000.0 / 64);
  EXPECT_NEAR(static_cast<double>(latency.p999_ns), 99900, 99900.0 / 64);
}

TEST(LatencyHistogram, small_values_are_exact) {
  const auto histogram = std::make_unique<LatencyHistogram>();
  for (std::uint64_t ns = 0; ns < 64; ++ns) {
    histogram->add(ns);
  }
  EXPECT_EQ(histogram->percentile(0.5), 31U);
  EXPECT_EQ(histogram->percentile(1), 63U);
  EXPECT_EQ(histogram->percentile(0), 0U);
}

TEST(LatencyHistogram, takes_any_duration) {
  const auto histogram = std::make_unique<LatencyHistogram>();
  for (unsigned bit = 0; bit < 64; ++bit) {
    histogram->add(std::uint64_t{1} << bit);
    histogram->add((std::uint64_t{1} << bit) - 1);
  }
  histogram->add(~std::uint64_t{0});
  EXPECT_EQ(histogram->percentile(1), ~std::uint64_t{0});
  EXPECT_EQ(histogram->count(), 129U);
}

TEST(LatencyHistogram, merging_is_adding_both) {
  const auto one = std::make_unique<LatencyHistogram>();
  const auto other = std::make_unique<LatencyHistogram>();
  one->add(100);
  other->add(10);
  other->add(100000);
  one->merge(*other);
  EXPECT_EQ(one->count(), 3U);
  EXPECT_EQ(one->summary().min_ns, 10U);
  EXPECT_EQ(one->summary().max_ns, 100000U);
  EXPECT_EQ(one->percentile(0.5), 100U);
}

}  // namespace
}  // namespace uzram::bench
