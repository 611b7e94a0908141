#include "engine/streams.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/cpu.hpp"

namespace uzram::engine {
namespace {

std::shared_ptr<StreamSet> get(std::uint32_t shared) {
  auto set = StreamSet::get("lz4", std::nullopt, 4096, shared);
  EXPECT_TRUE(set);
  return std::move(*set);
}

TEST(Streams, per_cpu_sets_have_spares) { EXPECT_GT(get(0)->size(), usable_cpus()); }

TEST(Streams, shared_sets_have_as_many_as_asked_for) { EXPECT_EQ(get(3)->size(), 3U); }

TEST(Streams, devices_with_the_same_codec_share_a_set) {
  const auto first = get(2);
  EXPECT_EQ(first, get(2));
  EXPECT_NE(first, get(3));
}

TEST(Streams, an_unknown_algorithm_is_refused_by_name) {
  const auto set = StreamSet::get("lz77", std::nullopt, 4096, 0);
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().code, Errc::invalid_argument);
  EXPECT_NE(set.error().message.find("lz77"), std::string::npos);
}

TEST(Streams, a_stream_is_never_given_out_twice) {
  const auto set = get(0);
  std::set<Stream*> taken;
  for (std::size_t i = 0; i < set->size(); ++i) {
    EXPECT_TRUE(taken.insert(&set->acquire()).second);
  }
  for (Stream* stream : taken) {
    set->release(*stream);
  }
}

TEST(Streams, a_thread_that_would_wait_for_a_spare_gets_a_new_one) {
  const auto set = get(0);
  const std::size_t before = set->size();
  std::vector<Stream*> taken;
  for (std::size_t i = 0; i < before + 1; ++i) {
    taken.push_back(&set->acquire());
  }
  EXPECT_GT(set->size(), before);
  for (Stream* stream : taken) {
    set->release(*stream);
  }
}

TEST(Streams, spares_are_added_up_to_a_limit_and_then_threads_wait) {
  const auto set = get(0);
  const std::size_t limit =
      usable_cpus() + std::max<std::size_t>(StreamSet::kMostSpares, usable_cpus() / 4);
  std::vector<Stream*> taken;
  for (std::size_t i = 0; i < limit; ++i) {
    taken.push_back(&set->acquire());
  }
  EXPECT_EQ(set->size(), limit);
  std::atomic<bool> got{false};
  std::thread last([&] {
    const StreamLease lease(*set);
    got.store(true);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(got.load());
  EXPECT_EQ(set->size(), limit);
  for (Stream* stream : taken) {
    set->release(*stream);
  }
  last.join();
  EXPECT_TRUE(got.load());
}

TEST(Streams, threads_wait_for_a_shared_stream_and_all_get_it) {
  const auto set = get(2);
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  std::atomic<int> done{0};
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        const StreamLease lease(*set);
        const int now = inside.fetch_add(1) + 1;
        int seen = most.load();
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        if (i % 100 == 0) {
          std::this_thread::yield();
        }
        inside.fetch_sub(1);
        done.fetch_add(1);
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(done.load(), 16000);
  EXPECT_LE(most.load(), 2);
}

}  // namespace
}  // namespace uzram::engine
