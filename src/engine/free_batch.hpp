// FreeBatch and FewFrees: room freed by an operation on several pages.
//
// Role: FreeBatch brings it back to the pool in bulk: long discards and compaction, which free more
// than a CPU's cache should gather, and any while the pool is mostly holes. FewFrees leaves it to
// that cache: short discards, of which many follow each other.
// Units: Place and lengths in units of 16 bytes.
// Threads: one; live on the stack.
// Lock order: entries are locked before a cache, so neither holds one while it gathers.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <span>

#include "engine/page_store.hpp"

namespace uzram::engine {

class PageStore::FreeBatch {
 public:
  explicit FreeBatch(Pool& pool) noexcept : pool_(pool) {}
  ~FreeBatch() { flush(); }
  FreeBatch(const FreeBatch&) = delete;
  FreeBatch& operator=(const FreeBatch&) = delete;

  // Frees what `entry` owned; it is no longer published.
  void add(Entry entry) noexcept {
    if (!entry.owns_room()) {
      return;
    }
    extents_[count_++] = {entry.place(), units_for(entry.size())};
    if (count_ == extents_.size()) {
      flush();
    }
  }

  void flush() noexcept {
    if (count_ != 0) {
      pool_.give_back(std::span(extents_).first(count_));
      count_ = 0;
    }
  }

 private:
  Pool& pool_;
  std::size_t count_ = 0;
  std::array<Extent16, 256> extents_;
};

class PageStore::FewFrees {
 public:
  static constexpr std::size_t kMost = 32;

  explicit FewFrees(PoolCaches& caches) noexcept : caches_(caches) {}
  ~FewFrees() { flush(); }
  FewFrees(const FewFrees&) = delete;
  FewFrees& operator=(const FewFrees&) = delete;

  // As FreeBatch; at most kMost.
  void add(Entry entry) noexcept {
    if (entry.owns_room()) {
      assert(count_ < kMost);
      extents_[count_++] = {entry.place(), units_for(entry.size())};
    }
  }

  void flush() noexcept {
    if (count_ != 0) {
      PoolCaches::Lease cache(caches_);
      for (const Extent16& extent : std::span(extents_).first(count_)) {
        cache->free(extent.first, extent.count);
      }
      count_ = 0;
    }
  }

 private:
  PoolCaches& caches_;
  std::size_t count_ = 0;
  std::array<Extent16, kMost> extents_;
};

}  // namespace uzram::engine
