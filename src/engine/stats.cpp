#include "engine/stats.hpp"

#include <algorithm>

#include "base/cpu.hpp"

namespace uzram::engine {

Stats::Stats() : count_(usable_cpus()), slots_(std::make_unique<Slot[]>(count_)) {}

Stats::Slot& Stats::own_slot() noexcept { return slots_[current_cpu_slot() % count_]; }

void Stats::add(const Tally& tally) noexcept {
  Slot& slot = own_slot();
  for (std::size_t i = 0; i < kCounters; ++i) {
    if (tally.changes_[i] != 0) {
      slot.values[i].fetch_add(tally.changes_[i], std::memory_order_relaxed);
    }
  }
}

void Stats::add(Counter counter, std::int64_t change) noexcept {
  own_slot().values[static_cast<std::size_t>(counter)].fetch_add(change, std::memory_order_relaxed);
}

std::uint64_t Stats::sum(Counter counter) const noexcept {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    total += slots_[i].values[static_cast<std::size_t>(counter)].load(std::memory_order_relaxed);
  }
  return static_cast<std::uint64_t>(std::max<std::int64_t>(total, 0));
}

}  // namespace uzram::engine
