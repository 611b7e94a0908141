// GuardedBuffer: memory that stops the process when it is read or written beyond one of its
// ends.
//
// Role: tests of code in libraries that AddressSanitizer has not instrumented. The buffer lies
// at the start or at the end of a mapping between two inaccessible pages; what is left of the
// mapping holds a pattern, so that writes beyond the other end are found by is_slack_intact().
// Errors: aborts when the system gives no memory.
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <span>

namespace uzram::test {

// Which end of the buffer touches an inaccessible page.
enum class Guard { before, after };

class GuardedBuffer {
 public:
  // Of zeroes. A size of 0 is allowed.
  GuardedBuffer(std::size_t size_bytes, Guard guard);
  // With a copy of `content`.
  GuardedBuffer(std::span<const std::byte> content, Guard guard);
  ~GuardedBuffer();
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }
  // Whether nothing was written between the buffer and the guard it does not touch.
  [[nodiscard]] bool is_slack_intact() const noexcept;

 private:
  std::span<std::byte> mapping_;
  std::span<std::byte> inside_;
  std::span<std::byte> bytes_;
};

}  // namespace uzram::test
