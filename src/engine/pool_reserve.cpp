// Pool's reserve: spans that are wholly free, and their way back to the system.
#include <algorithm>
#include <array>

#include "engine/pool.hpp"

namespace uzram::engine {
namespace {

constexpr std::size_t kReturnBatch = 64;
// Where groups are large pages, spans that are no whole group stay for their neighbours to come,
// as far as there are no more of them than this beyond the reserve.
constexpr std::uint32_t kLooseSlackSpans = 2 * kGroupSpans;

constexpr SpanIndex first_of_group(SpanIndex index) noexcept {
  return index / kGroupSpans * kGroupSpans;
}

}  // namespace

void Pool::set_limit(std::uint64_t bytes) noexcept {
  limit_bytes_.store(bytes, std::memory_order_relaxed);
  if (!keeps_reserve()) {
    return;
  }
  // A lower limit leaves less to be kept, a higher one more to be filled.
  trim_to_reserve();
  if (keeper_ != nullptr) {
    keeper_->pool_wants_care();
  }
}

std::uint32_t Pool::kept_now() const noexcept {
  const std::uint64_t limit_spans = limit_bytes() / kSpanBytes;
  if (kept_spans_ == 0 || limit_bytes() == 0) {
    return kept_spans_;
  }
  const std::uint32_t occupied = occupied_spans();
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(kept_spans_, limit_spans > occupied ? limit_spans - occupied : 0));
}

std::uint32_t Pool::ahead_spans() const noexcept {
  return std::clamp(working_spans() / 64, kMinAheadSpans, kMaxAheadSpans);
}

SpanIndex& Pool::reserve_list_of(SpanIndex index) noexcept {
  return reserve_of_group_of(index) == kGroupSpans ? whole_reserve_ : loose_reserve_;
}

void Pool::link_reserve(SpanIndex index) noexcept {
  SpanIndex& head = reserve_list_of(index);
  Span& span = span_at(index);
  span.previous = kNoSpan;
  span.next = head;
  if (head != kNoSpan) {
    span_at(head).previous = index;
  }
  head = index;
}

void Pool::unlink_reserve(SpanIndex index) noexcept {
  const Span& span = span_at(index);
  if (span.previous != kNoSpan) {
    span_at(span.previous).next = span.next;
  } else {
    reserve_list_of(index) = span.next;
  }
  if (span.next != kNoSpan) {
    span_at(span.next).previous = span.previous;
  }
}

void Pool::push_reserve(SpanIndex index) noexcept {
  span_at(index).state = SpanState::reserve;
  ++reserve_spans_;
  std::uint8_t& of_group = reserve_of_group_of(index);
  if (of_group + 1U < kGroupSpans) {
    ++of_group;
    link_reserve(index);
    return;
  }
  const SpanIndex first = first_of_group(index);
  for (SpanIndex other = first; other < first + kGroupSpans; ++other) {
    if (other != index) {
      unlink_reserve(other);
    }
  }
  ++of_group;
  // The first span is the first to be used again.
  for (SpanIndex span = first + kGroupSpans; span-- > first;) {
    link_reserve(span);
  }
}

SpanIndex Pool::pop_reserve() noexcept {
  if (loose_reserve_ == kNoSpan) {
    if (whole_reserve_ == kNoSpan) {
      return kNoSpan;
    }
    const SpanIndex first = pop_reserved_group();
    for (SpanIndex span = first + kGroupSpans; --span > first;) {
      push_reserve(span);
    }
    return first;
  }
  const SpanIndex index = loose_reserve_;
  unlink_reserve(index);
  --reserve_of_group_of(index);
  --reserve_spans_;
  return index;
}

SpanIndex Pool::pop_reserved_group() noexcept {
  const SpanIndex first = first_of_group(whole_reserve_);
  for (SpanIndex span = first; span < first + kGroupSpans; ++span) {
    unlink_reserve(span);
  }
  reserve_of_group_of(first) = 0;
  reserve_spans_ -= kGroupSpans;
  return first;
}

void Pool::return_surplus(std::uint32_t least, std::uint32_t slack) noexcept {
  std::array<SpanIndex, kReturnBatch> spans{};
  std::uint32_t count = 0;
  do {
    {
      const MutexLock lock(mutex_);
      count = surplus(least, slack, spans);
    }
    return_spans(std::span(spans).first(count));
  } while (count == spans.size());
}

std::uint32_t Pool::surplus(std::uint32_t least, std::uint32_t slack,
                            std::span<SpanIndex> out) noexcept {
  const std::uint32_t present = present_spans_.load(std::memory_order_relaxed);
  const std::uint32_t keep = kept_now() + std::max(least, working_spans() / 64);
  if (reserve_spans_ <= keep + slack) {
    return 0;
  }
  std::uint32_t count = 0;
  while (whole_reserve_ != kNoSpan && reserve_spans_ >= keep + kGroupSpans &&
         count + kGroupSpans <= out.size()) {
    const SpanIndex first = pop_reserved_group();
    for (SpanIndex span = first; span < first + kGroupSpans; ++span) {
      out[count++] = span;
    }
  }
  const std::uint32_t loose_slack =
      slack != 0 && present >= kLargeFromSpans ? kLooseSlackSpans : slack;
  if (reserve_spans_ > keep + loose_slack) {
    while (reserve_spans_ > keep && count < out.size()) {
      out[count++] = pop_reserve();
    }
  }
  for (const SpanIndex index : out.first(count)) {
    span_at(index).state = SpanState::moving;
  }
  moving_spans_.fetch_add(count, std::memory_order_relaxed);
  return count;
}

void Pool::return_spans(std::span<SpanIndex> spans) noexcept {
  std::sort(spans.begin(), spans.end());
  for (std::size_t begin = 0; begin < spans.size();) {
    std::size_t end = begin + 1;
    while (end < spans.size() && spans[end] == spans[end - 1] + 1) {
      ++end;
    }
    const auto count = static_cast<std::uint32_t>(end - begin);
    const Errc punched = file_.give_back(std::uint64_t{spans[begin]} * kSpanBytes,
                                         std::uint64_t{count} * kSpanBytes);
    const MutexLock lock(mutex_);
    moving_spans_.fetch_sub(count, std::memory_order_release);
    for (std::size_t i = begin; i < end; ++i) {
      if (punched == Errc::ok) {
        unclaim({spans[i], 1});
      } else {
        push_reserve(spans[i]);
      }
    }
    begin = end;
  }
}

}  // namespace uzram::engine
