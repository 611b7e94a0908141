// PoolCache: one CPU's room in a pool.
//
// Role: step 6 of the data path, its fast side. A cache holds extents of free units in bins by
// length and gives the shortest that fits, so that the ends of larger extents are used up by
// smaller objects; freed objects are gathered and brought back to the pool in bulk.
// Units: Place and lengths in units of 16 bytes.
// Errors: no_space.
// Threads: a PoolCache is used by one thread at a time; PoolCaches hands them out, one for each
// usable CPU, and a thread whose CPU's cache is busy takes a neighbour's.
// Lock order: entries, then a cache, then the pool.
// Cost: an allocation or a free is some ten instructions and touches no line another CPU writes,
// except for one refill in several dozen.
// Invariants: 1. Bin b < kExactBins holds extents of exactly b + 1 units; the others by powers
// of two. 2. An extent lies in one span. 3. At most kMaxExtents extents are held.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/pool.hpp"

namespace uzram::engine {

class PoolCache {
 public:
  explicit PoolCache(Pool& pool) noexcept;

  // Room for an object of `units`.
  Errc allocate(std::uint32_t units, Place& place) noexcept;
  // Room for one raw page, aligned to the page size.
  Errc allocate_raw(Place& place) noexcept;
  // Room for a fill word, exempt from the limit.
  Errc allocate_slot(Place& place) noexcept;
  // Frees what one of the caches gave.
  void free(Place place, std::uint32_t units) noexcept;
  // Brings everything held back to the pool.
  void drain() noexcept;
  // From now on the cache is compaction's: room comes from spans that held nothing before, or from
  // any, and leaves the reserve that is kept alone.
  void set_compacting(bool fresh_only) noexcept {
    compacting_ = true;
    fresh_only_ = fresh_only;
  }

 private:
  static constexpr std::uint32_t kExactBins = 256;
  static constexpr std::uint32_t kBins = kExactBins + 5;
  static constexpr std::uint32_t kMaxExtents = 192;
  static constexpr std::uint32_t kRefillExtents = 64;
  static constexpr std::size_t kPendingFrees = 64;
  // Raw pages or slots held.
  static constexpr std::size_t kSingles = 16;
  using Node = std::uint8_t;
  static constexpr Node kNoNode = 0xff;

  // Room of one size, handed out one by one.
  struct Singles {
    std::uint32_t count = 0;
    std::array<Extent16, kSingles> extents{};
  };

  Errc allocate_single(Singles& singles, SpanUse use, std::uint32_t units, Place& place) noexcept;
  static std::uint32_t bin_of(std::uint32_t units) noexcept;
  // Takes the shortest held extent of at least `units`; count 0 when there is none.
  Extent16 take_fitting(std::uint32_t units) noexcept;
  void put(Extent16 extent) noexcept;
  Extent16 pop(std::uint32_t bin) noexcept;
  Errc refill(std::uint32_t units) noexcept;
  void flush_frees() noexcept;
  void return_extents() noexcept;

  Pool& pool_;
  bool compacting_ = false;
  bool fresh_only_ = false;
  std::uint8_t pending_count_ = 0;
  Node free_nodes_ = 0;
  std::uint32_t extents_ = 0;
  std::array<std::uint64_t, (kBins + 63) / 64> nonempty_{};
  std::array<Node, kBins> heads_{};
  std::array<Extent16, kMaxExtents> nodes_{};
  std::array<Node, kMaxExtents> next_{};
  std::array<Extent16, kPendingFrees> pending_{};
  Singles raw_;
  Singles slots_;
};

struct alignas(64) PoolCacheSlot {
  explicit PoolCacheSlot(Pool& pool) noexcept : cache(pool) {}
  std::atomic<bool> busy{false};
  PoolCache cache;
};

// All caches of a pool.
class PoolCaches {
 public:
  PoolCaches(Pool& pool, std::uint32_t count);

  // A cache held exclusively until destruction.
  class Lease {
   public:
    explicit Lease(PoolCaches& caches) noexcept : slot_(caches.acquire()) {}
    ~Lease() { slot_.busy.store(false, std::memory_order_release); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    PoolCache* operator->() noexcept { return &slot_.cache; }

   private:
    PoolCacheSlot& slot_;
  };

  // Drains every cache, waiting for those in use.
  // REQUIRES: the caller holds no lease.
  void drain() noexcept;

  [[nodiscard]] std::size_t memory_bytes() const noexcept;

 private:
  PoolCacheSlot& acquire() noexcept;
  std::vector<std::unique_ptr<PoolCacheSlot>> slots_;
};

}  // namespace uzram::engine
