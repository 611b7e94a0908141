// PageStore: pages in, pages out. The data path of one device from step 3 on.
//
// Role: turns operations on single pages into entries and objects. `Device` checks ranges and
// splits them; everything below a page's index happens here.
// Units: PageIndex; offsets and lengths inside a page in bytes.
// Errors: no_space (write, fill, allocate), corrupt (read, partial write). A page whose
// operation failed is as it was; a corrupt one can be written whole or dropped, and is good then.
// Threads: all members.
// Lock order: stream, entry, cache, pool.
// Invariants: 1. An entry is published only after its object is complete. 2. Room is freed only
// after the entry that owned it has been replaced, and by the thread that replaced it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "uzram/device.hpp"
#include "uzram/error.hpp"

#include "base/mutex.hpp"
#include "engine/checksum.hpp"
#include "engine/corruption_log.hpp"
#include "engine/page_table.hpp"
#include "engine/pool.hpp"
#include "engine/pool_cache.hpp"
#include "engine/stats.hpp"
#include "engine/streams.hpp"

namespace uzram::engine {

class PageStore {
 public:
  PageStore(std::unique_ptr<PageTable> table, std::unique_ptr<Pool> pool,
            std::shared_ptr<StreamSet> streams, std::uint32_t page_size_bytes,
            std::string device_name);

  // A whole page. REQUIRES: content.size() is the page size.
  Errc write_page(PageIndex page, std::span<const std::byte> content, Tally& tally) noexcept;

  // Part of a page, from byte `from` on; all of it may be read, too.
  Errc read_part(PageIndex page, std::uint32_t from, std::span<std::byte> out,
                 Tally& tally) noexcept;
  Errc write_part(PageIndex page, std::uint32_t from, std::span<const std::byte> content,
                  Tally& tally) noexcept;

  // Drops the pages [first, end) and gives back the table pages that become empty.
  void drop(PageIndex first, PageIndex end, Tally& tally) noexcept;
  // Makes the pages [first, end) allocated zeroes.
  Errc fill_with_zeroes(PageIndex first, PageIndex end, Tally& tally) noexcept;

  // What the page holds now; for pages of stretches that hold nothing, use table().next_holding.
  [[nodiscard]] ExtentState state_of(PageIndex page) const noexcept;

  // Starts loading what a read or write of the page will look at: first its entry, then, a request
  // or two later, its object.
  void prefetch_entry(PageIndex page) const noexcept;
  void prefetch_object(PageIndex page) const noexcept;

  // Moves objects out of sparsely used spans. Returns the bytes given back to the system.
  std::uint64_t compact() noexcept;
  // A part of that, some milliseconds long. Returns whether there may be more to gain.
  bool compact_some() noexcept;

  [[nodiscard]] PageTable& table() noexcept { return *table_; }
  [[nodiscard]] const PageTable& table() const noexcept { return *table_; }
  [[nodiscard]] Pool& pool() noexcept { return *pool_; }
  [[nodiscard]] const Pool& pool() const noexcept { return *pool_; }
  [[nodiscard]] PoolCaches& caches() noexcept { return caches_; }
  [[nodiscard]] const PoolCaches& caches() const noexcept { return caches_; }
  [[nodiscard]] Stats& stats() noexcept { return stats_; }
  [[nodiscard]] const Stats& stats() const noexcept { return stats_; }

 private:
  class FreeBatch;
  class FewFrees;

  // Stores `content` in the pool unless it is same-filled; `entry` describes it, unpublished.
  Errc encode(std::span<const std::byte> content, Stream& stream, Entry& entry) noexcept;
  Errc encode_fill(std::uint64_t word, Entry& entry) noexcept;
  Errc encode_raw(std::span<const std::byte> content, Entry& entry) noexcept;
  // REQUIRES: the caller holds the entry's lock, or nobody else can see it.
  Errc decode(Entry entry, Stream* stream, std::span<std::byte> out) const noexcept;
  Errc write_page_once(PageIndex page, std::span<const std::byte> content, Tally& tally) noexcept;
  Errc write_part_once(PageIndex page, std::uint32_t from, std::span<const std::byte> content,
                       Tally& tally) noexcept;

  // Accounts for `before` being replaced by `after` and frees what `before` owned.
  void replaced(Entry before, Entry after, Tally& tally) noexcept;
  void count(Entry entry, std::int64_t sign, Tally& tally) const noexcept;
  // A page whose object does not decode is counted and told of.
  void found_corrupt(PageIndex page) noexcept;
  // Makes an attempt to write, and another after making room when it found none; counts a failure.
  template <typename Attempt>
  Errc try_twice(Tally& tally, Attempt attempt) noexcept;
  // Drains caches and compacts where that promises some room.
  void make_room() noexcept;

  // drop() in stretches from `stretch` on, the first that holds something. `Frees` gathers the
  // room.
  template <typename Frees>
  void drop_stretches(std::uint64_t stretch, PageIndex first, PageIndex end, Frees& frees,
                      Tally& tally) noexcept;
  template <typename Frees>
  bool drop_stretch(PageIndex first, PageIndex end, Frees& frees, Tally& tally) noexcept;
  std::uint64_t compact_locked() noexcept UZRAM_REQUIRES(compaction_mutex_);
  // Empties at most `max_spans` spans of a kind. Returns whether any could be emptied.
  bool compact_spans(std::uint32_t max_spans) noexcept UZRAM_REQUIRES(compaction_mutex_);
  // Not worth trying: an attempt that left `hopeless_bytes` free gained nothing, and little has
  // become free since. 0: there was none.
  bool is_hopeless(std::uint64_t& hopeless_bytes) noexcept UZRAM_REQUIRES(compaction_mutex_);
  // Adds to pages_compacted what the pool has shrunk by. Returns it in bytes.
  std::uint64_t count_compacted(std::uint64_t used_before) noexcept;
  void move_victims(PoolCache& cache, FreeBatch& batch) noexcept;
  Errc move_object(AtomicEntry& entry, PoolCache& cache, FreeBatch& batch) noexcept;

  const std::uint32_t page_size_bytes_;
  std::unique_ptr<PageTable> table_;
  // nullptr: what is stored has no checksums.
  const PlaceSums* const sums_;
  // Larger results of the codec are stored raw: what they save is not worth decompressing them.
  const std::uint32_t max_object_bytes_;
  std::unique_ptr<Pool> pool_;
  std::shared_ptr<StreamSet> streams_;
  PoolCaches caches_;
  Stats stats_;
  CorruptionLog corruption_log_;
  Mutex compaction_mutex_;
  // What was free after a compaction that emptied no span: trying again is of no use until there is
  // more.
  std::uint64_t hopeless_bytes_ UZRAM_GUARDED_BY(compaction_mutex_) = 0;
  // The same of compact_some, which tries less.
  std::uint64_t hopeless_for_some_bytes_ UZRAM_GUARDED_BY(compaction_mutex_) = 0;
};

}  // namespace uzram::engine
