// Pool's dealings with the system: chunks are mapped, spans taken.
#include <algorithm>
#include <bit>
#include <new>

#include "base/size.hpp"
#include "engine/pool.hpp"

namespace uzram::engine {
namespace {

// The bits of a group's spans.
constexpr std::uint32_t kWholeGroup = ~std::uint32_t{0};
static_assert(kGroupSpans == 32);

}  // namespace

Errc Pool::grow(SpanUse use) noexcept {
  // Close to the end of the system's memory the smallest piece may still be had.
  return grow_by(use, kMaxGrowSpans) == Errc::ok ? Errc::ok : grow_by(use, 1);
}

Errc Pool::grow_by(SpanUse use, std::uint32_t most, Room::Scope scope) noexcept {
  const SpanRange range = claim(use, most, scope);
  if (range.count == 0) {
    return Errc::no_space;
  }
  const Errc populated = populate(range, scope);
  const MutexLock lock(mutex_);
  if (populated != Errc::ok) {
    give_up(range);
    return populated;
  }
  install(range, use);
  return Errc::ok;
}

bool Pool::grow_ahead(Room::Scope scope) noexcept {
  const auto lacks = [this](std::uint32_t besides) {
    const MutexLock lock(mutex_);
    return reserve_spans_ < kept_now() + besides;
  };
  while (lacks(ahead_spans())) {
    if (grow_by(SpanUse::objects, kMaxGrowSpans, scope) != Errc::ok &&
        (!lacks(0) || grow_by(SpanUse::objects, 1, scope) != Errc::ok)) {
      break;
    }
  }
  return !lacks(0);
}

Errc Pool::take_kept() noexcept {
  // Before any of it is taken, not when the machine has nothing left.
  if (const Room::Grant grant = room_.ask(std::uint64_t{kept_spans_} * kSpanBytes); !grant) {
    return Errc::no_space;
  }
  for (std::uint32_t taken = 0; taken < kept_spans_;) {
    if (grow_by(SpanUse::objects, std::min(kept_spans_ - taken, kMaxGrowSpans)) != Errc::ok) {
      return Errc::no_space;
    }
    taken = reserve_spans_.load(std::memory_order_relaxed);
  }
  return Errc::ok;
}

Pool::SpanRange Pool::claim(SpanUse use, std::uint32_t most, Room::Scope scope) noexcept {
  for (;;) {
    std::size_t chunks = 0;
    {
      const MutexLock lock(mutex_);
      const std::uint32_t count = growth(use, most);
      if (count == 0) {
        return {};
      }
      if (has_absent()) {
        return claim_absent(count);
      }
      chunks = chunks_.size();
    }
    if (add_chunk(chunks, scope) != Errc::ok) {
      return {};
    }
  }
}

std::uint32_t Pool::growth(SpanUse use, std::uint32_t most) noexcept {
  if (use == SpanUse::slots) {
    return 1;
  }
  const std::uint32_t present = present_spans_.load(std::memory_order_relaxed);
  std::uint64_t want = std::min(std::max(present, kept_spans_) >= kLargeFromSpans
                                    ? kGroupSpans
                                    : std::clamp(present / 128, kMinGrowSpans, kMaxGrowSpans),
                                most);
  if (const std::uint64_t limit = limit_bytes(); limit != 0) {
    const std::uint64_t used = std::uint64_t{present} * kSpanBytes;
    want = std::min(want, limit > used ? (limit - used) / kSpanBytes : 0);
  }
  return static_cast<std::uint32_t>(want);
}

void Pool::install(SpanRange range, SpanUse use) noexcept {
  for (std::uint32_t i = range.count; i-- > 0;) {
    const SpanIndex index = range.first + i;
    Span& span = span_at(index);
    span.free_map.fill(~std::uint64_t{0});
    span.free_units = kSpanUnits;
    span.listed = false;
    span.victim = false;
    if (use == SpanUse::slots) {
      span.state = SpanState::in_use;
      span.use = use;
      link(index);
    } else {
      push_reserve(index);
    }
  }
  moving_spans_.fetch_sub(range.count, std::memory_order_release);
  drain_below_spans_.store(
      std::max(drain_below_spans_.load(std::memory_order_relaxed), working_spans()),
      std::memory_order_relaxed);
  const std::uint32_t present = present_spans_.load(std::memory_order_relaxed);
  present_max_.store(std::max(present_max_.load(std::memory_order_relaxed), present),
                     std::memory_order_relaxed);
}

Errc Pool::populate(SpanRange range, Room::Scope scope) noexcept {
  const std::uint64_t offset = std::uint64_t{range.first} * kSpanBytes;
  const std::size_t size = std::size_t{range.count} * kSpanBytes;
  const Room::Grant grant = room_.ask(size, scope);
  if (!grant) {
    return Errc::no_space;
  }
  std::byte* const at = address(Place{range.first} << kSpanShift);
  if (range.count == kGroupSpans && range.first % kGroupSpans == 0 &&
      file_.take_large_page(at) == Errc::ok) {
    return Errc::ok;
  }
  if (file_.take_room(at, offset, size) != Errc::ok) {
    // Whatever part of it was taken goes back; should that fail the room stays taken, unused.
    (void)file_.give_back(offset, size);
    return Errc::no_space;
  }
  return Errc::ok;
}

bool Pool::has_absent() noexcept {
  while (first_absent_chunk_ < chunks_.size() && chunks_[first_absent_chunk_]->absent_spans == 0) {
    ++first_absent_chunk_;
  }
  return first_absent_chunk_ < chunks_.size();
}

// Spans count as present from here on, so that threads that grow at once keep the limit together.
Pool::SpanRange Pool::claim_absent(std::uint32_t most) noexcept {
  if (most == kGroupSpans) {
    for (std::size_t number = first_absent_chunk_; number < chunks_.size(); ++number) {
      const Chunk& chunk = *chunks_[number];
      for (std::uint32_t first = 0; chunk.absent_spans >= kGroupSpans && first < kSpansPerChunk;
           first += kGroupSpans) {
        if (static_cast<std::uint32_t>(chunk.absent[first / 64] >> (first % 64)) == kWholeGroup) {
          return claim_of_chunk(static_cast<std::uint32_t>(number), first, kGroupSpans);
        }
      }
    }
  }
  const Chunk& chunk = *chunks_[first_absent_chunk_];
  std::uint32_t first = 0;
  while (chunk.absent[first / 64] == 0) {
    first += 64;
  }
  first += static_cast<std::uint32_t>(std::countr_zero(chunk.absent[first / 64]));
  std::uint32_t count = 0;
  while (count < most && first + count < kSpansPerChunk &&
         (chunk.absent[(first + count) / 64] >> ((first + count) % 64) & 1) != 0) {
    ++count;
  }
  return claim_of_chunk(first_absent_chunk_, first, count);
}

Pool::SpanRange Pool::claim_of_chunk(std::uint32_t number, std::uint32_t first,
                                     std::uint32_t count) noexcept {
  Chunk& chunk = *chunks_[number];
  if (know_spans(chunk, number, first + count, Room::Scope::system_too) != Errc::ok) {
    return {};
  }
  for (std::uint32_t i = first; i < first + count; ++i) {
    chunk.absent[i / 64] &= ~(std::uint64_t{1} << (i % 64));
    chunk.spans[i].state = SpanState::moving;
  }
  chunk.absent_spans -= count;
  present_spans_.fetch_add(count, std::memory_order_relaxed);
  moving_spans_.fetch_add(count, std::memory_order_relaxed);
  return {number * kSpansPerChunk + first, count};
}

void Pool::give_up(SpanRange range) noexcept {
  moving_spans_.fetch_sub(range.count, std::memory_order_release);
  unclaim(range);
}

void Pool::unclaim(SpanRange range) noexcept {
  const std::uint32_t number = range.first / kSpansPerChunk;
  Chunk& chunk = *chunks_[number];
  for (std::uint32_t i = 0; i < range.count; ++i) {
    const std::uint32_t span = range.first % kSpansPerChunk + i;
    chunk.spans[span].state = SpanState::absent;
    chunk.absent[span / 64] |= std::uint64_t{1} << (span % 64);
  }
  chunk.absent_spans += range.count;
  first_absent_chunk_ = std::min(first_absent_chunk_, number);
  present_spans_.fetch_sub(range.count, std::memory_order_relaxed);
}

Errc Pool::add_chunk(std::size_t number, Room::Scope scope) noexcept {
  const MutexLock growing(growth_mutex_);
  {
    const MutexLock lock(mutex_);
    if (chunks_.size() != number) {
      return Errc::ok;
    }
  }
  if (number == kMaxChunks) {
    return Errc::no_space;
  }
  const std::uint64_t offset = number * kChunkBytes;
  auto chunk = std::unique_ptr<Chunk>(new (std::nothrow) Chunk);
  if (chunk == nullptr || file_.resize(offset + kChunkBytes) != Errc::ok) {
    return Errc::no_space;
  }
  chunk->memory = file_.map(offset, kChunkBytes, os::kLargePage);
  chunk->span_memory =
      os::reserve_private(round_up(kSpansPerChunk * sizeof(Span), os::kSystemPage));
  if (chunk->memory.data() == nullptr || chunk->span_memory.data() == nullptr) {
    return Errc::no_space;
  }
  chunk->spans = reinterpret_cast<Span*>(chunk->span_memory.data());
  chunk->absent.fill(~std::uint64_t{0});
  // Whoever claims spans later holds the mutex, for which writers wait.
  if (keeps_reserve() &&
      know_spans(*chunk, static_cast<std::uint32_t>(number), kSpansPerChunk, scope) != Errc::ok) {
    return Errc::no_space;
  }
  const MutexLock lock(mutex_);
  bases_[number].store(chunk->memory.data(), std::memory_order_release);
  chunks_.push_back(std::move(chunk));
  return Errc::ok;
}

Errc Pool::know_spans(Chunk& chunk, std::uint32_t number, std::uint32_t count,
                      Room::Scope scope) noexcept {
  if (count <= chunk.known_spans) {
    return Errc::ok;
  }
  if (sums_ != nullptr) {
    const auto range = PlaceSums::room_for(number, chunk.known_spans, count);
    if (const Errc failed = take_sums(range, scope); failed != Errc::ok) {
      return failed;
    }
  }
  const std::size_t from = round_up(chunk.known_spans * sizeof(Span), os::kSystemPage);
  const std::size_t to = round_up(count * sizeof(Span), os::kSystemPage);
  if (from < to) {
    const Room::Grant grant = room_.ask(to - from, scope);
    if (!grant || os::take_private_room(chunk.span_memory.data() + from, to - from) != Errc::ok) {
      return Errc::no_space;
    }
    metadata_bytes_.fetch_add(to - from, std::memory_order_relaxed);
  }
  chunk.known_spans = count;
  return Errc::ok;
}

Errc Pool::take_sums(const PlaceSums::Range& range, Room::Scope scope) noexcept {
  if (range.from == range.to) {
    return Errc::ok;
  }
  const Room::Grant grant = room_.ask(range.to - range.from, scope);
  return grant ? sums_->take_room(range) : Errc::no_space;
}

}  // namespace uzram::engine
