// The reserve of a pool: pool_reserve.cpp, reserve_option.cpp, and who uses and fills it.
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "engine/device_impl.hpp"
#include "engine/pool_cache.hpp"
#include "engine/upkeep.hpp"
#include "support/eventually.hpp"
#include "support/scarce_room.hpp"

namespace uzram::engine {
namespace {

using namespace std::chrono_literals;
using test::eventually;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint32_t kPage = 4096;
constexpr std::uint32_t kPagesOfSpan = kSpanBytes / kPage;
using Bytes = std::vector<std::byte>;

// The whole wholly free part of a pool.
std::uint32_t reserve_of(const Pool& pool) {
  return static_cast<std::uint32_t>(pool.used_bytes() / kSpanBytes) - pool.occupied_spans();
}

// A page that does not compress, and takes as much room as it is long.
Bytes raw_page(std::uint64_t seed) {
  Bytes page(kPage);
  Random(seed).fill(page);
  return page;
}

// A device without its public face, on a machine whose memory the test sets.
class ReserveTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kDisk = 256 * kMiB;

  void make(std::uint32_t kept_spans, std::uint64_t limit = 0) {
    Header header = {};
    header.page_size_bytes = kPage;
    header.disksize_bytes = kDisk;
    auto table = PageTable::create("test", header, scarce_.room(), true);
    ASSERT_TRUE(table) << table.error().message;
    auto pool = Pool::create("test", kPage, limit, scarce_.room(), kept_spans);
    ASSERT_TRUE(pool) << pool.error().message;
    auto streams = StreamSet::get("lz4", std::nullopt, kPage, 0);
    ASSERT_TRUE(streams) << streams.error().message;
    store_ = std::make_unique<PageStore>(std::move(*table), std::move(*pool), std::move(*streams),
                                         kPage, "test");
  }
  void TearDown() override {
    upkeep_.reset();
    store_.reset();
  }

  // From now on the machine has nothing, not even what the guard has allowed in advance.
  void take_all_memory() {
    scarce_.set_available(0);
    while (scarce_.room().ask(1024)) {
    }
  }
  Errc write(PageIndex page, const Bytes& content) {
    Tally tally;
    return store_->write_page(page, content, tally);
  }
  void drop(PageIndex first, PageIndex end) {
    Tally tally;
    store_->drop(first, end, tally);
  }
  // Pages as far apart as the disk allows, so that the table is used everywhere.
  static PageIndex spread(PageIndex number) {
    return number * 64 % (kDisk / kPage) + number / 1024;
  }
  // Writes raw pages until that fails; returns how many there was room for.
  PageIndex fill(PageIndex most) {
    for (PageIndex number = 0; number < most; ++number) {
      if (const Errc status = write(spread(number), raw_page(number)); status != Errc::ok) {
        EXPECT_EQ(status, Errc::no_space);
        return number;
      }
    }
    return most;
  }
  void expect_raw_pages(PageIndex count) {
    for (PageIndex number = 0; number < count; ++number) {
      Bytes page(kPage);
      Tally tally;
      ASSERT_EQ(store_->read_part(spread(number), 0, page, tally), Errc::ok);
      ASSERT_EQ(page, raw_page(number)) << number;
    }
  }
  Pool& pool() { return store_->pool(); }

  test::ScarceRoom scarce_{1024 * kMiB};
  std::unique_ptr<PageStore> store_;
  std::unique_ptr<Upkeep> upkeep_;
};

TEST_F(ReserveTest, is_taken_when_the_pool_is_made) {
  // The last ones begin in large pages.
  for (const std::uint32_t kept : {1U, 100U, 512U, 1100U}) {
    make(kept);
    EXPECT_EQ(pool().used_bytes(), std::uint64_t{kept} * kSpanBytes);
    EXPECT_EQ(pool().used_max_bytes(), pool().used_bytes());
    EXPECT_EQ(reserve_of(pool()), kept);
    pool().check_invariants(0);
  }
}

TEST_F(ReserveTest, that_the_system_cannot_give_makes_no_pool) {
  scarce_.set_available(8 * kMiB);
  const auto made = Pool::create("disk", kPage, 0, scarce_.room(), 160);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Errc::no_space);
  for (const char* const part : {"disk", "reserve of 10M", "lower the reserve"}) {
    EXPECT_NE(made.error().message.find(part), std::string::npos) << made.error().message;
  }
  EXPECT_TRUE(Pool::create("disk", kPage, 0, scarce_.room(), 64));
}

TEST_F(ReserveTest, a_table_that_the_system_cannot_give_whole_makes_none) {
  scarce_.set_available(4 * kMiB);
  Header header = {};
  header.page_size_bytes = kPage;
  header.disksize_bytes = 4096 * kMiB;
  const auto made = PageTable::create("disk", header, scarce_.room(), true);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Errc::no_space);
  EXPECT_NE(made.error().message.find("its table, which a reserve needs whole"), std::string::npos)
      << made.error().message;
}

