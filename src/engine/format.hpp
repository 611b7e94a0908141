// The layout of a device in its two memory files, and of one entry.
//
// Role: the only truth of a device. Whoever maps the table file and the pool file and knows this
// header (docs/format.md says the same in words) can read every page back; everything else the
// engine keeps is derived from it.
// Units: bytes unless named otherwise; integers are little-endian as on every machine this runs on.
//
// Table file:  Header | summary (1 bit a stretch, 64-bit words) | entries (8 bytes a page) | recipes
//              | sums of raw pages (4 bytes for 4096 of the pool), where there are checksums
// Pool file:   objects at place * kPlaceUnit
//
// Invariants: 1. A page whose stretch has a clear summary bit is empty, whatever its entry says.
// 2. An entry other than empty is published only after the bytes it points at are in the pool.
// 3. Lock, waiter and post-processing bits mean nothing to a new owner, which clears them.
// 4. A recipe is complete before it is counted, and counted before an object needs it; it never
// changes after.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace uzram::engine {

using PageIndex = std::uint64_t;
// A position in the pool in units of kPlaceUnit bytes.
using Place = std::uint64_t;

inline constexpr std::uint32_t kPlaceUnit = 16;
inline constexpr unsigned kPlaceUnitShift = 4;
// One page of the table file: the stretch of the disk whose entries it holds.
inline constexpr std::uint32_t kTablePageBytes = 4096;
inline constexpr std::uint32_t kStretchPages = kTablePageBytes / 8;
inline constexpr unsigned kStretchShift = 9;
static_assert(kStretchPages == 1U << kStretchShift);

inline constexpr std::array<char, 8> kMagic = {'u', 'z', 'r', 'a', 'm', 'd', 'e', 'v'};
inline constexpr std::uint32_t kFormatVersion = 2;
inline constexpr std::size_t kPriorities = 4;
inline constexpr std::uint32_t kRecipeSlots = 15;

struct CodecSlot {
  std::array<char, 16> name;  // zero-padded; empty: the priority is unused
  std::int32_t level;
  std::uint32_t dictionary;  // 0: none
};

struct Header {
  std::array<char, 8> magic;
  std::uint32_t format_version;
  std::uint32_t page_size_bytes;
  std::uint64_t disksize_bytes;
  std::uint64_t summary_offset;
  std::uint64_t table_offset;
  std::uint64_t mem_limit_bytes;
  std::uint32_t place_unit_bytes;
  std::uint32_t stretch_pages;
  std::array<CodecSlot, kPriorities> codecs;
  // Of the sums of raw pages; 0: nothing that is stored has a checksum.
  std::uint64_t sums_offset;
  // Tables that the device has trained for the codec of priority 0; recipe n - 1 is that of
  // generation n. 0 everywhere: it trains none.
  std::uint64_t recipes_offset;
  std::uint32_t recipe_slot_bytes;
  std::uint32_t recipe_count;
};
static_assert(std::is_trivially_copyable_v<Header>);
static_assert(sizeof(Header) == 176);
inline constexpr std::size_t kHeaderBytes = 4096;

enum class Kind : std::uint8_t {
  empty = 0,         // never written, or discarded; reads as zeroes
  fill = 1,          // one 8-byte word repeated; the word is in the entry
  fill_slot = 2,     // the same; the word is in the first 8 bytes of the object
  object = 3,        // compressed by the codec of `priority`
  raw = 4,           // stored as it is
  written_back = 5,  // on the backing device
};

// One entry of the page table, as a value. Bits, from the lowest:
//   0 lock, 1 waiters, 2-4 kind, 5 in post-processing, 6-7 age, 8 incompressible, 9-10 priority,
//   object, raw, fill_slot: 11-26 size - 1, 27-62 place
//   fill: 11 form (0: 12-63 are the word, sign-extended; 1: 12-43 are its two equal halves)
class Entry {
 public:
  static constexpr std::uint64_t kLock = 1;
  static constexpr std::uint64_t kWaiters = 2;

