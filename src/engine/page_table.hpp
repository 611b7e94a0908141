// PageTable: header, summary, entries and recipes of one device, in one memory file.
//
// Role: steps 2 and 7 of the data path: where the entry of a page is, and whether its stretch holds
// anything at all. The summary has one bit for each stretch (one table page: 512 entries).
// Units: PageIndex, stretch numbers; bytes where named.
// Errors: prepare returns no_space when the system has no memory for a table page.
// Threads: all members; lock rules of entries are in entry_lock.hpp.
// Cost: an empty device holds header and summary (1 MiB at 16 TiB); a stretch that holds something
// holds one system page more. A table can be taken whole, too: then no write needs memory for it,
// and none goes back.
// Invariants:
// 1. A stretch with a clear bit reads as empty and its table page is not looked at.
// 2. A bit is set before the first publish in its stretch (prepare) and looked at again after each
//    (confirm), because it may have been cleared in between. It is cleared only by a thread that
//    holds all the stretch's entries locked and found them empty; a publish and a clearing
//    therefore happen one after the other, and whichever is second leaves the bit right.
// 3. After the bit is cleared the page is punched out of the file, lock bits and all. Threads that
//    spun or slept on them find an unlocked, empty entry in a fresh page. A page fault in the range
//    waits in the kernel until the punch is complete, so nobody writes into the page that goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "uzram/error.hpp"

#include "engine/checksum.hpp"
#include "engine/entry_lock.hpp"
#include "engine/format.hpp"
#include "engine/room.hpp"
#include "os/memory_file.hpp"

namespace uzram::engine {

class PageTable {
 public:
  // `header` gives page size, disk size, limit, codecs and the size of a recipe's slot, 0 for no
  // recipes; the rest of it is filled in. `whole`: all memory of header, summary and entries is taken
  // now and kept. `checksums`: with room for the sums of raw pages.
  static Result<std::unique_ptr<PageTable>> create(const std::string& name, Header header,
                                                   Room& room, bool whole = false,
                                                   bool checksums = false);

  static std::uint64_t stretch_of(PageIndex page) noexcept { return page >> kStretchShift; }

  [[nodiscard]] AtomicEntry& entry(PageIndex page) noexcept { return entries_[page]; }
  [[nodiscard]] const AtomicEntry& entry(PageIndex page) const noexcept { return entries_[page]; }
  [[nodiscard]] SleeperCount& sleepers() noexcept { return sleepers_; }

  // False: every page of the stretch is empty.
  [[nodiscard]] bool holds_anything(std::uint64_t stretch) const noexcept {
    return (summary_[stretch / 64].load(std::memory_order_seq_cst) >> (stretch % 64) & 1) != 0;
  }
  // The first stretch in [from, end) that may hold something; `end` when none does.
  [[nodiscard]] std::uint64_t next_holding(std::uint64_t from, std::uint64_t end) const noexcept;
  [[nodiscard]] std::uint64_t stretches() const noexcept { return stretches_; }

  // Makes sure that an entry of `stretch` may be published.
  Errc prepare(std::uint64_t stretch) noexcept {
    return holds_anything(stretch) ? Errc::ok : prepare_slow(stretch);
  }
  // After a publish in `stretch`, before it is acknowledged.
  void confirm(std::uint64_t stretch) noexcept {
    if (!holds_anything(stretch)) [[unlikely]] {
      set_summary(stretch);
    }
  }
  // Gives the table page of `stretch` back, unless the table is kept whole, if all its entries are
  // empty and unlocked. Returns whether it did.
  // REQUIRES: the caller holds no entry of the stretch locked.
  bool try_release(std::uint64_t stretch) noexcept;

  void set_mem_limit(std::uint64_t bytes) noexcept;

  // nullptr: the device has no checksums.
  [[nodiscard]] const PlaceSums* sums() const noexcept { return sums_ ? &*sums_ : nullptr; }

  // Keeps the recipe of the next generation, to be called before any object of it is published. By
  // one thread at a time. REQUIRES: fewer than kRecipeSlots are kept, and it fits a slot. Errors:
  // no_space.
  Errc add_recipe(std::span<const std::byte> recipe) noexcept;

  // Bytes of memory that header, summary, table, recipes and sums hold.
  [[nodiscard]] std::uint64_t resident_bytes() const noexcept { return file_.resident_bytes(); }
  [[nodiscard]] int fd() const noexcept { return file_.fd(); }

 private:
  PageTable(Room& room, bool whole) noexcept : room_(room), whole_(whole) {}

  Errc prepare_slow(std::uint64_t stretch) noexcept;
  void set_summary(std::uint64_t stretch) noexcept {
    summary_[stretch / 64].fetch_or(std::uint64_t{1} << (stretch % 64), std::memory_order_seq_cst);
  }

  Room& room_;
  // All of it is there, always.
  const bool whole_;
  os::MemoryFile file_;
  os::Mapping mapping_;
  Header* header_ = nullptr;
  std::atomic<std::uint64_t>* summary_ = nullptr;
  AtomicEntry* entries_ = nullptr;
  std::uint64_t table_offset_ = 0;
  std::uint64_t stretches_ = 0;
  std::optional<PlaceSums> sums_;
  SleeperCount sleepers_{0};
};

}  // namespace uzram::engine