TEST_F(ReserveTest, a_burst_of_writes_as_large_needs_no_memory_from_the_system) {
  for (const std::uint32_t kept : {16U, 600U}) {
    scarce_.set_available(1024 * kMiB);
    make(kept);
    take_all_memory();
    const PageIndex pages = PageIndex{kept} * kPagesOfSpan;
    EXPECT_EQ(fill(pages + 1), pages);
    EXPECT_EQ(pool().used_bytes(), std::uint64_t{kept} * kSpanBytes);
    EXPECT_EQ(reserve_of(pool()), 0U);
    expect_raw_pages(pages);
  }
}

TEST_F(ReserveTest, pages_that_compress_go_further) {
  make(32);
  take_all_memory();
  Bytes page(kPage);
  PageIndex written = 0;
  for (Errc status = Errc::ok; status == Errc::ok; ++written) {
    Random(written).fill(std::span(page).first(1000));
    status = write(written, page);
  }
  EXPECT_GT(written * 1040, 31U * kSpanBytes);
}

TEST_F(ReserveTest, stays_when_everything_is_discarded) {
  make(64);
  const std::uint64_t table = store_->table().resident_bytes();
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(fill(300 * kPagesOfSpan), 300 * kPagesOfSpan);
    drop(0, kDisk / kPage);
    store_->caches().drain();
    store_->compact();
    EXPECT_GE(reserve_of(pool()), 64U);
    // As ever, some go back together with those that come later.
    EXPECT_LE(pool().used_bytes(), (64U + 4 + 16) * kSpanBytes);
    EXPECT_EQ(store_->table().resident_bytes(), table);
    EXPECT_EQ(store_->table().next_holding(0, store_->table().stretches()),
              store_->table().stretches());
    pool().check_invariants(0);
  }
  take_all_memory();
  EXPECT_GE(fill(100 * kPagesOfSpan), 64U * kPagesOfSpan);
}

TEST_F(ReserveTest, in_large_pages_stays_and_goes_in_whole_groups) {
  make(1024);
  ASSERT_EQ(fill(2048 * kPagesOfSpan), 2048 * kPagesOfSpan);
  EXPECT_GE(pool().used_bytes(), 2048U * kSpanBytes);
  drop(0, kDisk / kPage);
  store_->caches().drain();
  store_->compact();
  EXPECT_GE(reserve_of(pool()), 1024U);
  EXPECT_LE(pool().used_bytes(), (1024U + 2 * kGroupSpans) * kSpanBytes);
  pool().check_invariants(0);
}

TEST_F(ReserveTest, is_filled_up_in_the_background) {
  make(128);
  upkeep_ = std::make_unique<Upkeep>(*store_);
  for (PageIndex written = 0; written < 1000 * kPagesOfSpan; written += 64 * kPagesOfSpan) {
    for (PageIndex number = written; number < written + 64 * kPagesOfSpan; ++number) {
      ASSERT_EQ(write(spread(number), raw_page(number)), Errc::ok);
    }
    ASSERT_TRUE(eventually([&] { return reserve_of(pool()) >= 128; })) << reserve_of(pool());
  }
}

TEST_F(ReserveTest, is_filled_up_without_further_writes_once_the_system_has_memory_again) {
  make(64);
  take_all_memory();
  upkeep_ = std::make_unique<Upkeep>(*store_);
  ASSERT_EQ(fill(64 * kPagesOfSpan), 64 * kPagesOfSpan);
  EXPECT_EQ(reserve_of(pool()), 0U);
  scarce_.set_available(64 * kMiB);
  EXPECT_TRUE(eventually([&] { return reserve_of(pool()) >= 64; })) << reserve_of(pool());
}

TEST_F(ReserveTest, is_filled_up_beyond_what_the_system_spares_where_only_groups_bound) {
  make(64);
  take_all_memory();
  ASSERT_EQ(fill(40 * kPagesOfSpan), 40 * kPagesOfSpan);
  EXPECT_FALSE(pool().grow_ahead());
  EXPECT_EQ(reserve_of(pool()), 24U);
  EXPECT_TRUE(pool().grow_ahead(Room::Scope::groups));
  EXPECT_GE(reserve_of(pool()), 64U);
  // That was no credit for writers.
  EXPECT_FALSE(scarce_.room().ask(1));
}

