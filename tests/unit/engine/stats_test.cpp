#include "engine/stats.hpp"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace uzram::engine {
namespace {

TEST(Stats, what_many_threads_add_is_summed) {
  Stats stats;
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        ScopedTally tally(stats);
        tally.add(Counter::stored_pages, 3);
        tally.add(Counter::stored_pages, -1);
        tally.add(Counter::compr_bytes, 10);
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(stats.sum(Counter::stored_pages), 16000U);
  EXPECT_EQ(stats.sum(Counter::compr_bytes), 80000U);
  EXPECT_EQ(stats.sum(Counter::failed_reads), 0U);
}

TEST(Stats, a_sum_is_never_below_zero) {
  Stats stats;
  stats.add(Counter::same_pages, -5);
  EXPECT_EQ(stats.sum(Counter::same_pages), 0U);
}

}  // namespace
}  // namespace uzram::engine
