#include "engine/pool.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/pool_cache.hpp"
#include "support/scarce_room.hpp"

namespace uzram::engine {
namespace {

constexpr std::uint32_t kPage = 4096;
constexpr std::uint32_t kPageUnits = kPage / kPlaceUnit;

struct Object {
  Place place = 0;
  std::uint32_t units = 0;
};

class PoolTest : public ::testing::Test {
 protected:
  void make(std::uint64_t limit, std::uint32_t page = kPage) {
    auto made = Pool::create("test", page, limit, room_);
    ASSERT_TRUE(made) << made.error().message;
    pool_ = std::move(*made);
    cache_ = std::make_unique<PoolCache>(*pool_);
  }
  void TearDown() override {
    cache_.reset();
    pool_.reset();
  }

  Errc store(std::uint32_t units, std::vector<Object>& objects) {
    Place place = 0;
    const Errc status =
        units == pool_->page_units() ? cache_->allocate_raw(place) : cache_->allocate(units, place);
    if (status == Errc::ok) {
      objects.push_back({place, units});
    }
    return status;
  }
  void free_all(std::vector<Object>& objects) {
    for (const Object& object : objects) {
      cache_->free(object.place, object.units);
    }
    objects.clear();
  }
  // No two objects share a unit, none leaves its span.
  static void expect_disjoint(std::vector<Object> objects) {
    std::sort(objects.begin(), objects.end(),
              [](const Object& a, const Object& b) { return a.place < b.place; });
    for (std::size_t i = 0; i < objects.size(); ++i) {
      const Object& object = objects[i];
      ASSERT_EQ(object.place >> kSpanShift, (object.place + object.units - 1) >> kSpanShift);
      if (i + 1 < objects.size()) {
        ASSERT_LE(object.place + object.units, objects[i + 1].place);
      }
    }
  }

  Room room_{nullptr};
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<PoolCache> cache_;
};

TEST_F(PoolTest, objects_of_all_sizes_lie_apart_and_use_little_more_than_they_need) {
  make(0);
  std::vector<Object> objects;
  std::uint64_t units = 0;
  std::mt19937 random(1);
  for (int i = 0; i < 50000; ++i) {
    const auto size = static_cast<std::uint32_t>(random() % 240 + 1);
    ASSERT_EQ(store(size, objects), Errc::ok);
    units += size;
  }
  expect_disjoint(objects);
  EXPECT_LE(pool_->used_bytes(), units * kPlaceUnit * 102 / 100 + (1 << 20));
  cache_->drain();
  pool_->check_invariants(units);
  free_all(objects);
  cache_->drain();
  pool_->check_invariants(0);
}

TEST_F(PoolTest, memory_of_freed_objects_goes_back_to_the_system) {
  make(0);
  std::vector<Object> objects;
  for (int i = 0; i < 20000; ++i) {
    ASSERT_EQ(store(100, objects), Errc::ok);
  }
  ASSERT_GT(pool_->used_bytes(), std::uint64_t{30} << 20);
  free_all(objects);
  cache_->drain();
  EXPECT_LE(pool_->used_bytes(), std::uint64_t{2} << 20);
  EXPECT_GE(pool_->used_max_bytes(), std::uint64_t{30} << 20);
  pool_->reset_used_max();
  EXPECT_EQ(pool_->used_max_bytes(), pool_->used_bytes());
}

TEST_F(PoolTest, large_pools_grow_and_shrink_by_groups_of_spans) {
  make(0);
  std::vector<Object> objects;
  std::mt19937 random(3);
  std::uint64_t units = 0;
  const auto grow_to = [&](std::uint64_t bytes) {
    while (pool_->used_bytes() < bytes) {
      const auto size = static_cast<std::uint32_t>(random() % 240 + 1);
      ASSERT_EQ(store(size, objects), Errc::ok);
      units += size;
    }
  };
  grow_to(std::uint64_t{100} << 20);
  const std::uint64_t used = pool_->used_bytes();
  grow_to(used + 1);
  EXPECT_EQ(pool_->used_bytes() - used, std::uint64_t{2} << 20);
  // Every other one in order, then the rest at random: spans become free one by one.
  std::vector<Object> rest;
  std::vector<Object> first;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    (i / 4096 % 2 == 0 ? first : rest).push_back(objects[i]);
  }
  for (const Object& object : first) {
    units -= object.units;
  }
  free_all(first);
  cache_->drain();
  pool_->check_invariants(units);
  EXPECT_LE(pool_->used_bytes(), units * kPlaceUnit + (std::uint64_t{8} << 20));
  // Absent groups are taken again.
  objects = rest;
  grow_to(std::uint64_t{120} << 20);
  cache_->drain();
  pool_->check_invariants(units);
  std::shuffle(objects.begin(), objects.end(), random);
  free_all(objects);
  cache_->drain();
  pool_->check_invariants(0);
  EXPECT_LE(pool_->used_bytes(), std::uint64_t{3} << 20);
  pool_->trim();
  pool_->check_invariants(0);
  EXPECT_LE(pool_->used_bytes(), std::uint64_t{256} << 10);
}

TEST_F(PoolTest, raw_pages_are_aligned_to_the_page) {
  make(0);
  std::vector<Object> objects;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(store(i % 3 == 0 ? 17 : kPageUnits, objects), Errc::ok);
    if (i % 3 != 0) {
      EXPECT_EQ(objects.back().place % kPageUnits, 0U);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pool_->address(objects.back().place)) % kPage, 0U);
    }
  }
  expect_disjoint(objects);
}

