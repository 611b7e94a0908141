// Stats: a device's counters.
//
// Role: what mm_stat and io_stat report. Counters are per CPU, so that no line is shared on the
// path; a request gathers its changes in a Tally and adds them once.
// Units: counts, bytes where named.
// Threads: any. A sum taken while others work may mix moments; it is exact when they rest.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace uzram::engine {

enum class Counter : std::uint8_t {
  stored_pages,
  compr_bytes,
  same_pages,
  huge_pages,
  huge_pages_since,
  failed_reads,
  failed_writes,
  invalid_io,
  notify_free,
  pages_compacted,
  corrupt_pages,
};
inline constexpr std::size_t kCounters = 11;

class Tally {
 public:
  void add(Counter counter, std::int64_t change) noexcept {
    changes_[static_cast<std::size_t>(counter)] += change;
  }

 private:
  friend class Stats;
  std::array<std::int64_t, kCounters> changes_{};
};

class Stats {
 public:
  Stats();

  void add(const Tally& tally) noexcept;
  void add(Counter counter, std::int64_t change) noexcept;
  // Never below 0, though a moment's mix of the CPUs' parts may be.
  [[nodiscard]] std::uint64_t sum(Counter counter) const noexcept;

 private:
  struct alignas(128) Slot {
    std::array<std::atomic<std::int64_t>, kCounters> values{};
  };
  Slot& own_slot() noexcept;

  std::size_t count_;
  std::unique_ptr<Slot[]> slots_;
};

// Adds what it gathered when it goes out of scope.
class ScopedTally : public Tally {
 public:
  explicit ScopedTally(Stats& stats) noexcept : stats_(stats) {}
  ~ScopedTally() { stats_.add(*this); }
  ScopedTally(const ScopedTally&) = delete;
  ScopedTally& operator=(const ScopedTally&) = delete;

 private:
  Stats& stats_;
};

}  // namespace uzram::engine
