#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/entry_lock.hpp"
#include "engine/format.hpp"

namespace uzram::engine {
namespace {

TEST(Entry, keeps_place_size_and_priority_at_their_limits) {
  constexpr Place kLastPlace = (Place{1} << 36) - 1;
  for (const Place place : {Place{0}, Place{1}, kLastPlace}) {
    for (const std::uint32_t size : {1U, 16U, 4096U, 65536U}) {
      for (std::uint32_t priority = 0; priority < kPriorities; ++priority) {
        const Entry entry = Entry::stored(Kind::object, place, size, priority);
        EXPECT_EQ(entry.kind(), Kind::object);
        EXPECT_EQ(entry.place(), place);
        EXPECT_EQ(entry.size(), size);
        EXPECT_EQ(entry.priority(), priority);
        EXPECT_FALSE(entry.locked());
        EXPECT_TRUE(entry.owns_room());
      }
    }
  }
}

TEST(Entry, moving_changes_the_place_alone) {
  const Entry entry = Entry::stored(Kind::raw, 77, 4096, 2);
  const Entry moved = entry.moved_to((Place{1} << 36) - 1);
  EXPECT_EQ(moved.place(), (Place{1} << 36) - 1);
  EXPECT_EQ(moved.moved_to(77).bits(), entry.bits());
}

TEST(Entry, holds_small_negative_and_repeated_fill_words) {
  const std::uint64_t words[] = {0,
                                 1,
                                 ~std::uint64_t{0},
                                 (std::uint64_t{1} << 51) - 1,
                                 ~((std::uint64_t{1} << 51) - 1),
                                 0x5a5a5a5a5a5a5a5a,
                                 0xdeadbeefdeadbeef,
                                 0x8000000080000000};
  for (const std::uint64_t word : words) {
    ASSERT_TRUE(Entry::fill_fits(word)) << std::hex << word;
    const Entry entry = Entry::fill(word);
    EXPECT_EQ(entry.fill_word(), word);
    EXPECT_EQ(entry.kind(), Kind::fill);
    EXPECT_FALSE(entry.locked());
    EXPECT_FALSE(entry.owns_room());
    EXPECT_NE(entry.bits(), 0U);
  }
  for (const std::uint64_t word : {std::uint64_t{0x123456789abcdef0}, std::uint64_t{1} << 52}) {
    EXPECT_FALSE(Entry::fill_fits(word)) << std::hex << word;
  }
}

TEST(EntryLock, publish_replaces_the_content_and_returns_the_old) {
  AtomicEntry entry{0};
  SleeperCount sleepers{0};
  const Entry first = Entry::fill(5);
  EXPECT_EQ(publish(entry, first, sleepers).bits(), 0U);
  EXPECT_EQ(publish(entry, Entry(), sleepers).bits(), first.bits());
  EXPECT_EQ(entry.load(), 0U);
}

TEST(EntryLock, a_locked_entry_cannot_be_locked_again) {
  AtomicEntry entry{Entry::fill(5).bits()};
  SleeperCount sleepers{0};
  EXPECT_EQ(lock_entry(entry, sleepers).fill_word(), 5U);
  Entry content;
  EXPECT_FALSE(try_lock_entry(entry, content));
  unlock_entry(entry);
  EXPECT_TRUE(try_lock_entry(entry, content));
  EXPECT_EQ(content.fill_word(), 5U);
}

// Threads that lock for long enough that others sleep, and threads that publish without locking:
// every increment survives and nobody sleeps forever.
TEST(EntryLock, many_threads_lose_no_update_and_no_wake_up) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 3000;
  AtomicEntry entry{Entry::fill(0).bits()};
  SleeperCount sleepers{0};
  std::int64_t guarded = 0;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        const Entry content = lock_entry(entry, sleepers);
        ++guarded;
        if (i % 500 == t) {
          std::this_thread::yield();
        }
        if (i % 2 == 0) {
          publish_locked(entry, Entry::fill(content.fill_word() + 1));
        } else {
          unlock_entry(entry);
        }
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(guarded, kThreads * kRounds);
  EXPECT_EQ(Entry(entry.load()).fill_word(), static_cast<std::uint64_t>(kThreads * kRounds / 2));
  EXPECT_EQ(sleepers.load(), 0U);
}

}  // namespace
}  // namespace uzram::engine
