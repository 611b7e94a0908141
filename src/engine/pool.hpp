// Pool: where compressed pages live.
//
// Role: step 6 of the data path, seen from its slow side: per-CPU caches (pool_cache.hpp) get
// extents of free units here in bulk and bring freed objects back in bulk. Objects of any size
// in steps of 16 bytes lie next to each other in spans of 64 KiB; there are no size classes, so
// an object wastes less than 16 bytes and a span nothing at its end. Holes that frees leave join
// with their neighbours in the span's free map and are given out again; a span that becomes
// wholly free goes back to the system. docs/decisions/pool.md has the reasons and the
// measurements.
// Units: Place and lengths in units of 16 bytes; bytes where named.
// Errors: no_space: over the limit, or the system has no memory.
// Reserve: spans that are wholly free. Some are held ready because more are likely to be wanted
// soon; besides, a pool can be made with a number of spans that are kept there for writes that find
// the system without memory. What takes them needs no room from the system, nor does anybody who
// holds the mutex meanwhile.
// Threads: all members. One mutex, held for tens of nanoseconds an object and not while room is
// taken or given back, or a chunk mapped; only room for more Span, 2 KiB for a MiB of objects, is
// taken under it where nothing is kept in reserve.
// Lock order: a cache's lock, then the mutex for adding chunks, then the pool's mutex.
// Invariants: 1. Every unit of a present span is exactly one of: part of a stored object, held
// by a cache, free in the map. 2. used_bytes is the sum of the spans that are not absent. 3.
// Except for room exempt from it, used_bytes grows only while it stays within the limit.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "uzram/error.hpp"

#include "base/mutex.hpp"
#include "engine/checksum.hpp"
#include "engine/format.hpp"
#include "engine/room.hpp"
#include "engine/span.hpp"
#include "os/memory_file.hpp"

namespace uzram::engine {

// Not initialised: arrays of it are filled as far as they are used.
struct Extent16 {
  Place first;
  std::uint32_t count;
};

constexpr std::uint32_t units_for(std::uint32_t bytes) noexcept {
  return (bytes + kPlaceUnit - 1) / kPlaceUnit;
}

// Is told that a pool has little room in reserve or many holes.
class PoolKeeper {
 public:
  // Threads: any, without a lock of the pool held. Cost: that of a few nanoseconds, most times.
  virtual void pool_wants_care() noexcept = 0;

 protected:
  ~PoolKeeper() = default;
};

class Pool {
 public:
  // `kept_spans` are taken into the reserve at once, and kept there. `sums`: get room with each span;
  // nullptr: there are none. Errors: no_space.
  static Result<std::unique_ptr<Pool>> create(const std::string& name,
                                              std::uint32_t page_size_bytes,
                                              std::uint64_t mem_limit_bytes, Room& room,
                                              std::uint32_t kept_spans = 0,
                                              const PlaceSums* sums = nullptr);

  // Where the object at `place` is mapped.
  // REQUIRES: `place` was given out by this pool, or belongs to an entry of its device.
  [[nodiscard]] std::byte* address(Place place) const noexcept {
    std::byte* const base = bases_[place >> kChunkShift].load(std::memory_order_acquire);
    return base + ((place & ((Place{1} << kChunkShift) - 1)) << kPlaceUnitShift);
  }

  // What a caller of take wants.
  struct Demand {
    // Room for slots is counted, but not held to the limit.
    SpanUse use = SpanUse::objects;
    // At least one extent of this length, in units.
    std::uint32_t units = 0;
    // Only from spans that hold nothing yet: compaction packs densely.
    bool fresh_only = false;
    // Leaves what is kept in reserve as it was when the compaction under way began.
    bool compacting = false;
  };
  // Gives extents of free units; at least one is `demand.units` long. Returns their number, 0 when
  // there is no such room (no_space); the caller may drain the caches and try again.
  // REQUIRES: out is not empty.
  std::uint32_t take(const Demand& demand, std::span<Extent16> out) noexcept;

  // Brings units back, in any order.
  void give_back(std::span<const Extent16> extents) noexcept;

  // Who takes care of the pool from now on; nullptr: nobody. REQUIRES: no other thread uses it yet,
  // or any more.
  void set_keeper(PoolKeeper* keeper) noexcept { keeper_ = keeper; }
  // Takes room from the system until the reserve is what it should be while the pool grows. Stops
  // at the limit and where the system has no memory to give; `scope`: whose limits count. Returns
  // whether what is to be kept is there.
  bool grow_ahead(Room::Scope scope = Room::Scope::system_too) noexcept;
  // Whether some of the reserve is kept, as far as the limit leaves room.
  [[nodiscard]] bool keeps_reserve() const noexcept { return kept_spans_ != 0; }
  // How much of the pool is holes between objects: hardly any; so many that it is worth compacting
  // while nothing else is done; so many that it is worth compacting at any time.
  enum class Holes : std::uint8_t { few, some, many };
  struct Health {
    Holes holes = Holes::few;
    // Changes whenever room is taken or given back.
    std::uint64_t activity = 0;
  };
  [[nodiscard]] Health health() noexcept;
  // The keeper wants to be told of holes again.
  void care_taken() noexcept { told_of_holes_.store(false, std::memory_order_seq_cst); }

