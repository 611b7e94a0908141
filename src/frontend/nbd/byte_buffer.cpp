#include "frontend/nbd/byte_buffer.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "engine/room.hpp"

namespace uzram::nbd {
namespace {

// Smaller buffers, of which a connection has a few, are not counted.
constexpr std::size_t kLargeBytes = 512U << 10;

// Capacities of all large buffers of the process.
std::atomic<std::size_t> large_bytes{0};

constexpr std::size_t counted(std::size_t capacity) {
  return capacity >= kLargeBytes ? capacity : 0;
}

}  // namespace

bool ByteBuffer::scarce() noexcept {
  return large_bytes.load(std::memory_order_relaxed) > kGuaranteedBytes / 2;
}

bool ByteBuffer::reserve(std::size_t capacity) noexcept {
  if (capacity <= capacity_) {
    return true;
  }
  const std::size_t more = counted(capacity) - counted(capacity_);
  const bool guaranteed =
      large_bytes.fetch_add(more, std::memory_order_relaxed) + more <= kGuaranteedBytes;
  if (more != 0 && !guaranteed && !engine::Room::process().ask(capacity)) {
    large_bytes.fetch_sub(more, std::memory_order_relaxed);
    return false;
  }
  // Not realloc: it would copy the whole old block, and only size_ bytes of it count.
  std::unique_ptr<std::byte, Free> grown(static_cast<std::byte*>(std::malloc(capacity)));
  if (!grown) {
    large_bytes.fetch_sub(more, std::memory_order_relaxed);
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
  large_bytes.fetch_sub(counted(capacity_), std::memory_order_relaxed);
  data_.reset();
  size_ = 0;
  capacity_ = 0;
}

}  // namespace uzram::nbd
