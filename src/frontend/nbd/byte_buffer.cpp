#include "frontend/nbd/byte_buffer.hpp"

#include <algorithm>
#include <cstring>

#include "engine/room.hpp"

namespace uzram::nbd {
namespace {

// Smaller buffers, of which a connection has a few, are covered by the margin below the limit.
constexpr std::size_t kLargeBytes = 512U << 10;

}  // namespace

bool ByteBuffer::reserve(std::size_t capacity) noexcept {
  if (capacity <= capacity_) {
    return true;
  }
  if (capacity >= kLargeBytes && !engine::Room::process().ask(capacity)) {
    return false;
  }
  // Not realloc: it would copy the whole old block, and only size_ bytes of it count.
  std::unique_ptr<std::byte, Free> grown(static_cast<std::byte*>(std::malloc(capacity)));
  if (!grown) {
    return false;
  }
  if (size_ != 0) {
    std::memcpy(grown.get(), data_.get(), size_);
  }
  data_ = std::move(grown);
  capacity_ = capacity;
  return true;
}

std::byte* ByteBuffer::extend(std::size_t count) noexcept {
  constexpr std::size_t kSmallest = 4096;
  if (count > capacity_ - size_ &&
      !reserve(std::max({size_ + count, capacity_ + capacity_ / 2, kSmallest}))) {
    return nullptr;
  }
  std::byte* const begin = data_.get() + size_;
  size_ += count;
  return begin;
}

void ByteBuffer::release() noexcept {
  data_.reset();
  size_ = 0;
  capacity_ = 0;
}

}  // namespace uzram::nbd
