#include "engine/pool_cache.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <thread>
#include <utility>

#include "base/cpu.hpp"

namespace uzram::engine {

PoolCache::PoolCache(Pool& pool) noexcept : pool_(pool) {
  heads_.fill(kNoNode);
  for (std::uint32_t i = 0; i < kMaxExtents; ++i) {
    next_[i] = i + 1 < kMaxExtents ? static_cast<Node>(i + 1) : kNoNode;
  }
}

std::uint32_t PoolCache::bin_of(std::uint32_t units) noexcept {
  if (units <= kExactBins) {
    return units - 1;
  }
  static_assert(kSpanUnits == 4096 && kExactBins == 256);
  return kExactBins + static_cast<std::uint32_t>(std::bit_width(units)) - 9;
}

void PoolCache::put(Extent16 extent) noexcept {
  assert(free_nodes_ != kNoNode);
  const std::uint32_t bin = bin_of(extent.count);
  const Node node = free_nodes_;
  free_nodes_ = next_[node];
  nodes_[node] = extent;
  next_[node] = heads_[bin];
  heads_[bin] = node;
  nonempty_[bin / 64] |= std::uint64_t{1} << (bin % 64);
  ++extents_;
}

Extent16 PoolCache::pop(std::uint32_t bin) noexcept {
  const Node node = heads_[bin];
  const Extent16 extent = nodes_[node];
  heads_[bin] = next_[node];
  if (heads_[bin] == kNoNode) {
    nonempty_[bin / 64] &= ~(std::uint64_t{1} << (bin % 64));
  }
  next_[node] = free_nodes_;
  free_nodes_ = node;
  --extents_;
  return extent;
}

Extent16 PoolCache::take_fitting(std::uint32_t units) noexcept {
  std::uint32_t bin = bin_of(units);
  if (bin >= kExactBins) {
    // Extents of this bin may be too short; any in a later one fits.
    for (Node node = heads_[bin]; node != kNoNode; node = next_[node]) {
      if (nodes_[node].count >= units) {
        std::swap(nodes_[node], nodes_[heads_[bin]]);
        return pop(bin);
      }
    }
    ++bin;
  }
  for (std::size_t word = bin / 64; word < nonempty_.size(); ++word) {
    std::uint64_t bits = nonempty_[word];
    if (word == bin / 64) {
      bits &= ~std::uint64_t{0} << (bin % 64);
    }
    if (bits != 0) {
      return pop(static_cast<std::uint32_t>(word * 64) +
                 static_cast<std::uint32_t>(std::countr_zero(bits)));
    }
  }
  return {};
}

Errc PoolCache::allocate(std::uint32_t units, Place& place) noexcept {
  Extent16 extent = take_fitting(units);
  while (extent.count == 0) [[unlikely]] {
      if (const Errc failed = refill(units); failed != Errc::ok) {
        return failed;
      }
      extent = take_fitting(units);
    }
  place = extent.first;
  if (extent.count != units) {
    put({extent.first + units, extent.count - units});
  }
  return Errc::ok;
}

Errc PoolCache::refill(std::uint32_t units) noexcept {
  if (pending_count_ != 0) {
    flush_frees();
  }
  if (extents_ > kMaxExtents - kRefillExtents - 1 || bin_of(units) >= kExactBins) {
    return_extents();
  }
  std::array<Extent16, kRefillExtents> extents;
  const std::uint32_t count =
      pool_.take({SpanUse::objects, units, fresh_only_, compacting_}, extents);
  for (std::uint32_t i = 0; i < count; ++i) {
    put(extents[i]);
  }
  return count == 0 ? Errc::no_space : Errc::ok;
}

Errc PoolCache::allocate_raw(Place& place) noexcept {
  return allocate_single(raw_, SpanUse::raw, pool_.page_units(), place);
}

Errc PoolCache::allocate_slot(Place& place) noexcept {
  return allocate_single(slots_, SpanUse::slots, 1, place);
}

Errc PoolCache::allocate_single(Singles& singles, SpanUse use, std::uint32_t units,
                                Place& place) noexcept {
  if (singles.count == 0) {
    if (pending_count_ != 0) {
      flush_frees();
    }
    singles.count = pool_.take({use, units, fresh_only_, compacting_}, singles.extents);
    if (singles.count == 0) {
      return Errc::no_space;
    }
  }
  place = singles.extents[--singles.count].first;
  return Errc::ok;
}

void PoolCache::free(Place place, std::uint32_t units) noexcept {
  pending_[pending_count_++] = {place, units};
  if (pending_count_ == kPendingFrees) {
    flush_frees();
  }
}

void PoolCache::flush_frees() noexcept {
  pool_.give_back(std::span(pending_).first(pending_count_));
  pending_count_ = 0;
}

void PoolCache::return_extents() noexcept {
  std::array<Extent16, kMaxExtents> extents;
  std::size_t count = 0;
  for (std::uint32_t bin = 0; bin < kBins; ++bin) {
    while (heads_[bin] != kNoNode) {
      extents[count++] = pop(bin);
    }
  }
  pool_.give_back(std::span(extents).first(count));
}

void PoolCache::drain() noexcept {
  flush_frees();
  return_extents();
  for (Singles* const singles : {&raw_, &slots_}) {
    pool_.give_back(std::span(singles->extents).first(singles->count));
    singles->count = 0;
  }
}

PoolCaches::PoolCaches(Pool& pool, std::uint32_t count) {
  slots_.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    slots_.push_back(std::make_unique<PoolCacheSlot>(pool));
  }
}

PoolCacheSlot& PoolCaches::acquire() noexcept {
  const std::size_t home = current_cpu_slot() % slots_.size();
  for (;;) {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      PoolCacheSlot& slot = *slots_[(home + i) % slots_.size()];
      if (!slot.busy.load(std::memory_order_relaxed) &&
          !slot.busy.exchange(true, std::memory_order_acquire)) {
        return slot;
      }
    }
    // Every cache is held by a thread that does not run at this moment.
    std::this_thread::yield();
  }
}

void PoolCaches::drain() noexcept {
  for (auto& slot : slots_) {
    while (slot->busy.exchange(true, std::memory_order_acquire)) {
      std::this_thread::yield();
    }
    slot->cache.drain();
    slot->busy.store(false, std::memory_order_release);
  }
}

std::size_t PoolCaches::memory_bytes() const noexcept {
  return slots_.size() * sizeof(PoolCacheSlot);
}

}  // namespace uzram::engine
