// The lock in an entry.
//
// Role: reads hold it while they look at an object, partial writes from reading the old content to
// publishing the new. Publishing and unlocking are one atomic store; a whole-page write publishes
// without ever holding the lock, in one compare-and-swap.
// Threads: any. A lock is held for microseconds; a waiter spins briefly and then sleeps in a futex
// on the low half of the entry, since a holder may be preempted.
// Invariants: 1. Whoever takes the lock after having slept takes it with the waiters bit set, so
// that its own release wakes the next sleeper. 2. While the lock is held nobody else changes the
// entry but to set the waiters bit.
// Lock order: streams before entries; entries before the pool's locks.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/format.hpp"

namespace uzram::engine {

using AtomicEntry = std::atomic<std::uint64_t>;

// Threads sleeping for some entry of a table; whoever gives a table page back wakes them.
using SleeperCount = std::atomic<std::uint32_t>;

// Out of line: takes the lock of an entry found locked. Returns the content without lock bits.
Entry lock_entry_slow(AtomicEntry& entry, SleeperCount& sleepers) noexcept;
void wake_entry_slow(AtomicEntry& entry) noexcept;

inline bool try_lock_entry(AtomicEntry& entry, Entry& content) noexcept {
  std::uint64_t bits = entry.load(std::memory_order_relaxed);
  if ((bits & Entry::kLock) != 0) {
    return false;
  }
  content = Entry(bits);
  return entry.compare_exchange_strong(bits, bits | Entry::kLock, std::memory_order_acquire,
                                       std::memory_order_relaxed);
}

// Returns the content without lock bits.
inline Entry lock_entry(AtomicEntry& entry, SleeperCount& sleepers) noexcept {
  Entry content;
  if (try_lock_entry(entry, content)) [[likely]] {
    return content;
  }
  return lock_entry_slow(entry, sleepers);
}

// REQUIRES: the caller holds the lock. Leaves the content as it is.
inline void unlock_entry(AtomicEntry& entry) noexcept {
  const std::uint64_t before =
      entry.fetch_and(~(Entry::kLock | Entry::kWaiters), std::memory_order_release);
  if ((before & Entry::kWaiters) != 0) [[unlikely]] {
    wake_entry_slow(entry);
  }
}

// REQUIRES: the caller holds the lock. Publishes `content` and unlocks.
inline void publish_locked(AtomicEntry& entry, Entry content) noexcept {
  const std::uint64_t before = entry.exchange(content.bits(), std::memory_order_seq_cst);
  if ((before & Entry::kWaiters) != 0) [[unlikely]] {
    wake_entry_slow(entry);
  }
}

// Waits until the entry is unlocked and publishes `content` in its place; returns the old content.
inline Entry publish(AtomicEntry& entry, Entry content, SleeperCount& sleepers) noexcept {
  std::uint64_t bits = entry.load(std::memory_order_relaxed);
  while ((bits & Entry::kLock) == 0) {
    if (entry.compare_exchange_weak(bits, content.bits(), std::memory_order_seq_cst,
                                    std::memory_order_relaxed)) [[likely]] {
      return Entry(bits);
    }
  }
  const Entry old = lock_entry_slow(entry, sleepers);
  publish_locked(entry, content);
  return old;
}

}  // namespace uzram::engine