TEST_F(ReserveTest, counts_under_the_limit_and_can_be_used_to_its_end) {
  constexpr std::uint64_t kLimit = 8 * kMiB;
  make(64, kLimit);
  upkeep_ = std::make_unique<Upkeep>(*store_);
  EXPECT_EQ(fill(3000), kLimit / kPage);
  EXPECT_LE(pool().used_max_bytes(), kLimit);
  drop(0, kDisk / kPage);
  store_->caches().drain();
  EXPECT_TRUE(eventually([&] { return reserve_of(pool()) >= 64; }));
  EXPECT_LE(pool().used_bytes(), kLimit);
}

TEST_F(ReserveTest, follows_a_limit_that_is_set_later) {
  make(64);
  upkeep_ = std::make_unique<Upkeep>(*store_);
  ASSERT_TRUE(eventually([&] { return reserve_of(pool()) >= 72; }));
  pool().set_limit(kMiB);
  // 16 to be kept, 8 to be ready besides, and 4 that may just be coming in.
  EXPECT_LE(reserve_of(pool()), 16U + 8 + 4);
  pool().set_limit(0);
  EXPECT_TRUE(eventually([&] { return reserve_of(pool()) >= 64; }));
}

TEST_F(ReserveTest, is_left_alone_by_compaction) {
  make(64);
  take_all_memory();
  ASSERT_EQ(fill(32 * kPagesOfSpan), 32 * kPagesOfSpan);
  for (PageIndex number = 0; number < 32 * kPagesOfSpan; ++number) {
    if (number % 8 < 3) {
      drop(spread(number), spread(number) + 1);
    }
  }
  store_->caches().drain();
  ASSERT_EQ(reserve_of(pool()), 32U);
  ASSERT_NE(pool().choose_victims(8), 0U);
  {
    PoolCache cache(pool());
    Place place = 0;
    cache.set_compacting(true);
    EXPECT_EQ(cache.allocate_raw(place), Errc::no_space);
    EXPECT_EQ(cache.allocate(100, place), Errc::no_space);
    // Holes will do.
    cache.set_compacting(false);
    ASSERT_EQ(cache.allocate_raw(place), Errc::ok);
    EXPECT_EQ(reserve_of(pool()), 32U);
    cache.free(place, kPage / kPlaceUnit);
    cache.drain();
  }
  pool().release_victims();
  // What it does with holes alone still empties spans.
  store_->compact();
  EXPECT_GE(reserve_of(pool()), 40U);
}

TEST_F(ReserveTest, that_is_used_up_leaves_compaction_its_way) {
  make(64);
  take_all_memory();
  const PageIndex pages = 64 * kPagesOfSpan;
  ASSERT_EQ(fill(pages + 1), pages);
  for (PageIndex number = 0; number < pages; number += 2) {
    drop(spread(number), spread(number) + 1);
  }
  // These fit no hole of a page; spans have to be emptied for them.
  Bytes page(kPage);
  PageIndex more = 0;
  for (; more < pages; ++more) {
    Random(more).fill(std::span(page).first(1500));
    if (write(spread(pages + more), page) != Errc::ok) {
      break;
    }
  }
  EXPECT_GT(more, pages / 2);
}

DeviceOptions options_with(std::uint64_t reserve) {
  DeviceOptions options;
  options.disksize_bytes = 64 * kMiB;
  options.reserve_bytes = reserve;
  return options;
}

TEST(ReserveOption, is_rounded_up_to_whole_spans_and_counts_as_used) {
  const auto device = Device::create(options_with(8 * kMiB + 1));
  ASSERT_TRUE(device) << device.error().message;
  const DeviceStats stats = (*device)->stats();
  EXPECT_GE(stats.mem_used_total, 8 * kMiB + kSpanBytes);
  EXPECT_GE(stats.mem_used_max, stats.mem_used_total);
  EXPECT_EQ((*device)->options().reserve_bytes, 8 * kMiB + kSpanBytes);
  // The whole table.
  EXPECT_GE(stats.table_bytes, 64 * kMiB / 512);
}

TEST(ReserveOption, values_that_cannot_be_kept_are_refused) {
  const auto refused = [](const DeviceOptions& options, const std::vector<std::string>& parts) {
    const auto device = Device::create(options);
    ASSERT_FALSE(device);
    EXPECT_EQ(device.error().code, Errc::invalid_argument);
    for (const std::string& part : parts) {
      EXPECT_NE(device.error().message.find(part), std::string::npos)
          << device.error().message << " lacks " << part;
    }
  };
  DeviceOptions options = options_with(2 * kMiB + 1);
  options.mem_limit_bytes = 2 * kMiB;
  refused(options, {"uzram0", "reserve 2M", "mem_limit", "raise the limit or lower"});
  options.reserve_bytes = 2 * kMiB;
  EXPECT_TRUE(Device::create(options));
  options.background = false;
  refused(options, {"reserve 2M", "background on"});
  refused(options_with(~std::uint64_t{0}), {"at most 1T"});
}

}  // namespace
}  // namespace uzram::engine
