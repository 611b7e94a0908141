// Upkeep: what the housekeeper does for one device.
//
// Role: takes room for the pool ahead of its use, and compacts the pool a piece at a time while more
// of it is holes than a pool is worth having: an eighth of the time of one CPU at most, and only
// where compaction gains something.
// Threads: as Housekeeper::Client.
#pragma once

#include <chrono>
#include <memory>

#include "engine/housekeeper.hpp"
#include "engine/page_store.hpp"

namespace uzram::engine {

class Upkeep final : public Housekeeper::Client, public PoolKeeper {
 public:
  explicit Upkeep(PageStore& store);
  ~Upkeep();
  Upkeep(const Upkeep&) = delete;
  Upkeep& operator=(const Upkeep&) = delete;

  void pool_wants_care() noexcept override { poke(); }

 private:
  std::chrono::nanoseconds tidy() noexcept override;

  PageStore& store_;
  // When holes are to be looked at next.
  static constexpr std::chrono::steady_clock::time_point kNotHoley{};
  std::chrono::steady_clock::time_point compact_at_ = kNotHoley;
  const std::shared_ptr<Housekeeper> keeper_;
};

}  // namespace uzram::engine
