#include "bench/turns.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace uzram::bench {
namespace {

// How often each target came after each other one within a stretch.
using Neighbours = std::map<std::pair<std::size_t, std::size_t>, int>;

void expect_even(const Neighbours& neighbours, std::size_t targets) {
  ASSERT_EQ(neighbours.size(), targets * (targets - 1));
  const auto [least, most] =
      std::minmax_element(neighbours.begin(), neighbours.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
  EXPECT_EQ(least->second, most->second);
}

void count(const std::vector<std::size_t>& order, Neighbours& neighbours) {
  for (std::size_t i = 1; i < order.size(); ++i) {
    ++neighbours[{order[i - 1], order[i]}];
  }
}

TEST(Turns, each_target_goes_first_and_after_each_neighbour_equally_often) {
  Turns turns(3, 0);
  Neighbours neighbours;
  std::map<std::size_t, int> firsts;
  for (int stretch = 0; stretch < 6; ++stretch) {
    const auto order = turns.order();
    count(order, neighbours);
    ++firsts[order.front()];
    turns.next_stretch();
  }
  expect_even(neighbours, 3);
  EXPECT_EQ(firsts, (std::map<std::size_t, int>{{0, 2}, {1, 2}, {2, 2}}));
}

TEST(Turns, rounds_of_one_stretch_alternate_too) {
  Neighbours neighbours;
  for (std::uint32_t round = 0; round < 6; ++round) {
    count(Turns(3, round).order(), neighbours);
  }
  expect_even(neighbours, 3);
  EXPECT_NE(Turns(2, 0).order(), Turns(2, 1).order());
  EXPECT_EQ(Turns(1, 5).order(), std::vector<std::size_t>{0});
}

}  // namespace
}  // namespace uzram::bench
