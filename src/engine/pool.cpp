#include "engine/pool.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <thread>
#include <utility>

#include "base/size.hpp"

namespace uzram::engine {
namespace {

constexpr std::size_t kMaxVictims = 8192;
// Runs shorter than this (64 bytes) stay in the free map unless something that small is wanted.
constexpr std::uint32_t kMinRunUnits = 4;
// How many spans a refill looks at before it prefers an empty one, and how many when there is none.
constexpr std::uint32_t kUsualSpans = 4;
constexpr std::uint32_t kThoroughSpans = 1024;
// Extents whose free maps are being loaded while one is put back.
constexpr std::size_t kPutBackAhead = 4;
// Fewer spans than this (256 KiB) are not worth draining the caches for.
constexpr std::uint32_t kMinHoledSpans = 4;

}  // namespace

Result<std::unique_ptr<Pool>> Pool::create(const std::string& name, std::uint32_t page_size_bytes,
                                           std::uint64_t mem_limit_bytes, Room& room,
                                           std::uint32_t kept_spans, const PlaceSums* sums) {
  auto pool =
      std::unique_ptr<Pool>(new Pool(room, page_size_bytes, mem_limit_bytes, kept_spans, sums));
  auto file = os::MemoryFile::create("uzram-pool:" + name);
  if (!file) {
    return std::move(file).error();
  }
  pool->file_ = std::move(*file);
  pool->bases_ = std::make_unique<std::atomic<std::byte*>[]>(kMaxChunks);
  pool->chunks_.reserve(kMaxChunks);
  {
    const MutexLock lock(pool->mutex_);
    pool->victims_.reserve(kMaxVictims);
    for (auto& list : pool->lists_) {
      list.fill(kNoSpan);
    }
  }
  if (pool->take_kept() != Errc::ok) {
    return Error{Errc::no_space, 0,
                 "device " + name + ": no memory for its reserve of " +
                     format_size(std::uint64_t{kept_spans} * kSpanBytes) +
                     "; free some, raise the limit of the control group or lower the reserve"};
  }
  return pool;
}

void Pool::link(SpanIndex index) noexcept {
  Span& span = span_at(index);
  SpanIndex& head = lists_[static_cast<std::size_t>(span.use)][bucket_of(span)];
  span.previous = kNoSpan;
  span.next = head;
  if (head != kNoSpan) {
    span_at(head).previous = index;
  }
  head = index;
  span.listed = true;
  ++listed_spans_[static_cast<std::size_t>(span.use)];
  add_listed(span.free_units);
}

// REQUIRES: free_units is what it was when the span was linked.
void Pool::unlink(SpanIndex index) noexcept {
  Span& span = span_at(index);
  if (span.previous != kNoSpan) {
    span_at(span.previous).next = span.next;
  } else {
    lists_[static_cast<std::size_t>(span.use)][bucket_of(span)] = span.next;
  }
  if (span.next != kNoSpan) {
    span_at(span.next).previous = span.previous;
  }
  span.listed = false;
  --listed_spans_[static_cast<std::size_t>(span.use)];
  add_listed(-std::uint64_t{span.free_units});
}

std::uint32_t Pool::take(const Demand& demand, std::span<Extent16> out) noexcept {
  for (;;) {
    std::uint32_t taken = 0;
    bool runs_low = false;
    {
      const MutexLock lock(mutex_);
      const std::uint32_t before = reserve_spans_;
      taken = take_locked(demand, false, out);
      ++activity_;
      runs_low = reserve_spans_ < before && reserve_spans_ < kept_now() + ahead_spans() / 2;
    }
    if (runs_low && keeper_ != nullptr) {
      keeper_->pool_wants_care();
    }
    if (taken != 0) {
      return taken;
    }
    if (grow(demand.use) == Errc::ok) {
      continue;
    }
    // Room that somebody else has claimed or is giving back may be all that is left.
    if (moving_spans_.load(std::memory_order_acquire) == 0) {
      break;
    }
    std::this_thread::yield();
  }
  if (demand.fresh_only) {
    return 0;
  }
  const MutexLock lock(mutex_);
  return take_locked(demand, true, out);
}

std::uint32_t Pool::take_locked(const Demand& demand, bool thorough,
                                std::span<Extent16> out) noexcept {
  // Partly used spans are given out again once a sixty-fourth of the pool is free in them; before
  // that they are left to become wholly free by themselves.
  const std::uint64_t slack_units = std::uint64_t{working_spans()} * (kSpanUnits / 64);
  std::uint32_t taken = 0;
  thorough = thorough || demand.use == SpanUse::slots;
  if (!demand.fresh_only && (thorough || listed_free_units_ > slack_units)) {
    taken = take_from_lists(demand, thorough, out);
    const auto fits = [&](const Extent16& extent) { return extent.count >= demand.units; };
    if (std::any_of(out.begin(), out.begin() + taken, fits)) {
      return taken;
    }
  }
  const std::uint32_t whole = take_from_reserve(demand, out.subspan(taken));
  if (whole != 0) {
    return taken + whole;
  }
  for (std::uint32_t i = 0; i < taken; ++i) {
    put_back(out[i]);
  }
  return 0;
}

// Leaves room in `out` for one extent more. A thorough search takes only what fits, so that short
// runs cannot fill `out` before a long one is found.
std::uint32_t Pool::take_from_lists(const Demand& demand, bool thorough,
                                    std::span<Extent16> out) noexcept {
  const std::uint32_t max_spans = thorough ? kThoroughSpans : kUsualSpans;
  const std::uint32_t shortest = thorough ? demand.units : std::min(demand.units, kMinRunUnits);
  std::uint32_t taken = 0;
  std::uint32_t visited = 0;
  auto& lists = lists_[static_cast<std::size_t>(demand.use)];
  for (std::size_t bucket = kBuckets; bucket-- > 0;) {
    // Relinking changes the list under the walk, so the next span is read first; a span that keeps
    // free units after the visit lands in this bucket or a lower one and is not met again.
    SpanIndex index = lists[bucket];
    while (index != kNoSpan) {
      if (visited++ == max_spans || taken + 1 >= out.size()) {
        return taken;
      }
      const SpanIndex next = span_at(index).next;
      const std::uint32_t got =
          take_from_span(index, demand, shortest, out.subspan(taken, out.size() - taken - 1));
      for (std::uint32_t i = 0; i < got; ++i) {
        if (out[taken + i].count >= demand.units) {
          return taken + got;
        }
      }
      taken += got;
      index = next;
    }
  }
  return taken;
}

std::uint32_t Pool::take_from_span(SpanIndex index, const Demand& demand, std::uint32_t shortest,
                                   std::span<Extent16> out) noexcept {
  Span& span = span_at(index);
  // Raw pages and slots are handed out one by one.
  const std::uint32_t longest = demand.use == SpanUse::objects ? kSpanUnits : demand.units;
  unlink(index);
  std::uint32_t taken = 0;
  std::uint32_t from = 0;
  while (taken < out.size()) {
    const Span::Run run = span.next_free_run(from, longest);
    if (run.count == 0) {
      break;
    }
    from = run.first + run.count;
    if (run.count >= shortest) {
      span.set_used(run.first, run.count);
      out[taken++] = {(Place{index} << kSpanShift) + run.first, run.count};
    }
  }
  if (span.free_units != 0) {
    link(index);
  }
  return taken;
}

std::uint32_t Pool::take_from_reserve(const Demand& demand, std::span<Extent16> out) noexcept {
  if (demand.compacting && reserve_spans_ <= compaction_leaves_) {
    return 0;
  }
  const SpanIndex index = pop_reserve();
  if (index == kNoSpan) {
    return 0;
  }
  Span& span = span_at(index);
  span.state = SpanState::in_use;
  span.use = demand.use;
  link(index);
  return take_from_span(index, demand, demand.units, out);
}

void Pool::prefetch_for_put_back(const Extent16& extent) noexcept {
  Span& span = span_at(static_cast<SpanIndex>(extent.first >> kSpanShift));
  __builtin_prefetch(&span.free_map[extent.first % kSpanUnits / 64], 1);
  __builtin_prefetch(&span.free_units, 1);
}

void Pool::put_back(const Extent16& extent) noexcept {
  const auto index = static_cast<SpanIndex>(extent.first >> kSpanShift);
  Span& span = span_at(index);
  const std::uint32_t free_units = span.free_units + extent.count;
  if (span.listed && free_units / kBucketUnits == bucket_of(span) && free_units != kSpanUnits) {
    // It stays on its list, whose other spans need not be looked at.
    span.set_free(static_cast<std::uint32_t>(extent.first % kSpanUnits), extent.count);
    add_listed(extent.count);
    return;
  }
  if (span.listed) {
    unlink(index);
  }
  span.set_free(static_cast<std::uint32_t>(extent.first % kSpanUnits), extent.count);
  if (span.free_units == kSpanUnits) {
    span.victim = false;
    push_reserve(index);
  } else if (!span.victim) {
    link(index);
  }
}

void Pool::give_back(std::span<const Extent16> extents) noexcept {
  bool holey = false;
  {
    const MutexLock lock(mutex_);
    for (std::size_t i = 0; i < extents.size(); ++i) {
      if (i + kPutBackAhead < extents.size()) {
        prefetch_for_put_back(extents[i + kPutBackAhead]);
      }
      put_back(extents[i]);
    }
    holey = holes() != Holes::few;
    ++activity_;
  }
  if (holey && keeper_ != nullptr && !told_of_holes_.load(std::memory_order_relaxed) &&
      !told_of_holes_.exchange(true, std::memory_order_seq_cst)) {
    keeper_->pool_wants_care();
  }
  return_surplus(usual_reserve(), kReserveSlackSpans);
}

Pool::Holes Pool::holes() const noexcept {
  const std::uint64_t spans = working_spans();
  if (spans < kMinHoleySpans || listed_free_units_ < spans * (kSpanUnits / kSomeHolesShare)) {
    return Holes::few;
  }
  return listed_free_units_ < spans * (kSpanUnits / kManyHolesShare) ? Holes::some : Holes::many;
}

Pool::Health Pool::health() noexcept {
  const MutexLock lock(mutex_);
  return {holes(), activity_};
}

std::uint32_t Pool::choose_victims(std::uint32_t max_spans) noexcept {
  const MutexLock lock(mutex_);
  compaction_leaves_ = std::min<std::uint32_t>(reserve_spans_, kept_now());
  for (const SpanUse use : {SpanUse::objects, SpanUse::raw}) {
    auto& lists = lists_[static_cast<std::size_t>(use)];
    const std::size_t first = victims_.size();
    const std::size_t most = std::min(
        {first + max_spans, first + listed_spans_[static_cast<std::size_t>(use)] / 2, kMaxVictims});
    std::uint64_t free_units = 0;
    for (std::size_t bucket = kBuckets; bucket-- > 1;) {
      while (lists[bucket] != kNoSpan && victims_.size() < most) {
        const SpanIndex index = lists[bucket];
        unlink(index);
        Span& span = span_at(index);
        span.victim = true;
        free_units += span.free_units;
        victims_.push_back(index);
      }
    }
    if (free_units < kSpanUnits) {
      // Moving these would not empty a single span.
      while (victims_.size() > first) {
        span_at(victims_.back()).victim = false;
        link(victims_.back());
        victims_.pop_back();
      }
    }
  }
  for (const SpanIndex index : victims_) {
    chunks_[index / kSpansPerChunk]->victims[index % kSpansPerChunk / 64] |= std::uint64_t{1}
                                                                             << (index % 64);
  }
  return static_cast<std::uint32_t>(victims_.size());
}

void Pool::release_victims() noexcept {
  const MutexLock lock(mutex_);
  for (const SpanIndex index : victims_) {
    chunks_[index / kSpansPerChunk]->victims[index % kSpansPerChunk / 64] = 0;
    Span& span = span_at(index);
    span.victim = false;
    if (span.state == SpanState::in_use && !span.listed && span.free_units != 0) {
      link(index);
    }
  }
  victims_.clear();
}

std::uint64_t Pool::used_max_bytes() const noexcept {
  // What has been claimed and is not installed yet counts as used.
  const std::uint32_t present = present_spans_.load(std::memory_order_relaxed);
  return std::uint64_t{std::max(present_max_.load(std::memory_order_relaxed), present)} *
         kSpanBytes;
}

void Pool::reset_used_max() noexcept {
  const MutexLock lock(mutex_);
  present_max_.store(present_spans_.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

std::uint32_t Pool::occupied_spans() const noexcept {
  const std::uint32_t others = moving_spans_.load(std::memory_order_relaxed) +
                               reserve_spans_.load(std::memory_order_relaxed);
  const std::uint32_t present = present_spans_.load(std::memory_order_relaxed);
  // Without the mutex they may be of different moments.
  return present - std::min(others, present);
}

std::uint64_t Pool::free_bytes() noexcept {
  const MutexLock lock(mutex_);
  const std::uint32_t reserve = reserve_spans_;
  const std::uint64_t spans = reserve - std::min(reserve, kept_spans_);
  return (listed_free_units_ + spans * kSpanUnits) * kPlaceUnit;
}

bool Pool::is_mostly_holes() const noexcept {
  const std::uint32_t occupied = occupied_spans();
  return occupied >= kMinHoledSpans && listed_free_units_.load(std::memory_order_relaxed) >=
                                           std::uint64_t{occupied} * (kSpanUnits / 2);
}

bool Pool::may_want_drain() const noexcept {
  return working_spans() <= drain_below_spans_.load(std::memory_order_relaxed) && is_mostly_holes();
}

bool Pool::wants_drain() noexcept {
  if (!may_want_drain()) {
    return false;
  }
  const MutexLock lock(mutex_);
  if (!may_want_drain()) {
    return false;
  }
  const std::uint32_t spans = working_spans();
  drain_below_spans_.store(spans - spans / 8, std::memory_order_relaxed);
  return true;
}

void Pool::check_invariants(std::uint64_t stored_units) noexcept {
  const auto require = [](bool holds) {
    if (!holds) {
      std::abort();
    }
  };
  const MutexLock lock(mutex_);
  std::uint64_t present = 0;
  std::uint64_t used_units = 0;
  std::uint64_t listed_units = 0;
  std::uint64_t reserve = 0;
  for (const auto& chunk : chunks_) {
    std::uint32_t absent = 0;
    std::array<std::uint8_t, kSpansPerChunk / kGroupSpans> reserve_of_group{};
    for (std::uint32_t i = 0; i < kSpansPerChunk; ++i) {
      const bool is_absent = (chunk->absent[i / 64] >> (i % 64) & 1) != 0;
      absent += is_absent ? 1 : 0;
      require(is_absent || i < chunk->known_spans);
      if (is_absent) {
        continue;
      }
      const Span& span = chunk->spans[i];
      std::uint32_t free_units = 0;
      for (const std::uint64_t word : span.free_map) {
        free_units += static_cast<std::uint32_t>(std::popcount(word));
      }
      require(free_units == span.free_units);
      require(span.state == SpanState::in_use || span.state == SpanState::reserve);
      require(!span.victim);
      require((span.state == SpanState::reserve) == (free_units == kSpanUnits));
      require(span.listed == (free_units != 0 && free_units != kSpanUnits));
      if (span.state == SpanState::reserve) {
        ++reserve_of_group[i / kGroupSpans];
      }
      ++present;
      reserve += span.state == SpanState::reserve ? 1 : 0;
      used_units += kSpanUnits - free_units;
      listed_units += span.listed ? free_units : 0;
    }
    require(absent == chunk->absent_spans);
    require(reserve_of_group == chunk->reserve_of_group);
  }
  require(present == present_spans_.load(std::memory_order_relaxed));
  require(used_units == stored_units);
  require(listed_units == listed_free_units_);
  require(reserve == reserve_spans_);
  std::uint64_t linked = 0;
  for (const bool whole : {false, true}) {
    for (SpanIndex at = whole ? whole_reserve_ : loose_reserve_; at != kNoSpan;
         at = span_at(at).next) {
      require(span_at(at).state == SpanState::reserve);
      require((reserve_of_group_of(at) == kGroupSpans) == whole);
      ++linked;
    }
  }
  require(linked == reserve);
}

}  // namespace uzram::engine
