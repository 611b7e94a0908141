#include "engine/upkeep.hpp"

#include <algorithm>

#include "base/process_wide.hpp"
#include "os/swap_fitness.hpp"

namespace uzram::engine {
namespace {

using namespace std::chrono_literals;

// Compaction rests for so many times as long as it has worked, at least kShortestRest: while writes
// go on, and while nothing does.
constexpr int kRestShareAtWork = 7;
constexpr int kRestShareIdle = 1;
constexpr std::chrono::nanoseconds kShortestRest = 5ms;
// Holes are left alone for so long: a range that is being discarded is full of them for a moment. A
// pool that has not changed for so long is idle.
constexpr std::chrono::nanoseconds kFirstRest = 50ms;
constexpr std::chrono::nanoseconds kIdle = 200ms;
// How often a pool is looked at again that compaction could not help.
constexpr std::chrono::nanoseconds kHopelessRest = 1s;
// How often more memory is asked for while the reserve lacks some that the system had not.
constexpr std::chrono::nanoseconds kReserveRest = 100ms;

}  // namespace

Upkeep::Upkeep(PageStore& store) : store_(store), keeper_(process_wide<Housekeeper>()) {
  keeper_->add(*this);
  store_.pool().set_keeper(this);
  if (store_.pool().keeps_reserve()) {
    // The thread begins now: the write that first wants it is one that must need nothing.
    poke();
  }
}

Upkeep::~Upkeep() {
  // Its thread uses the pool until it has been told.
  keeper_->remove(*this);
  store_.pool().set_keeper(nullptr);
}

std::chrono::nanoseconds Upkeep::tidy() noexcept {
  // While a machine swaps it has no memory to spare, and each page that is written leaves it more
  // than it takes. The kernel has an I/O flusher wait for that memory where it would have others
  // ended; no writer waits meanwhile.
  Pool& pool = store_.pool();
  const bool filled = pool.grow_ahead(
      pool.keeps_reserve() && os::is_io_flusher() ? Room::Scope::groups : Room::Scope::system_too);
  const std::chrono::nanoseconds rest = look_after_holes();
  return filled ? rest : std::min(rest, kReserveRest);
}

std::chrono::nanoseconds Upkeep::look_after_holes() noexcept {
  const Pool::Health health = store_.pool().health();
  const auto now = std::chrono::steady_clock::now();
  if (health.holes == Pool::Holes::few) {
    return stop();
  }
  if (!active_) {
    active_ = true;
    look_at_ = now + (health.holes == Pool::Holes::many ? kFirstRest : kIdle);
    seen_activity_ = health.activity;
  }
  // Pokes for room come in between.
  if (now < look_at_) {
    return look_at_ - now;
  }
  const bool idle = health.activity == seen_activity_;
  std::chrono::nanoseconds rest = kIdle;
  if (idle || health.holes == Pool::Holes::many) {
    const bool gained = store_.compact_some();
    if (!gained && idle) {
      return stop();
    }
    const auto worked = std::chrono::steady_clock::now() - now;
    rest = !gained ? kHopelessRest
                   : std::max<std::chrono::nanoseconds>(
                         (idle ? kRestShareIdle : kRestShareAtWork) * worked, kShortestRest);
  }
  // What compaction itself did is no activity.
  seen_activity_ = idle ? store_.pool().health().activity : health.activity;
  look_at_ = std::chrono::steady_clock::now() + rest;
  return rest;
}

// Until somebody frees something again.
std::chrono::nanoseconds Upkeep::stop() noexcept {
  active_ = false;
  store_.pool().care_taken();
  return kNever;
}

}  // namespace uzram::engine