TEST_F(PoolTest, pages_of_16_kib_and_their_objects_fit) {
  make(0, 16384);
  std::vector<Object> objects;
  std::uint64_t units = 0;
  std::mt19937 random(2);
  for (int i = 0; i < 2000; ++i) {
    const std::uint32_t size = i % 5 == 0 ? 1024 : static_cast<std::uint32_t>(random() % 960 + 1);
    ASSERT_EQ(store(size, objects), Errc::ok);
    units += size;
  }
  expect_disjoint(objects);
  cache_->drain();
  pool_->check_invariants(units);
}

TEST_F(PoolTest, the_limit_holds_and_freed_room_can_be_used_again) {
  constexpr std::uint64_t kLimit = std::uint64_t{4} << 20;
  make(kLimit);
  std::vector<Object> objects;
  while (store(60, objects) == Errc::ok) {
    ASSERT_LE(pool_->used_bytes(), kLimit);
  }
  EXPECT_GE(objects.size() * 60 * kPlaceUnit, kLimit * 98 / 100);
  Place place = 0;
  EXPECT_EQ(cache_->allocate_slot(place), Errc::ok) << "slots are not held to the limit";
  for (int i = 0; i < 200; ++i) {
    cache_->free(objects.back().place, objects.back().units);
    objects.pop_back();
  }
  for (int i = 0; i < 190; ++i) {
    ASSERT_EQ(store(60, objects), Errc::ok) << i;
  }
  expect_disjoint(objects);
}

TEST_F(PoolTest, raising_the_limit_lets_it_grow_again) {
  make(std::uint64_t{1} << 20);
  std::vector<Object> objects;
  while (store(100, objects) == Errc::ok) {
  }
  pool_->set_limit(std::uint64_t{2} << 20);
  EXPECT_EQ(store(100, objects), Errc::ok);
}

TEST(Pool, a_machine_without_memory_gives_no_space_instead_of_a_signal) {
  test::ScarceRoom scarce(std::uint64_t{8} << 20);
  ASSERT_TRUE(scarce.opened());
  auto pool = Pool::create("test", kPage, 0, scarce.room());
  ASSERT_TRUE(pool);
  PoolCache cache(**pool);
  Place place = 0;
  ASSERT_EQ(cache.allocate(100, place), Errc::ok);
  scarce.set_available(0);
  Errc status = Errc::ok;
  for (int i = 0; i < 100000 && status == Errc::ok; ++i) {
    status = cache.allocate(100, place);
  }
  EXPECT_EQ(status, Errc::no_space);
  EXPECT_LE((*pool)->used_bytes(), std::uint64_t{16} << 20);
}

