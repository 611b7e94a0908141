// PageStore's work on many pages at once: dropping ranges and compaction.
#include <algorithm>
#include <cstring>

#include "engine/free_batch.hpp"
#include "engine/page_store.hpp"

namespace uzram::engine {
namespace {

// Compaction empties this fraction of the pool at a time, so that copies need little room.
constexpr std::uint32_t kRoundShare = 16;
constexpr std::uint32_t kMinRound = 64;

}  // namespace

void PageStore::drop(PageIndex first, PageIndex end, Tally& tally) noexcept {
  tally.add(Counter::notify_free, static_cast<std::int64_t>(end - first));
  const std::uint64_t end_stretch = PageTable::stretch_of(end - 1) + 1;
  const std::uint64_t stretch = table_->next_holding(PageTable::stretch_of(first), end_stretch);
  if (stretch == end_stretch) {
    return;
  }
  if (end - first <= FewFrees::kMost && !pool_->is_mostly_holes()) {
    FewFrees frees(caches_);
    drop_stretches(stretch, first, end, frees, tally);
  } else {
    FreeBatch batch(*pool_);
    drop_stretches(stretch, first, end, batch, tally);
  }
  if (pool_->wants_drain()) {
    caches_.drain();
  }
}

template <typename Frees>
void PageStore::drop_stretches(std::uint64_t stretch, PageIndex first, PageIndex end, Frees& frees,
                               Tally& tally) noexcept {
  const std::uint64_t end_stretch = PageTable::stretch_of(end - 1) + 1;
  while (stretch != end_stretch) {
    const PageIndex from = std::max(first, stretch << kStretchShift);
    const PageIndex to = std::min(end, (stretch + 1) << kStretchShift);
    if (drop_stretch(from, to, frees, tally)) {
      table_->try_release(stretch);
    }
    stretch = table_->next_holding(stretch + 1, end_stretch);
  }
}

// Returns whether the stretch may have become empty.
template <typename Frees>
bool PageStore::drop_stretch(PageIndex first, PageIndex end, Frees& frees, Tally& tally) noexcept {
  for (PageIndex page = first; page < end; ++page) {
    AtomicEntry& entry = table_->entry(page);
    if (entry.load(std::memory_order_relaxed) == 0) {
      continue;
    }
    const Entry before = publish(entry, Entry(), table_->sleepers());
    count(before, -1, tally);
    frees.add(before);
  }
  // The neighbours tell cheaply that most stretches are not empty yet.
  const auto taken = [this](PageIndex page) {
    return table_->entry(page).load(std::memory_order_relaxed) != 0;
  };
  const bool at_start = first % kStretchPages == 0;
  const bool at_end = end % kStretchPages == 0;
  return (at_end || !taken(end)) && (at_start || !taken(first - 1));
}

std::uint64_t PageStore::compact() noexcept {
  const MutexLock lock(compaction_mutex_);
  return compact_locked();
}

bool PageStore::compact_some() noexcept {
  const MutexLock lock(compaction_mutex_);
  if (is_hopeless(hopeless_for_some_bytes_)) {
    return false;
  }
  // What caches hold of a span keeps it from becoming empty.
  caches_.drain();
  const std::uint64_t used_before = pool_->used_bytes();
  const std::uint32_t occupied = pool_->occupied_spans();
  const bool gained = compact_spans(std::max(occupied / kRoundShare, kMinRound)) &&
                      pool_->occupied_spans() < occupied;
  hopeless_for_some_bytes_ = gained ? 0 : pool_->free_bytes();
  pool_->trim_to_reserve();
  count_compacted(used_before);
  return gained;
}

bool PageStore::is_hopeless(std::uint64_t& hopeless_bytes) noexcept {
  const std::uint64_t free_bytes = pool_->free_bytes();
  hopeless_bytes = std::min(hopeless_bytes, free_bytes);
  return hopeless_bytes != 0 && free_bytes <= hopeless_bytes + hopeless_bytes / 8;
}

std::uint64_t PageStore::count_compacted(std::uint64_t used_before) noexcept {
  const std::uint64_t used = pool_->used_bytes();
  const std::uint64_t freed = used_before > used ? used_before - used : 0;
  stats_.add(Counter::pages_compacted, static_cast<std::int64_t>(freed / os::kSystemPage));
  return freed;
}

std::uint64_t PageStore::compact_locked() noexcept {
  caches_.drain();
  const std::uint64_t used_before = pool_->used_bytes();
  std::uint32_t occupied = pool_->occupied_spans();
  while (compact_spans(std::max(occupied / kRoundShare, kMinRound))) {
    pool_->trim();
    const std::uint32_t now = pool_->occupied_spans();
    if (now >= occupied) {
      break;
    }
    occupied = now;
  }
  return count_compacted(used_before);
}

bool PageStore::compact_spans(std::uint32_t max_spans) noexcept {
  if (pool_->choose_victims(max_spans) == 0) {
    return false;
  }
  {
    PoolCache cache(*pool_);
    cache.set_compacting(true);
    FreeBatch batch(*pool_);
    move_victims(cache, batch);
    batch.flush();
    cache.drain();
  }
  pool_->release_victims();
  return true;
}

void PageStore::move_victims(PoolCache& cache, FreeBatch& batch) noexcept {
  const std::uint64_t stretches = table_->stretches();
  // Objects from this size on found no room.
  std::uint32_t too_large_bytes = page_size_bytes_ + 1;
  for (std::uint64_t stretch = table_->next_holding(0, stretches); stretch != stretches;
       stretch = table_->next_holding(stretch + 1, stretches)) {
    const PageIndex first = stretch << kStretchShift;
    for (PageIndex page = first; page < first + kStretchPages; ++page) {
      AtomicEntry& entry = table_->entry(page);
      const Entry seen(entry.load(std::memory_order_acquire));
      if (!seen.owns_room() || seen.size() >= too_large_bytes || !pool_->is_victim(seen.place()) ||
          move_object(entry, cache, batch) == Errc::ok) {
        continue;
      }
      // No empty spans to pack into, at the limit for example: fill the holes of other spans.
      cache.set_compacting(false);
      if (move_object(entry, cache, batch) != Errc::ok) {
        too_large_bytes = seen.size();
      }
    }
  }
}

// Errors: no_space. An entry that is locked, or points elsewhere by now, is left alone.
Errc PageStore::move_object(AtomicEntry& entry, PoolCache& cache, FreeBatch& batch) noexcept {
  Entry before;
  if (!try_lock_entry(entry, before)) {
    return Errc::ok;
  }
  const bool movable = before.kind() == Kind::object || before.kind() == Kind::raw;
  if (!movable || !pool_->is_victim(before.place())) {
    unlock_entry(entry);
    return Errc::ok;
  }
  Place place = 0;
  const Errc status = before.kind() == Kind::raw ? cache.allocate_raw(place)
                                                 : cache.allocate(units_for(before.size()), place);
  if (status != Errc::ok) {
    unlock_entry(entry);
    return status;
  }
  std::memcpy(pool_->address(place), pool_->address(before.place()), before.size());
  if (sums_ != nullptr && before.kind() == Kind::raw) {
    // Not computed anew: what has become corrupt must not pass for good here.
    sums_->store(place, sums_->load(before.place()));
  }
  publish_locked(entry, before.moved_to(place));
  batch.add(before);
  return Errc::ok;
}

}  // namespace uzram::engine
