// Upkeep: what the housekeeper does for one device.
//
// Role: takes room for the pool ahead of its use, fills the reserve that it is to keep, and compacts
// the pool a piece at a time: while writes go on, when a twelfth of it is holes, for an eighth of the
// time of one CPU at most; when nothing is done, when a thirty-second is, for half of it. Where
// compaction gains nothing it is not tried again before more is free.
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
  std::chrono::nanoseconds look_after_holes() noexcept;
  std::chrono::nanoseconds stop() noexcept;

  PageStore& store_;
  // Holes are being dealt with: when they are to be looked at next, and the pool's activity when they
  // were last.
  bool active_ = false;
  std::chrono::steady_clock::time_point look_at_{};
  std::uint64_t seen_activity_ = 0;
  const std::shared_ptr<Housekeeper> keeper_;
};

}  // namespace uzram::engine