// Random sizes freed at random leave holes; they are given out again instead of growing forever.
TEST_F(PoolTest, holes_are_reused_under_random_replacement) {
  make(0);
  std::vector<Object> objects;
  std::mt19937 random(3);
  std::uint64_t units = 0;
  const auto size = [&] { return static_cast<std::uint32_t>(random() % 200 + 10); };
  for (int i = 0; i < 20000; ++i) {
    ASSERT_EQ(store(size(), objects), Errc::ok);
    units += objects.back().units;
  }
  for (int i = 0; i < 200000; ++i) {
    Object& victim = objects[random() % objects.size()];
    const Object old = victim;
    std::swap(victim, objects.back());
    objects.pop_back();
    cache_->free(old.place, old.units);
    ASSERT_EQ(store(size(), objects), Errc::ok);
    units += objects.back().units - std::uint64_t{old.units};
  }
  expect_disjoint(objects);
  EXPECT_LE(pool_->used_bytes(), units * kPlaceUnit * 120 / 100);
  cache_->drain();
  pool_->check_invariants(units);
}

TEST_F(PoolTest, victims_are_the_emptiest_spans_and_nothing_is_given_out_from_them) {
  make(0);
  std::vector<Object> objects;
  for (int i = 0; i < 4096; ++i) {
    ASSERT_EQ(store(64, objects), Errc::ok);
  }
  std::vector<Object> kept;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (i < 2048 && i % 4 != 0) {
      cache_->free(objects[i].place, objects[i].units);
    } else {
      kept.push_back(objects[i]);
    }
  }
  cache_->drain();
  const std::uint32_t victims = pool_->choose_victims(1000);
  // Half of the 32 spans or so that have holes.
  EXPECT_GE(victims, 14U);
  EXPECT_LE(victims, 18U);
  std::vector<Object> fresh;
  for (int i = 0; i < 2000; ++i) {
    ASSERT_EQ(store(20, fresh), Errc::ok);
    ASSERT_FALSE(pool_->is_victim(fresh.back().place));
  }
  pool_->release_victims();
  for (const Object& object : kept) {
    EXPECT_FALSE(pool_->is_victim(object.place));
  }
  kept.insert(kept.end(), fresh.begin(), fresh.end());
  expect_disjoint(kept);
}

TEST_F(PoolTest, many_threads_store_and_free_without_sharing_room) {
  make(0);
  PoolCaches caches(*pool_, 3);
  constexpr int kThreads = 6;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  std::vector<std::vector<Object>> objects(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      auto& own = objects[static_cast<std::size_t>(t)];
      for (int i = 0; i < 20000; ++i) {
        const auto units = static_cast<std::uint32_t>(random() % 200 + 1);
        Place place = 0;
        ASSERT_EQ(PoolCaches::Lease(caches)->allocate(units, place), Errc::ok);
        std::memset(pool_->address(place), t, std::size_t{units} * kPlaceUnit);
        own.push_back({place, units});
        if (i % 3 == 2) {
          const std::size_t pick = random() % own.size();
          const std::byte* data = pool_->address(own[pick].place);
          ASSERT_EQ(data[0], static_cast<std::byte>(t));
          ASSERT_EQ(data[own[pick].units * kPlaceUnit - 1], static_cast<std::byte>(t));
          PoolCaches::Lease(caches)->free(own[pick].place, own[pick].units);
          own[pick] = own.back();
          own.pop_back();
        }
        if (i % 5000 == 0) {
          caches.drain();
        }
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  std::vector<Object> all;
  std::uint64_t units = 0;
  for (const auto& own : objects) {
    for (const Object& object : own) {
      all.push_back(object);
      units += object.units;
    }
  }
  expect_disjoint(all);
  caches.drain();
  pool_->check_invariants(units);
}

}  // namespace
}  // namespace uzram::engine
