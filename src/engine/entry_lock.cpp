#include "engine/entry_lock.hpp"

#include <bit>

#include "os/futex.hpp"

namespace uzram::engine {
namespace {

constexpr int kSpins = 100;

void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// The low half of the entry, which is the futex word.
const std::atomic<std::uint32_t>* futex_word(const AtomicEntry& entry) noexcept {
  static_assert(std::endian::native == std::endian::little);
  static_assert(sizeof(std::atomic<std::uint32_t>) == 4);
  return reinterpret_cast<const std::atomic<std::uint32_t>*>(&entry);
}

}  // namespace

Entry lock_entry_slow(AtomicEntry& entry, SleeperCount& sleepers) noexcept {
  Entry content;
  for (int spin = 0; spin < kSpins; ++spin) {
    if (try_lock_entry(entry, content)) {
      return content;
    }
    relax();
  }
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  std::uint64_t bits = entry.load(std::memory_order_relaxed);
  for (;;) {
    if ((bits & Entry::kLock) == 0) {
      if (entry.compare_exchange_weak(bits, bits | Entry::kLock | Entry::kWaiters,
                                      std::memory_order_acquire, std::memory_order_relaxed)) {
        break;
      }
      continue;
    }
    const std::uint64_t waiting = bits | Entry::kWaiters;
    if (bits == waiting || entry.compare_exchange_weak(bits, waiting, std::memory_order_relaxed)) {
      os::futex_wait(futex_word(entry), static_cast<std::uint32_t>(waiting));
      bits = entry.load(std::memory_order_relaxed);
    }
  }
  sleepers.fetch_sub(1, std::memory_order_relaxed);
  return Entry(bits & ~Entry::kWaiters);
}

void wake_entry_slow(AtomicEntry& entry) noexcept { os::futex_wake(futex_word(entry), 1); }

}  // namespace uzram::engine
