#include "engine/page_table.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/scarce_room.hpp"

namespace uzram::engine {
namespace {

Header header_for(std::uint64_t disksize) {
  Header header = {};
  header.page_size_bytes = 4096;
  header.disksize_bytes = disksize;
  return header;
}

class PageTableTest : public ::testing::Test {
 protected:
  void make(std::uint64_t disksize) {
    auto made = PageTable::create("test", header_for(disksize), room_);
    ASSERT_TRUE(made) << made.error().message;
    table_ = std::move(*made);
  }

  Room room_{nullptr};
  std::unique_ptr<PageTable> table_;
};

TEST_F(PageTableTest, an_empty_16_tib_table_holds_a_mebibyte_of_summary) {
  make(std::uint64_t{16} << 40);
  EXPECT_EQ(table_->resident_bytes(), kHeaderBytes + (std::uint64_t{1} << 20));
  EXPECT_EQ(table_->next_holding(0, table_->stretches()), table_->stretches());
}

TEST_F(PageTableTest, prepare_takes_one_page_for_a_stretch_and_release_gives_it_back) {
  make(std::uint64_t{1} << 30);
  const std::uint64_t empty = table_->resident_bytes();
  const std::uint64_t stretch = 7;
  ASSERT_EQ(table_->prepare(stretch), Errc::ok);
  EXPECT_TRUE(table_->holds_anything(stretch));
  EXPECT_EQ(table_->next_holding(0, table_->stretches()), stretch);
  EXPECT_EQ(table_->resident_bytes(), empty + kTablePageBytes);
  EXPECT_TRUE(table_->try_release(stretch));
  EXPECT_FALSE(table_->holds_anything(stretch));
  EXPECT_EQ(table_->resident_bytes(), empty);
}

TEST_F(PageTableTest, a_stretch_with_an_entry_or_a_lock_is_not_released) {
  make(std::uint64_t{1} << 30);
  ASSERT_EQ(table_->prepare(3), Errc::ok);
  AtomicEntry& entry = table_->entry((3 << kStretchShift) + 100);
  publish(entry, Entry::fill(1), table_->sleepers());
  EXPECT_FALSE(table_->try_release(3));
  publish(entry, Entry(), table_->sleepers());
  lock_entry(entry, table_->sleepers());
  EXPECT_FALSE(table_->try_release(3));
  unlock_entry(entry);
  EXPECT_TRUE(table_->try_release(3));
}

TEST(PageTable, prepare_without_memory_reports_no_space_and_leaves_the_stretch_empty) {
  test::ScarceRoom scarce(kHeaderBytes + kTablePageBytes);
  ASSERT_TRUE(scarce.opened());
  auto table = PageTable::create("test", header_for(std::uint64_t{1} << 30), scarce.room());
  ASSERT_TRUE(table) << table.error().message;
  scarce.set_available(0);
  EXPECT_EQ((*table)->prepare(5), Errc::no_space);
  EXPECT_FALSE((*table)->holds_anything(5));
  scarce.set_available(1 << 20);
  EXPECT_EQ((*table)->prepare(5), Errc::ok);
}

// Publishers, clearers and releases in one stretch: an entry that was published is never lost with
// its table page, which the summary shows.
TEST_F(PageTableTest, releasing_while_others_publish_loses_no_entry) {
  make(std::uint64_t{1} << 24);
  constexpr int kThreads = 4;
  constexpr int kRounds = 4000;
  std::atomic<bool> stop{false};
  std::atomic<int> lost{0};
  std::thread releaser([&] {
    while (!stop.load()) {
      table_->try_release(1);
    }
  });
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const PageIndex page = (PageIndex{1} << kStretchShift) + static_cast<PageIndex>(t) * 64;
      AtomicEntry& entry = table_->entry(page);
      for (std::uint64_t i = 1; i <= kRounds; ++i) {
        ASSERT_EQ(table_->prepare(1), Errc::ok);
        publish(entry, Entry::fill(i), table_->sleepers());
        table_->confirm(1);
        const Entry seen = lock_entry(entry, table_->sleepers());
        if (!table_->holds_anything(1) || seen.kind() != Kind::fill || seen.fill_word() != i) {
          lost.fetch_add(1);
        }
        unlock_entry(entry);
        publish(entry, Entry(), table_->sleepers());
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  stop.store(true);
  releaser.join();
  EXPECT_EQ(lost.load(), 0);
  EXPECT_EQ(table_->sleepers().load(), 0U);
}

}  // namespace
}  // namespace uzram::engine
