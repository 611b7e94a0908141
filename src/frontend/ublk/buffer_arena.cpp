#include "frontend/ublk/buffer_arena.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "base/size.hpp"

namespace uzram::ublk {
namespace {

constexpr std::size_t kWordBits = 64;

constexpr std::size_t units_of(std::size_t bytes) noexcept {
  return (bytes + BufferArena::kUnitBytes - 1) / BufferArena::kUnitBytes;
}

}  // namespace

Result<std::unique_ptr<BufferArena>> BufferArena::create(std::size_t bytes, bool present) {
  os::Mapping region = os::reserve_private(bytes);
  if (region.data() == nullptr ||
      (present && os::take_private_room(region.data(), bytes) != Errc::ok)) {
    return Error{Errc::no_space, 0,
                 fmt::format("ublk: no memory for {} of buffers; expected as much to be free, or a "
                             "smaller max-io, depth or number of queues",
                             format_size(bytes))};
  }
  return std::unique_ptr<BufferArena>(new BufferArena(std::move(region), bytes / kUnitBytes));
}

BufferArena::BufferArena(os::Mapping region, std::size_t units)
    : region_(std::move(region)), units_(units), taken_((units + kWordBits - 1) / kWordBits) {}

std::byte* BufferArena::take(std::size_t bytes) noexcept {
  const std::size_t wanted = units_of(bytes);
  for (std::size_t first = next(false, 0); first + wanted <= units_;) {
    const std::size_t end = next(true, first);
    if (end - first >= wanted) {
      mark(first, wanted, true);
      return region_.data() + first * kUnitBytes;
    }
    first = next(false, end);
  }
  return nullptr;
}

void BufferArena::give_back(const std::byte* piece, std::size_t bytes) noexcept {
  mark(static_cast<std::size_t>(piece - region_.data()) / kUnitBytes, units_of(bytes), false);
}

std::size_t BufferArena::next(bool taken, std::size_t from) const noexcept {
  while (from < units_) {
    const std::uint64_t word = taken ? taken_[from / kWordBits] : ~taken_[from / kWordBits];
    const std::uint64_t left = word >> (from % kWordBits);
    if (left != 0) {
      return std::min(from + static_cast<std::size_t>(std::countr_zero(left)), units_);
    }
    from = (from / kWordBits + 1) * kWordBits;
  }
  return units_;
}

void BufferArena::mark(std::size_t first, std::size_t count, bool taken) noexcept {
  for (std::size_t unit = first; unit < first + count; ++unit) {
    const std::uint64_t bit = std::uint64_t{1} << (unit % kWordBits);
    std::uint64_t& word = taken_[unit / kWordBits];
    word = taken ? word | bit : word & ~bit;
  }
}

}  // namespace uzram::ublk
