#include "bench/order.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace uzram::bench {
namespace {

TEST(RandomOrder, visits_every_number_once) {
  for (const std::uint64_t n : {1U, 2U, 3U, 5U, 16U, 17U, 1000U, 4096U, 65537U}) {
    for (const std::uint64_t seed : {0U, 1U, 77U}) {
      const RandomOrder order(n, seed);
      std::vector<bool> seen(n);
      for (std::uint64_t i = 0; i < n; ++i) {
        const std::uint64_t at = order.at(i);
        ASSERT_LT(at, n);
        EXPECT_FALSE(seen[at]) << n << " " << i;
        seen[at] = true;
      }
    }
  }
}

TEST(RandomOrder, seldom_goes_to_a_neighbour) {
  constexpr std::uint64_t kNumbers = 100000;
  const RandomOrder order(kNumbers, 3);
  unsigned neighbours = 0;
  for (std::uint64_t i = 0; i + 1 < kNumbers; ++i) {
    const auto here = static_cast<std::int64_t>(order.at(i));
    const auto next = static_cast<std::int64_t>(order.at(i + 1));
    neighbours += next - here >= -8 && next - here <= 8 ? 1U : 0U;
  }
  // 16 of 100000 by chance, for each step.
  EXPECT_LT(neighbours, 200U);
}

TEST(RandomOrder, differs_by_seed) {
  const RandomOrder one(4096, 1);
  const RandomOrder other(4096, 2);
  unsigned same = 0;
  for (std::uint64_t i = 0; i < 4096; ++i) {
    same += one.at(i) == other.at(i) ? 1U : 0U;
  }
  EXPECT_LT(same, 64U);
}

}  // namespace
}  // namespace uzram::bench