  // Compaction, by one thread at a time. Chooses the emptiest spans of objects and of raw pages as
  // victims: only those with at least a sixteenth free, at most `max_spans` of each, and no more
  // than half of those there are, so that what they hold has somewhere to go even when the pool
  // cannot grow. Nothing is given out from them until release_victims. Returns their number.
  std::uint32_t choose_victims(std::uint32_t max_spans) noexcept;
  [[nodiscard]] bool is_victim(Place place) const noexcept {
    const auto span = static_cast<SpanIndex>(place >> kSpanShift);
    const Chunk& chunk = *chunks_[span / kSpansPerChunk];
    return (chunk.victims[span % kSpansPerChunk / 64] >> (span % 64) & 1) != 0;
  }
  void release_victims() noexcept;
  // Gives back what the reserve need not keep at all.
  void trim() noexcept { return_surplus(kMinReserveSpans, 0); }
  // Gives back what the reserve need not keep while the device is in use.
  void trim_to_reserve() noexcept { return_surplus(usual_reserve(), 0); }
  // Spans that hold or may hold objects: neither absent nor wholly free.
  [[nodiscard]] std::uint32_t occupied_spans() const noexcept;

  [[nodiscard]] std::uint32_t page_units() const noexcept { return page_units_; }
  void set_limit(std::uint64_t bytes) noexcept;
  [[nodiscard]] std::uint64_t limit_bytes() const noexcept {
    return limit_bytes_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t used_bytes() const noexcept {
    return std::uint64_t{present_spans_.load(std::memory_order_relaxed)} * kSpanBytes;
  }
  [[nodiscard]] std::uint64_t used_max_bytes() const noexcept;
  void reset_used_max() noexcept;
  // Free units that could be given out without the reserve that is kept, in bytes.
  [[nodiscard]] std::uint64_t free_bytes() noexcept;
  // Whether half of the pool is holes: what caches hold of a span then keeps much from going back.
  // A guess, without the mutex.
  [[nodiscard]] bool is_mostly_holes() const noexcept;
  // Whether more than half of the pool is holes and it has shrunk by an eighth since this was last
  // true: then extents held by caches may be what keeps spans from going back.
  [[nodiscard]] bool wants_drain() noexcept;
  [[nodiscard]] std::uint64_t metadata_bytes() const noexcept {
    return metadata_bytes_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] int fd() const noexcept { return file_.fd(); }

  // Walks everything and aborts when an invariant does not hold. For tests.
  // REQUIRES: no other thread uses the pool; all caches drained.
  void check_invariants(std::uint64_t stored_units) noexcept;

 private:
  // Lists of spans by their number of free units, 256 to a bucket; the last bucket is met only
  // between leaving the reserve and the first take.
  static constexpr std::uint32_t kBucketUnits = 256;
  static constexpr std::size_t kBuckets = kSpanUnits / kBucketUnits + 1;
  static constexpr std::uint32_t kMinGrowSpans = 4;
  static constexpr std::uint32_t kMaxGrowSpans = kGroupSpans;
  // From this size on, 32 MiB, a pool grows by whole groups; what a group holds in vain is little
  // beside it.
  static constexpr std::uint32_t kLargeFromSpans = 512;
  static constexpr std::uint32_t kMinReserveSpans = 4;
  // What the keeper holds in reserve, as far as a sixty-fourth of the pool goes, besides what is kept
  // there anyway.
  static constexpr std::uint32_t kMinAheadSpans = 8;
  static constexpr std::uint32_t kMaxAheadSpans = 64;
  // Holes are some from a thirty-second of the pool on, and many from a twelfth; smaller pools than
  // this have few.
  static constexpr std::uint32_t kSomeHolesShare = 32;
  static constexpr std::uint32_t kManyHolesShare = 12;
  static constexpr std::uint32_t kMinHoleySpans = 64;

  struct SpanRange {
    SpanIndex first = 0;
    std::uint32_t count = 0;
  };

  Pool(Room& room, std::uint32_t page_size_bytes, std::uint64_t mem_limit_bytes,
       std::uint32_t kept_spans, const PlaceSums* sums) noexcept
      : room_(room),
        page_units_(units_for(page_size_bytes)),
        kept_spans_(kept_spans),
        sums_(sums),
        limit_bytes_(mem_limit_bytes) {}

  Span& span_at(SpanIndex index) noexcept UZRAM_REQUIRES(mutex_) {
    return chunks_[index / kSpansPerChunk]->spans[index % kSpansPerChunk];
  }
  std::size_t bucket_of(const Span& span) const noexcept { return span.free_units / kBucketUnits; }
  void link(SpanIndex index) noexcept UZRAM_REQUIRES(mutex_);
  void unlink(SpanIndex index) noexcept UZRAM_REQUIRES(mutex_);
  // The reserve: whole groups on one list, the other spans on another.
  void push_reserve(SpanIndex index) noexcept UZRAM_REQUIRES(mutex_);
  // A span that leaves the reserve, of no whole group while there is another; kNoSpan: it is empty.
  SpanIndex pop_reserve() noexcept UZRAM_REQUIRES(mutex_);
  std::uint8_t& reserve_of_group_of(SpanIndex index) noexcept UZRAM_REQUIRES(mutex_) {
    return chunks_[index / kSpansPerChunk]->reserve_of_group[index % kSpansPerChunk / kGroupSpans];
  }
  SpanIndex& reserve_list_of(SpanIndex index) noexcept UZRAM_REQUIRES(mutex_);
  void link_reserve(SpanIndex index) noexcept UZRAM_REQUIRES(mutex_);
  void unlink_reserve(SpanIndex index) noexcept UZRAM_REQUIRES(mutex_);
  // The first span of a whole group that leaves the reserve. REQUIRES: there is one.
  SpanIndex pop_reserved_group() noexcept UZRAM_REQUIRES(mutex_);
  // Spans of the pool, but for those that are kept in reserve.
  [[nodiscard]] std::uint32_t working_spans() const noexcept {
    const std::uint32_t present = present_spans_.load(std::memory_order_relaxed);
    return present - std::min(present, kept_spans_);
  }
  // What is to be kept in reserve now: no more than what is stored leaves of the limit.
  [[nodiscard]] std::uint32_t kept_now() const noexcept;
  // What the keeper holds ready besides while the pool grows.
  [[nodiscard]] std::uint32_t ahead_spans() const noexcept;
  // What is no surplus while the device is in use, besides what is kept.
  [[nodiscard]] std::uint32_t usual_reserve() const noexcept {
    return keeper_ == nullptr ? kMinReserveSpans : ahead_spans();
  }
  [[nodiscard]] Holes holes() const noexcept UZRAM_REQUIRES(mutex_);
  // A guess, without the mutex.
  [[nodiscard]] bool may_want_drain() const noexcept;

  std::uint32_t take_locked(const Demand& demand, bool thorough, std::span<Extent16> out) noexcept
      UZRAM_REQUIRES(mutex_);
  std::uint32_t take_from_lists(const Demand& demand, bool thorough,
                                std::span<Extent16> out) noexcept UZRAM_REQUIRES(mutex_);
  // Runs of at least `shortest` units.
  std::uint32_t take_from_span(SpanIndex index, const Demand& demand, std::uint32_t shortest,
                               std::span<Extent16> out) noexcept UZRAM_REQUIRES(mutex_);
  std::uint32_t take_from_reserve(const Demand& demand, std::span<Extent16> out) noexcept
      UZRAM_REQUIRES(mutex_);
  void put_back(const Extent16& extent) noexcept UZRAM_REQUIRES(mutex_);
  void prefetch_for_put_back(const Extent16& extent) noexcept UZRAM_REQUIRES(mutex_);
  // Adds to listed_free_units_, modulo 2^64.
  void add_listed(std::uint64_t units) noexcept UZRAM_REQUIRES(mutex_) {
    // Nobody else changes it meanwhile.
    listed_free_units_.store(listed_free_units_.load(std::memory_order_relaxed) + units,
                             std::memory_order_relaxed);
  }

  // Takes more spans from the system: into the reserve, or one for slots, which nobody else may
  // use.
  Errc grow(SpanUse use) noexcept;
  // The same, at most `most` spans. Errors: no_space.
  Errc grow_by(SpanUse use, std::uint32_t most,
               Room::Scope scope = Room::Scope::system_too) noexcept;
  // Takes what is to be kept in reserve. Errors: no_space.
  Errc take_kept() noexcept;
  // Takes memory for the claimed spans. Errors: no_space; then they are absent again.
  Errc populate(SpanRange range, Room::Scope scope) noexcept;
  // As many absent spans as growing for `use` should take, at most `most` and what the limit
  // allows.
  SpanRange claim(SpanUse use, std::uint32_t most, Room::Scope scope) noexcept;
  // How many spans growing should take; 0: the limit allows none.
  std::uint32_t growth(SpanUse use, std::uint32_t most) noexcept UZRAM_REQUIRES(mutex_);
  // Whether a chunk has absent spans; first_absent_chunk_ is the first that has.
  bool has_absent() noexcept UZRAM_REQUIRES(mutex_);
  // REQUIRES: has_absent(); most is not 0.
  SpanRange claim_absent(std::uint32_t most) noexcept UZRAM_REQUIRES(mutex_);
  // Absent spans of one chunk become claimed.
  SpanRange claim_of_chunk(std::uint32_t number, std::uint32_t first, std::uint32_t count) noexcept
      UZRAM_REQUIRES(mutex_);
  // Populated spans become usable.
  void install(SpanRange range, SpanUse use) noexcept UZRAM_REQUIRES(mutex_);
  // A claim comes to nothing.
  void give_up(SpanRange range) noexcept UZRAM_REQUIRES(mutex_);
  // The spans are absent again.
  void unclaim(SpanRange range) noexcept UZRAM_REQUIRES(mutex_);
  // Adds the chunk of that number unless somebody else has. Errors: no_space.
  Errc add_chunk(std::size_t number, Room::Scope scope) noexcept;
  // REQUIRES: the mutex is held, or nobody else knows the chunk.
  Errc know_spans(Chunk& chunk, std::uint32_t number, std::uint32_t count,
                  Room::Scope scope) noexcept;
  Errc take_sums(const PlaceSums::Range& range, Room::Scope scope) noexcept;

  // Spans kept beyond the reserve before any go back, so that they go back in large pieces; larger
  // ones cost hardly less for each page, and hold up whoever gives them back.
  static constexpr std::uint32_t kReserveSlackSpans = 16;
  // Gives back what is beyond the reserve that is kept and the greater of `least` and a sixty-fourth
  // of the pool, once there are `slack` spans more than that.
  void return_surplus(std::uint32_t least, std::uint32_t slack) noexcept;
  std::uint32_t surplus(std::uint32_t least, std::uint32_t slack, std::span<SpanIndex> out) noexcept
      UZRAM_REQUIRES(mutex_);
  void return_spans(std::span<SpanIndex> spans) noexcept;

  Room& room_;
  PoolKeeper* keeper_ = nullptr;
  // The keeper knows, and has not said that it is done.
  std::atomic<bool> told_of_holes_{false};
  os::MemoryFile file_;
  const std::uint32_t page_units_;
  // What the reserve is to hold at least.
  const std::uint32_t kept_spans_;
  const PlaceSums* const sums_;
  std::atomic<std::uint64_t> limit_bytes_;
  std::atomic<std::uint32_t> present_spans_{0};
  std::atomic<std::uint32_t> present_max_{0};
  // Spans on their way from absent to present or back; they count as present.
  std::atomic<std::uint32_t> moving_spans_{0};
  std::atomic<std::uint64_t> metadata_bytes_{0};
  // Mapped address of each chunk; written once.
  std::unique_ptr<std::atomic<std::byte*>[]> bases_;

  // For adding chunks, one after the other.
  Mutex growth_mutex_;
  mutable Mutex mutex_;
  // Never shrinks; reserved for kMaxChunks, so that is_victim may read while it grows.
  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::array<std::array<SpanIndex, kBuckets>, kSpanUses> lists_ UZRAM_GUARDED_BY(mutex_){};
  std::array<std::uint32_t, kSpanUses> listed_spans_ UZRAM_GUARDED_BY(mutex_){};
  // Changed under the mutex only.
  std::atomic<std::uint64_t> listed_free_units_ = 0;
  std::uint64_t activity_ UZRAM_GUARDED_BY(mutex_) = 0;
  // The size at which wants_drain may be true next; changed under the mutex only.
  std::atomic<std::uint32_t> drain_below_spans_ = 0;
  SpanIndex whole_reserve_ UZRAM_GUARDED_BY(mutex_) = kNoSpan;
  SpanIndex loose_reserve_ UZRAM_GUARDED_BY(mutex_) = kNoSpan;
  // Changed under the mutex only.
  std::atomic<std::uint32_t> reserve_spans_ = 0;
  // The least that a compaction leaves of the reserve.
  std::uint32_t compaction_leaves_ UZRAM_GUARDED_BY(mutex_) = 0;
  // No chunk below this one has absent spans.
  std::uint32_t first_absent_chunk_ UZRAM_GUARDED_BY(mutex_) = 0;
  std::vector<SpanIndex> victims_ UZRAM_GUARDED_BY(mutex_);
};

}  // namespace uzram::engine
