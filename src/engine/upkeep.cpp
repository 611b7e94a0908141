#include "engine/upkeep.hpp"

#include <algorithm>

namespace uzram::engine {
namespace {

using namespace std::chrono_literals;

// Compaction rests for so many times as long as it has worked, at least kShortestRest.
constexpr int kRestShare = 7;
constexpr std::chrono::nanoseconds kShortestRest = 5ms;
// Holes are left alone for so long: a range that is being discarded is full of them for a moment.
constexpr std::chrono::nanoseconds kFirstRest = 50ms;
// How often a pool is looked at again that compaction could not help.
constexpr std::chrono::nanoseconds kHopelessRest = 1s;

}  // namespace

Upkeep::Upkeep(PageStore& store) : store_(store), keeper_(Housekeeper::get()) {
  keeper_->add(*this);
  store_.pool().set_keeper(this);
}

Upkeep::~Upkeep() {
  store_.pool().set_keeper(nullptr);
  keeper_->remove(*this);
}

std::chrono::nanoseconds Upkeep::tidy() noexcept {
  Pool& pool = store_.pool();
  pool.grow_ahead();
  if (!pool.is_holey()) {
    compact_at_ = kNotHoley;
    pool.care_taken();
    // What made it holey meanwhile found no reason to say so.
    return pool.is_holey() ? kFirstRest : kNever;
  }
  const auto start = std::chrono::steady_clock::now();
  if (compact_at_ == kNotHoley) {
    compact_at_ = start + kFirstRest;
  }
  // Pokes for room come in between.
  if (start < compact_at_) {
    return compact_at_ - start;
  }
  const bool gained = store_.compact_some();
  const auto end = std::chrono::steady_clock::now();
  const std::chrono::nanoseconds rest =
      gained ? std::max<std::chrono::nanoseconds>(kRestShare * (end - start), kShortestRest)
             : kHopelessRest;
  compact_at_ = end + rest;
  return rest;
}

}  // namespace uzram::engine
