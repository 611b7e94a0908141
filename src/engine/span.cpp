#include "engine/span.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

namespace uzram::engine {
namespace {

// Calls visit(word index, mask) for the units [first, first + count).
template <typename Visit>
void for_each_word(std::uint32_t first, std::uint32_t count, Visit visit) noexcept {
  while (count != 0) {
    const std::uint32_t bit = first % 64;
    const std::uint32_t here = std::min(count, 64 - bit);
    const std::uint64_t ones = here == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << here) - 1;
    visit(first / 64, ones << bit);
    first += here;
    count -= here;
  }
}

}  // namespace

void Span::set_free(std::uint32_t first, std::uint32_t count) noexcept {
  for_each_word(first, count, [this](std::size_t word, std::uint64_t mask) {
    assert((free_map[word] & mask) == 0);
    free_map[word] |= mask;
  });
  free_units += count;
}

void Span::set_used(std::uint32_t first, std::uint32_t count) noexcept {
  for_each_word(first, count, [this](std::size_t word, std::uint64_t mask) {
    assert((free_map[word] & mask) == mask);
    free_map[word] &= ~mask;
  });
  free_units -= count;
}

Span::Run Span::next_free_run(std::uint32_t from, std::uint32_t limit) const noexcept {
  while (from < kSpanUnits) {
    const std::uint64_t word = free_map[from / 64] >> (from % 64);
    if (word == 0) {
      from = (from / 64 + 1) * 64;
      continue;
    }
    from += static_cast<std::uint32_t>(std::countr_zero(word));
    std::uint32_t end = from;
    while (end < kSpanUnits && end - from < limit) {
      const auto ones =
          static_cast<std::uint32_t>(std::countr_one(free_map[end / 64] >> (end % 64)));
      const std::uint32_t room = 64 - end % 64;
      end += std::min(ones, room);
      if (ones < room) {
        break;
      }
    }
    return {from, std::min(end - from, limit)};
  }
  return {kSpanUnits, 0};
}

}  // namespace uzram::engine
