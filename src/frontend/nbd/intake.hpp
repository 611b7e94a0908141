// Intake: the bytes of a connection that have arrived and are not used up.
//
// Role: the receiving end of a session. Bytes lie in one buffer, in which requests and the
// payload of most writes are used where they are. A larger payload that is not all there gets
// memory of its own, into which the rest is received directly.
// Units: bytes.
// Ownership: owns both buffers; pointers into them hold until space() is called, and the
// payload's until end_payload().
// Errors: no memory is reported by the call that needed it.
// Threads: one at a time.
// Invariant: the order of the stream is skipped bytes, then the payload, then available().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <sys/uio.h>

#include "frontend/nbd/byte_buffer.hpp"

namespace uzram::nbd {

class Intake {
 public:
  static constexpr std::size_t kBufferBytes = 256U << 10;
  // A payload up to this is waited for in the buffer.
  static constexpr std::size_t kInPlaceBytes = 32U << 10;

  // Where the next bytes are to be received: sets the first 1 or 2 of `pieces` and returns how
  // many; 0: no memory.
  [[nodiscard]] unsigned space(std::array<iovec, 2>& pieces) noexcept;
  // `count` bytes have been received into what space() returned.
  void received(std::size_t count) noexcept;

  [[nodiscard]] std::span<std::byte> available() noexcept {
    return {buffer_.data() + begin_, end_ - begin_};
  }
  // REQUIRES: count <= available().size().
  void consume(std::size_t count) noexcept { begin_ += count; }

  // Drops the next `count` bytes of the stream, those that have not arrived too.
  void skip(std::size_t count) noexcept;
  [[nodiscard]] bool skipping() const noexcept { return skip_bytes_ != 0; }

  // Uses up `header` bytes; the `count` after them are a payload to be kept apart. False: no
  // memory, and nothing is used up. REQUIRES: no payload is kept; the header is available, not all
  // of the payload.
  [[nodiscard]] bool begin_payload(std::size_t header, std::size_t count) noexcept;
  [[nodiscard]] bool payload_kept() const noexcept { return payload_bytes_ != 0; }
  // REQUIRES: payload_kept().
  [[nodiscard]] bool payload_complete() const noexcept { return payload_.size() == payload_bytes_; }
  [[nodiscard]] std::span<std::byte> payload() noexcept {
    return {payload_.data(), payload_.size()};
  }
  void end_payload() noexcept;

  // Gives back memory that is not in use; for a connection that has fallen silent.
  void trim() noexcept;

 private:
  ByteBuffer buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  // size() is how much has arrived.
  ByteBuffer payload_;
  std::size_t payload_bytes_ = 0;
  std::size_t skip_bytes_ = 0;
};

}  // namespace uzram::nbd
