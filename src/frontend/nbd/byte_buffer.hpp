// ByteBuffer: a run of bytes that grows without being cleared.
//
// Role: replies are laid out in one, received bytes lie in one. std::vector would write zeroes over
// room that data is about to be decompressed into.
// Ownership: owns its memory; pointers into it hold until the next call that may grow or release.
// Errors: a call that cannot get memory changes nothing and says so. All large buffers of the process
// together may take kGuaranteedBytes whatever happens, so that a full device can still be read; the
// margin that engine/room.hpp keeps below every memory limit is meant for such things. What is more
// than that must be granted by it, so that clients with large requests on many connections get an
// error and the server is not killed.
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>

namespace uzram::nbd {

class ByteBuffer {
 public:
  ByteBuffer() = default;
  ByteBuffer(ByteBuffer&& other) noexcept { swap(other); }
  ByteBuffer& operator=(ByteBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ByteBuffer(const ByteBuffer&) = delete;
  ByteBuffer& operator=(const ByteBuffer&) = delete;
  ~ByteBuffer() { release(); }

  // Whether large buffers have taken so much that batches should stay small.
  [[nodiscard]] static bool scarce() noexcept;

  [[nodiscard]] std::byte* data() noexcept { return data_.get(); }
  [[nodiscard]] const std::byte* data() const noexcept { return data_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data_.get(), size_}; }

  // Makes room for at least `capacity` bytes. False: no memory.
  [[nodiscard]] bool reserve(std::size_t capacity) noexcept;

  // Adds `count` bytes of unknown content and returns where they begin; nullptr: no memory.
  [[nodiscard]] std::byte* extend(std::size_t count) noexcept;

  // REQUIRES: size <= this->size().
  void truncate(std::size_t size) noexcept { size_ = size; }
  void clear() noexcept { size_ = 0; }
  // Gives the memory back.
  void release() noexcept;

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };

  static constexpr std::size_t kGuaranteedBytes = std::size_t{8} << 20;

  void swap(ByteBuffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace uzram::nbd