  constexpr Entry() = default;
  constexpr explicit Entry(std::uint64_t bits) : bits_(bits) {}

  static constexpr bool fill_fits(std::uint64_t word) noexcept {
    return sign_extend(word << kFillShift) == word || halves_equal(word);
  }
  // REQUIRES: fill_fits(word).
  static constexpr Entry fill(std::uint64_t word) noexcept {
    if (sign_extend(word << kFillShift) == word) {
      return Entry(kind_bits(Kind::fill) | word << kFillShift);
    }
    return Entry(kind_bits(Kind::fill) | kFillForm | (word & kHalf) << kFillShift);
  }
  // REQUIRES: 1 <= size <= 65536; place < 2^36; priority < kPriorities.
  static constexpr Entry stored(Kind kind, Place place, std::uint32_t size,
                                std::uint32_t priority) noexcept {
    return Entry(kind_bits(kind) | std::uint64_t{priority} << kPriorityShift |
                 std::uint64_t{size - 1} << kSizeShift | place << kPlaceShift);
  }

  [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
  [[nodiscard]] constexpr bool locked() const noexcept { return (bits_ & kLock) != 0; }
  [[nodiscard]] constexpr Kind kind() const noexcept {
    return static_cast<Kind>(bits_ >> kKindShift & 7);
  }
  // Whether the entry owns room in the pool.
  [[nodiscard]] constexpr bool owns_room() const noexcept {
    return kind() == Kind::object || kind() == Kind::raw || kind() == Kind::fill_slot;
  }
  [[nodiscard]] constexpr std::uint32_t priority() const noexcept {
    return static_cast<std::uint32_t>(bits_ >> kPriorityShift & 3);
  }
  // REQUIRES: owns_room().
  [[nodiscard]] constexpr std::uint32_t size() const noexcept {
    return static_cast<std::uint32_t>(bits_ >> kSizeShift & 0xffff) + 1;
  }
  // REQUIRES: owns_room().
  [[nodiscard]] constexpr Place place() const noexcept {
    return bits_ >> kPlaceShift & ((std::uint64_t{1} << 36) - 1);
  }
  // The same page at another place. REQUIRES: owns_room().
  [[nodiscard]] constexpr Entry moved_to(Place place) const noexcept {
    constexpr std::uint64_t kPlaceMask = ((std::uint64_t{1} << 36) - 1) << kPlaceShift;
    return Entry((bits_ & ~kPlaceMask) | place << kPlaceShift);
  }
  // REQUIRES: kind() == Kind::fill.
  [[nodiscard]] constexpr std::uint64_t fill_word() const noexcept {
    if ((bits_ & kFillForm) == 0) {
      return sign_extend(bits_ & ~((std::uint64_t{1} << kFillShift) - 1));
    }
    const std::uint64_t half = bits_ >> kFillShift & kHalf;
    return half << 32 | half;
  }

 private:
  static constexpr unsigned kKindShift = 2;
  static constexpr unsigned kPriorityShift = 9;
  static constexpr unsigned kSizeShift = 11;
  static constexpr unsigned kPlaceShift = 27;
  static constexpr unsigned kFillShift = 12;
  static constexpr std::uint64_t kFillForm = std::uint64_t{1} << 11;
  static constexpr std::uint64_t kHalf = 0xffffffff;

  static constexpr std::uint64_t kind_bits(Kind kind) noexcept {
    return static_cast<std::uint64_t>(kind) << kKindShift;
  }
  // The word whose upper 52 bits, as stored, are `shifted`.
  static constexpr std::uint64_t sign_extend(std::uint64_t shifted) noexcept {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(shifted) >> kFillShift);
  }
  static constexpr bool halves_equal(std::uint64_t word) noexcept {
    return (word >> 32) == (word & kHalf);
  }

  std::uint64_t bits_ = 0;
};

}  // namespace uzram::engine
