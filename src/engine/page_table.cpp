#include "engine/page_table.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/size.hpp"
#include "os/futex.hpp"

namespace uzram::engine {

Result<std::unique_ptr<PageTable>> PageTable::create(const std::string& name, Header header,
                                                     Room& room, bool whole, bool checksums) {
  const std::uint64_t pages = header.disksize_bytes / header.page_size_bytes;
  const std::uint64_t stretches = (pages + kStretchPages - 1) / kStretchPages;
  const std::uint64_t summary_bytes = round_up(round_up(stretches, 64) / 8, kTablePageBytes);
  header.magic = kMagic;
  header.format_version = kFormatVersion;
  header.summary_offset = kHeaderBytes;
  header.table_offset = kHeaderBytes + summary_bytes;
  header.place_unit_bytes = kPlaceUnit;
  header.stretch_pages = kStretchPages;
  header.recipe_slot_bytes =
      static_cast<std::uint32_t>(round_up(header.recipe_slot_bytes, os::kSystemPage));
  const std::uint64_t table_end = header.table_offset + stretches * kTablePageBytes;
  header.recipes_offset = header.recipe_slot_bytes == 0 ? 0 : table_end;
  header.recipe_count = 0;
  const std::uint64_t sums_at = table_end + std::uint64_t{kRecipeSlots} * header.recipe_slot_bytes;
  header.sums_offset = checksums ? sums_at : 0;

  auto table = std::unique_ptr<PageTable>(new PageTable(room, whole));
  auto file = os::MemoryFile::create("uzram-table:" + name);
  if (!file) {
    return std::move(file).error();
  }
  table->file_ = std::move(*file);
  const std::uint64_t size = sums_at + (checksums ? PlaceSums::kBytes : 0);
  if (table->file_.resize(size) != Errc::ok) {
    return system_error("device " + name + ": cannot size its table to " + format_size(size),
                        errno);
  }
  table->mapping_ = table->file_.map(0, size);
  if (table->mapping_.data() == nullptr) {
    return system_error("device " + name + ": cannot map its table of " + format_size(size), errno);
  }
  std::byte* const base = table->mapping_.data();
  const std::uint64_t taken = whole ? table_end : header.table_offset;
  if (const Room::Grant grant = room.ask(taken);
      !grant || table->file_.take_room(base, 0, taken) != Errc::ok) {
    return Error{
        Errc::no_space, 0,
        "device " + name + ": no memory for " +
            (whole ? "its table, which a reserve needs whole (" : "its header and summary (") +
            format_size(taken) + "); free some or raise the limit"};
  }
  table->header_ = reinterpret_cast<Header*>(base);
  *table->header_ = header;
  table->summary_ = reinterpret_cast<std::atomic<std::uint64_t>*>(base + header.summary_offset);
  table->entries_ = reinterpret_cast<AtomicEntry*>(base + header.table_offset);
  if (checksums) {
    table->sums_.emplace(table->file_, header.sums_offset, base + header.sums_offset);
  }
  table->table_offset_ = header.table_offset;
  table->stretches_ = stretches;
  return table;
}

std::uint64_t PageTable::next_holding(std::uint64_t from, std::uint64_t end) const noexcept {
  while (from < end) {
    const std::uint64_t word = summary_[from / 64].load(std::memory_order_acquire) >> (from % 64);
    if (word != 0) {
      return std::min(from + static_cast<std::uint64_t>(std::countr_zero(word)), end);
    }
    from = (from / 64 + 1) * 64;
  }
  return end;
}

Errc PageTable::prepare_slow(std::uint64_t stretch) noexcept {
  if (whole_) {
    set_summary(stretch);
    return Errc::ok;
  }
  const std::uint64_t offset = table_offset_ + stretch * kTablePageBytes;
  if (const Room::Grant grant = room_.ask(kTablePageBytes);
      !grant || file_.take_room(mapping_.data() + offset, offset, kTablePageBytes) != Errc::ok) {
    return Errc::no_space;
  }
  set_summary(stretch);
  return Errc::ok;
}

bool PageTable::try_release(std::uint64_t stretch) noexcept {
  if (!holds_anything(stretch)) {
    return false;
  }
  AtomicEntry* const first = entries_ + stretch * kStretchPages;
  for (std::uint32_t i = 0; i < kStretchPages; ++i) {
    if (first[i].load(std::memory_order_relaxed) != 0) {
      return false;
    }
  }
  for (std::uint32_t i = 0; i < kStretchPages; ++i) {
    std::uint64_t empty = 0;
    if (!first[i].compare_exchange_strong(empty, Entry::kLock, std::memory_order_acquire,
                                          std::memory_order_relaxed)) {
      while (i-- > 0) {
        unlock_entry(first[i]);
      }
      return false;
    }
  }
  summary_[stretch / 64].fetch_and(~(std::uint64_t{1} << (stretch % 64)),
                                   std::memory_order_seq_cst);
  if (whole_ ||
      file_.give_back(table_offset_ + stretch * kTablePageBytes, kTablePageBytes) != Errc::ok) {
    // The page stays, empty and unlocked; the next write in the stretch sets the bit again.
    for (std::uint32_t i = 0; i < kStretchPages; ++i) {
      unlock_entry(first[i]);
    }
    return false;
  }
  if (sleepers_.load(std::memory_order_seq_cst) != 0) {
    // They sleep on words of the page that went; a thread that begins to sleep from here on
    // compares with the fresh page and does not.
    for (std::uint32_t i = 0; i < kStretchPages; ++i) {
      wake_entry_slow(first[i]);
    }
  }
  return true;
}

void PageTable::set_mem_limit(std::uint64_t bytes) noexcept {
  std::atomic_ref<std::uint64_t>(header_->mem_limit_bytes).store(bytes, std::memory_order_relaxed);
}

Errc PageTable::add_recipe(std::span<const std::byte> recipe) noexcept {
  const std::atomic_ref<std::uint32_t> kept(header_->recipe_count);
  const std::uint32_t count = kept.load(std::memory_order_relaxed);
  const std::uint64_t slot_bytes = header_->recipe_slot_bytes;
  const std::uint64_t offset = header_->recipes_offset + count * slot_bytes;
  const std::uint64_t taken = round_up(recipe.size(), os::kSystemPage);
  if (const Room::Grant grant = room_.ask(taken);
      !grant || file_.take_room(mapping_.data() + offset, offset, taken) != Errc::ok) {
    return Errc::no_space;
  }
  std::memcpy(mapping_.data() + offset, recipe.data(), recipe.size());
  // Whoever finds the process dead and the recipe counted finds all of it.
  kept.store(count + 1, std::memory_order_release);
  return Errc::ok;
}

}  // namespace uzram::engine
