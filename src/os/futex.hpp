// Futex wait and wake on a 32-bit word of this process.
//
// Role: where a lock or a stream that stays busy puts a thread to sleep. The words may lie in
// shared mappings; the futexes are private to the process all the same, since a device has one
// owner.
// Threads: any.
// Errors: none; both may return early and callers look at the word again.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace uzram::os {

// Sleeps while *word == expected, until woken (or spuriously).
void futex_wait(const std::atomic<std::uint32_t>* word, std::uint32_t expected) noexcept;

// The same for at most `time`.
void futex_wait_for(const std::atomic<std::uint32_t>* word, std::uint32_t expected,
                    std::chrono::nanoseconds time) noexcept;

// Wakes at most `count` sleepers.
void futex_wake(const std::atomic<std::uint32_t>* word, int count) noexcept;

}  // namespace uzram::os
