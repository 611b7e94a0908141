#include "engine/page_store.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/cpu.hpp"
#include "engine/free_batch.hpp"
#include "engine/same_filled.hpp"

namespace uzram::engine {
namespace {

// All pages are compressed by the codec of this priority; others will belong to recompression.
constexpr std::uint32_t kPriority = 0;

}  // namespace

PageStore::PageStore(std::unique_ptr<PageTable> table, std::unique_ptr<Pool> pool,
                     std::shared_ptr<StreamSet> streams, std::uint32_t page_size_bytes,
                     std::string device_name)
    : page_size_bytes_(page_size_bytes),
      table_(std::move(table)),
      sums_(table_->sums()),
      max_object_bytes_(page_size_bytes - page_size_bytes / 16 -
                        (sums_ != nullptr ? kSumBytes : 0)),
      pool_(std::move(pool)),
      streams_(std::move(streams)),
      caches_(*pool_, usable_cpus()),
      corruption_log_(std::move(device_name), page_size_bytes, stats_) {}

// ---- write ------------------------------------------------------------------------------------

Errc PageStore::write_page(PageIndex page, std::span<const std::byte> content,
                           Tally& tally) noexcept {
  return try_twice(tally, [&] { return write_page_once(page, content, tally); });
}

template <typename Attempt>
Errc PageStore::try_twice(Tally& tally, Attempt attempt) noexcept {
  Errc status = attempt();
  if (status == Errc::no_space) [[unlikely]] {
    make_room();
    status = attempt();
  }
  if (status != Errc::ok) [[unlikely]] {
    tally.add(Counter::failed_writes, 1);
  }
  return status;
}

Errc PageStore::write_page_once(PageIndex page, std::span<const std::byte> content,
                                Tally& tally) noexcept {
  const std::uint64_t stretch = PageTable::stretch_of(page);
  if (const Errc failed = table_->prepare(stretch); failed != Errc::ok) {
    return failed;
  }
  Entry after;
  std::uint64_t word = 0;
  if (same_filled(content, word)) {
    if (const Errc failed = encode_fill(word, after); failed != Errc::ok) {
      return failed;
    }
  } else {
    // The stream is free again before the entry is waited for.
    const StreamLease stream(*streams_);
    if (const Errc failed = encode(content, *stream, after); failed != Errc::ok) {
      return failed;
    }
  }
  const Entry before = publish(table_->entry(page), after, table_->sleepers());
  table_->confirm(stretch);
  replaced(before, after, tally);
  return Errc::ok;
}

Errc PageStore::encode_fill(std::uint64_t word, Entry& entry) noexcept {
  if (Entry::fill_fits(word)) {
    entry = Entry::fill(word);
    return Errc::ok;
  }
  Place place = 0;
  if (const Errc failed = PoolCaches::Lease(caches_)->allocate_slot(place); failed != Errc::ok) {
    return failed;
  }
  std::byte* const slot = pool_->address(place);
  std::uint32_t size = sizeof word;
  std::memcpy(slot, &word, sizeof word);
  if (sums_ != nullptr) {
    size = append_sum(slot, size);
  }
  entry = Entry::stored(Kind::fill_slot, place, size, kPriority);
  return Errc::ok;
}

Errc PageStore::encode(std::span<const std::byte> content, Stream& stream, Entry& entry) noexcept {
  if (stream.samples) {
    stream.samples->offer(content);
  }
  const std::span<std::byte> room(stream.compressed.get(), max_object_bytes_);
  const codec::CompressResult result = streams_->codec().compress(*stream.workspace, content, room);
  if (result.status != Errc::ok) {
    return encode_raw(content, entry);
  }
  // The stream's buffer is a page long.
  const std::uint32_t size = sums_ == nullptr ? result.size : append_sum(room.data(), result.size);
  Place place = 0;
  if (const Errc failed = PoolCaches::Lease(caches_)->allocate(units_for(size), place);
      failed != Errc::ok) {
    return failed;
  }
  std::memcpy(pool_->address(place), room.data(), size);
  entry = Entry::stored(Kind::object, place, size, kPriority);
  return Errc::ok;
}

Errc PageStore::encode_raw(std::span<const std::byte> content, Entry& entry) noexcept {
  Place place = 0;
  if (const Errc failed = PoolCaches::Lease(caches_)->allocate_raw(place); failed != Errc::ok) {
    return failed;
  }
  std::memcpy(pool_->address(place), content.data(), content.size());
  if (sums_ != nullptr) {
    sums_->store(place, crc32c(content));
  }
  entry = Entry::stored(Kind::raw, place, page_size_bytes_, kPriority);
  return Errc::ok;
}

Errc PageStore::write_part(PageIndex page, std::uint32_t from, std::span<const std::byte> content,
                           Tally& tally) noexcept {
  return try_twice(tally, [&] { return write_part_once(page, from, content, tally); });
}

Errc PageStore::write_part_once(PageIndex page, std::uint32_t from,
                                std::span<const std::byte> content, Tally& tally) noexcept {
  const std::uint64_t stretch = PageTable::stretch_of(page);
  if (const Errc failed = table_->prepare(stretch); failed != Errc::ok) {
    return failed;
  }
  const StreamLease stream(*streams_);
  const std::span<std::byte> whole(stream->page.get(), page_size_bytes_);
  AtomicEntry& atomic_entry = table_->entry(page);
  const Entry before = lock_entry(atomic_entry, table_->sleepers());
  Entry after;
  Errc status = decode(before, &*stream, whole);
  if (status != Errc::ok) [[unlikely]] {
    unlock_entry(atomic_entry);
    found_corrupt(page);
    return status;
  }
  std::memcpy(whole.data() + from, content.data(), content.size());
  std::uint64_t word = 0;
  status = same_filled(whole, word) ? encode_fill(word, after) : encode(whole, *stream, after);
  if (status != Errc::ok) {
    unlock_entry(atomic_entry);
    return status;
  }
  publish_locked(atomic_entry, after);
  table_->confirm(stretch);
  replaced(before, after, tally);
  return Errc::ok;
}

Errc PageStore::fill_with_zeroes(PageIndex first, PageIndex end, Tally& tally) noexcept {
  for (PageIndex page = first; page < end; ++page) {
    const std::uint64_t stretch = PageTable::stretch_of(page);
    if (const Errc failed = try_twice(tally, [&] { return table_->prepare(stretch); });
        failed != Errc::ok) {
      return failed;
    }
    const Entry after = Entry::fill(0);
    const Entry before = publish(table_->entry(page), after, table_->sleepers());
    table_->confirm(stretch);
    replaced(before, after, tally);
  }
  return Errc::ok;
}

// ---- read -------------------------------------------------------------------------------------

Errc PageStore::read_part(PageIndex page, std::uint32_t from, std::span<std::byte> out,
                          Tally& tally) noexcept {
  if (!table_->holds_anything(PageTable::stretch_of(page))) {
    std::memset(out.data(), 0, out.size());
    return Errc::ok;
  }
  AtomicEntry& atomic_entry = table_->entry(page);
  // An entry that carries its whole content needs no lock: one load is the read.
  const Entry seen(atomic_entry.load(std::memory_order_acquire));
  if (seen.kind() == Kind::empty || seen.kind() == Kind::fill) {
    write_fill(seen.kind() == Kind::empty ? 0 : seen.fill_word(), from, out);
    return Errc::ok;
  }
  const bool whole = out.size() == page_size_bytes_;
  const bool needs_stream = !whole || streams_->codec().decompress_needs_workspace();
  Errc status = Errc::ok;
  if (needs_stream) {
    const StreamLease stream(*streams_);
    const std::span<std::byte> scratch(stream->page.get(), page_size_bytes_);
    const Entry entry = lock_entry(atomic_entry, table_->sleepers());
    status = decode(entry, &*stream, whole ? out : scratch);
    unlock_entry(atomic_entry);
    if (!whole && status == Errc::ok) {
      std::memcpy(out.data(), scratch.data() + from, out.size());
    }
  } else {
    const Entry entry = lock_entry(atomic_entry, table_->sleepers());
    status = decode(entry, nullptr, out);
    unlock_entry(atomic_entry);
  }
  if (status != Errc::ok) [[unlikely]] {
    tally.add(Counter::failed_reads, 1);
    found_corrupt(page);
  }
  return status;
}

Errc PageStore::decode(Entry entry, Stream* stream, std::span<std::byte> out) const noexcept {
  switch (entry.kind()) {
    case Kind::empty:
      write_fill(0, 0, out);
      return Errc::ok;
    case Kind::fill:
      write_fill(entry.fill_word(), 0, out);
      return Errc::ok;
    case Kind::fill_slot: {
      const std::byte* const slot = pool_->address(entry.place());
      if (sums_ != nullptr && !sum_holds({slot, entry.size()})) {
        return Errc::corrupt;
      }
      std::uint64_t word = 0;
      std::memcpy(&word, slot, sizeof word);
      write_fill(word, 0, out);
      return Errc::ok;
    }
    case Kind::raw: {
      const std::span<const std::byte> page(pool_->address(entry.place()), out.size());
      if (sums_ != nullptr && sums_->load(entry.place()) != crc32c(page)) {
        return Errc::corrupt;
      }
      std::memcpy(out.data(), page.data(), out.size());
      return Errc::ok;
    }
    case Kind::object: {
      std::span<const std::byte> object(pool_->address(entry.place()), entry.size());
      if (sums_ != nullptr) {
        if (!sum_holds(object)) {
          return Errc::corrupt;
        }
        object = object.first(object.size() - kSumBytes);
      }
      return streams_->codec().decompress(stream == nullptr ? nullptr : stream->workspace.get(),
                                          object, out);
    }
    case Kind::written_back:
      break;
  }
  return Errc::corrupt;
}

ExtentState PageStore::state_of(PageIndex page) const noexcept {
  const Entry entry(table_->entry(page).load(std::memory_order_acquire));
  switch (entry.kind()) {
    case Kind::empty:
      return ExtentState::hole;
    case Kind::fill:
      return entry.fill_word() == 0 ? ExtentState::zero : ExtentState::data;
    default:
      return ExtentState::data;
  }
}

void PageStore::prefetch_entry(PageIndex page) const noexcept {
  if (table_->holds_anything(PageTable::stretch_of(page))) {
    __builtin_prefetch(&table_->entry(page), 1);
  }
}

void PageStore::prefetch_object(PageIndex page) const noexcept {
  if (!table_->holds_anything(PageTable::stretch_of(page))) {
    return;
  }
  const Entry entry(table_->entry(page).load(std::memory_order_acquire));
  if (entry.owns_room()) {
    // A place read without the lock may be stale; it is still an address of this pool, and a
    // prefetch of it is harmless.
    constexpr std::size_t kLine = 64;
    constexpr std::size_t kMostLines = 8;
    const std::byte* const object = pool_->address(entry.place());
    const std::size_t lines = std::min((entry.size() + kLine - 1) / kLine, kMostLines);
    for (std::size_t line = 0; line < lines; ++line) {
      __builtin_prefetch(object + line * kLine);
    }
  }
}

// ---- accounts ---------------------------------------------------------------------------------

void PageStore::count(Entry entry, std::int64_t sign, Tally& tally) const noexcept {
  switch (entry.kind()) {
    case Kind::empty:
      return;
    case Kind::fill:
    case Kind::fill_slot:
      tally.add(Counter::same_pages, sign);
      break;
    case Kind::raw:
      tally.add(Counter::huge_pages, sign);
      if (sign > 0) {
        tally.add(Counter::huge_pages_since, 1);
      }
      [[fallthrough]];
    case Kind::object:
      tally.add(Counter::compr_bytes, sign * entry.size());
      break;
    case Kind::written_back:
      break;
  }
  tally.add(Counter::stored_pages, sign);
}

void PageStore::replaced(Entry before, Entry after, Tally& tally) noexcept {
  count(before, -1, tally);
  count(after, 1, tally);
  if (before.owns_room()) {
    PoolCaches::Lease(caches_)->free(before.place(), units_for(before.size()));
  }
}

void PageStore::found_corrupt(PageIndex page) noexcept {
  // At once: the line that is written for it tells the number.
  stats_.add(Counter::corrupt_pages, 1);
  corruption_log_.found(page);
}

void PageStore::make_room() noexcept {
  caches_.drain();
  const MutexLock lock(compaction_mutex_);
  if (pool_->free_bytes() > pool_->used_bytes() / 16 && !is_hopeless(hopeless_bytes_)) {
    const std::uint32_t occupied = pool_->occupied_spans();
    compact_locked();
    hopeless_bytes_ = pool_->occupied_spans() < occupied ? 0 : pool_->free_bytes();
  }
}

}  // namespace uzram::engine
