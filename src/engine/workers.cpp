#include "engine/workers.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <utility>

#include <sys/resource.h>

#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "os/background_thread.hpp"
#include "os/cpu_quota.hpp"
#include "os/futex.hpp"
#include "os/swap_fitness.hpp"

namespace uzram::engine {
namespace {

// Work shorter than this is not offered, and work shorter than this wakes nobody: what handing over
// a cache line, and waking a thread on a CPU that sleeps, come to.
constexpr std::uint64_t kWorthOfferingNs = 8'000;
constexpr std::uint64_t kWorthWakingNs = 50'000;
// A share is shorter than this, so that a worker that loses its CPU holds up little.
constexpr std::uint64_t kLongestShareNs = 64'000;
// A CPU that was busy so lately is busy.
constexpr std::int64_t kStillBusyNs = 100'000;
constexpr std::int64_t kLookoutNs = 50'000;
// A wake-up that took longer met a CPU with other things to do.
constexpr std::int64_t kLateNs = 300'000;
constexpr std::int64_t kFirstBackOffNs = 200'000;
constexpr std::uint32_t kMostDoublings = 10;
constexpr int kSpinsBeforeSleep = 2000;
constexpr std::int64_t kRefreshNs = 1'000'000'000;

void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// The word of an offer: which work it is, how many helpers joined, and the units not yet taken.
struct Claim {
  std::uint32_t generation;  // 24 bits
  std::uint32_t helpers;     // 8 bits
  std::uint32_t head;        // 16 bits
  std::uint32_t tail;        // 16 bits

  static Claim of(std::uint64_t word) noexcept {
    return {static_cast<std::uint32_t>(word >> 40), static_cast<std::uint32_t>(word >> 32) & 0xff,
            static_cast<std::uint32_t>(word >> 16) & 0xffff,
            static_cast<std::uint32_t>(word) & 0xffff};
  }
  [[nodiscard]] std::uint64_t word() const noexcept {
    return (std::uint64_t{generation & 0xffffff} << 40) | (std::uint64_t{helpers} << 32) |
           (std::uint64_t{head} << 16) | tail;
  }
  // How much is taken at once: less and less towards the end, so that all finish together.
  [[nodiscard]] std::uint32_t share(std::uint32_t largest) const noexcept {
    const std::uint32_t left = tail - head;
    return std::clamp(left / (2 * (std::max(helpers, 1U) + 1)), 1U, largest);
  }
};

}  // namespace

// ---- the owner --------------------------------------------------------------------------------

bool Workers::run(Divisible& work, std::uint32_t units, std::uint64_t estimate_ns,
                  std::uint32_t most_helpers) noexcept {
  const bool eager = eager_.load(std::memory_order_relaxed);
  if (eager) {
    estimate_ns = std::max(estimate_ns, kMostThreads * kWorthWakingNs);
  }
  if (units < 2 || estimate_ns < kWorthOfferingNs || (parallelism() < 2 && !eager)) {
    work.run(0, units);
    return false;
  }
  const std::uint32_t own_slot = current_cpu_slot() % cpus_;
  const std::int64_t start_ns = now_ns();
  std::atomic<std::int64_t>& busy_until_ns = cpu_[own_slot].busy_until_ns;
  busy_until_ns.store(start_ns + static_cast<std::int64_t>(estimate_ns), std::memory_order_relaxed);
  std::array<Thread*, 8> to_wake{};
  const std::uint32_t helpers =
      find_helpers(estimate_ns, eager ? most_helpers : std::min(most_helpers, parallelism() - 1),
                   own_slot, start_ns, to_wake);
  Offer* const offer = helpers == 0 ? nullptr : take_offer(own_slot);
  if (offer == nullptr) {
    work.run(0, units);
    busy_until_ns.store(now_ns(), std::memory_order_relaxed);
    return false;
  }
  offer->work = &work;
  offer->largest_share.store(static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
                                 kLongestShareNs * units / estimate_ns, 1, kMaxUnits)),
                             std::memory_order_relaxed);
  offer->most_helpers.store(helpers, std::memory_order_relaxed);
  offer->done.store(0, std::memory_order_relaxed);
  // The owner has its first share before anybody else can take one.
  const std::uint32_t generation =
      Claim::of(offer->claim.load(std::memory_order_relaxed)).generation + 1;
  Claim claim = {generation, 0, 0, units};
  std::uint32_t begin = 0;
  std::uint32_t count = claim.share(offer->largest_share.load(std::memory_order_relaxed));
  claim.head = count;
  offer->claim.store(claim.word(), std::memory_order_release);
  const std::uint64_t bit = std::uint64_t{1} << (offer - offers_.get());
  offered_.fetch_or(bit, std::memory_order_seq_cst);
  for (Thread* const thread : to_wake) {
    if (thread != nullptr) {
      wake(*thread, start_ns);
    }
  }
  std::uint32_t own = 0;
  do {
    work.run(begin, begin + count);
    own += count;
    count = claim_head(*offer, begin);
  } while (count != 0);
  offered_.fetch_and(~bit, std::memory_order_relaxed);
  await_helpers(*offer, units - own);
  offer->taken.store(false, std::memory_order_release);
  busy_until_ns.store(now_ns(), std::memory_order_relaxed);
  return own < units;
}

std::uint32_t Workers::find_helpers(std::uint64_t estimate_ns, std::uint32_t most_helpers,
                                    std::uint32_t own_slot, std::int64_t now_ns,
                                    std::array<Thread*, 8>& to_wake) noexcept {
  const auto wanted = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(most_helpers, 1 + estimate_ns / kWorthWakingNs));
  std::uint32_t found = std::min(wanted, free_.load(std::memory_order_relaxed));
  if (estimate_ns < kWorthWakingNs) {
    return found;
  }
  const std::uint32_t started = started_.load(std::memory_order_acquire);
  if (eager_.load(std::memory_order_relaxed)) {
    for (std::uint32_t index = 0; index < std::min<std::uint32_t>(started, 8); ++index) {
      to_wake[index] = &threads_[index];
    }
    return most_helpers;
  }
  const auto others = std::min(cpus_ - 1, static_cast<std::uint32_t>(to_wake.size()));
  std::uint32_t waking = 0;
  for (std::uint32_t step = 1; step <= others && found < wanted; ++step) {
    const std::uint32_t slot = (own_slot + step) % cpus_;
    if (cpu_[slot].busy_until_ns.load(std::memory_order_relaxed) + kStillBusyNs > now_ns) {
      continue;
    }
    if (slot >= started) {
      if (started < kMostThreads) {
        start_one();
      }
      break;
    }
    Thread& thread = threads_[slot];
    if (thread.asleep.load(std::memory_order_relaxed) != 0 &&
        thread.not_before_ns.load(std::memory_order_relaxed) <= now_ns) {
      to_wake[waking++] = &thread;
      ++found;
    }
  }
  return found;
}

void Workers::wake(Thread& thread, std::int64_t now_ns) noexcept {
  thread.woken_ns.store(now_ns, std::memory_order_relaxed);
  if (thread.asleep.exchange(0, std::memory_order_seq_cst) != 0) {
    os::futex_wake(&thread.asleep, 1);
  }
}

Workers::Offer* Workers::take_offer(std::uint32_t own_slot) noexcept {
  for (std::uint32_t step = 0; step < 4; ++step) {
    Offer& offer = offers_[(own_slot + step * 17) % kOffers];
    if (!offer.taken.load(std::memory_order_relaxed) &&
        !offer.taken.exchange(true, std::memory_order_acquire)) {
      return &offer;
    }
  }
  return nullptr;
}

std::uint32_t Workers::claim_head(Offer& offer, std::uint32_t& begin) noexcept {
  std::uint64_t seen = offer.claim.load(std::memory_order_relaxed);
  while (true) {
    Claim claim = Claim::of(seen);
    if (claim.head >= claim.tail) {
      return 0;
    }
    const std::uint32_t count = claim.share(offer.largest_share.load(std::memory_order_relaxed));
    begin = claim.head;
    claim.head += count;
    if (offer.claim.compare_exchange_weak(seen, claim.word(), std::memory_order_relaxed)) {
      return count;
    }
  }
}

void Workers::await_helpers(Offer& offer, std::uint32_t units) noexcept {
  for (int spin = 0; spin < kSpinsBeforeSleep; ++spin) {
    if (offer.done.load(std::memory_order_acquire) == units) {
      return;
    }
    pause();
  }
  offer.owner_sleeps.store(1, std::memory_order_seq_cst);
  for (std::uint32_t done = offer.done.load(std::memory_order_seq_cst); done != units;
       done = offer.done.load(std::memory_order_seq_cst)) {
    os::futex_wait(&offer.done, done);
  }
  offer.owner_sleeps.store(0, std::memory_order_relaxed);
}

// ---- the worker -------------------------------------------------------------------------------

void Workers::serve(Thread& self) noexcept {
  if (os::memory_is_locked()) {
    os::take_stack();
  }
  bind_to_cpu_slot(self.cpu_slot);
  never_preempt_on_wakeup();
  free_.fetch_add(1, std::memory_order_relaxed);
  while (!stopping_.load(std::memory_order_relaxed)) {
    if (work(self)) {
      while (look_out(self)) {
        work(self);
      }
    }
    sleep(self);
  }
}

bool Workers::work(Thread& self) noexcept {
  bool any = false;
  while (help(self) || run_chore()) {
    any = true;
  }
  return any;
}

bool Workers::help(Thread& self) noexcept {
  std::uint64_t bits = offered_.load(std::memory_order_acquire);
  bool any = false;
  while (bits != 0) {
    // Workers begin at different offers.
    const auto turned = static_cast<std::uint32_t>(
        std::countr_zero(std::rotr(bits, static_cast<int>(self.cpu_slot % kOffers))));
    const std::uint32_t index = (turned + self.cpu_slot % kOffers) % kOffers;
    any = help_with(offers_[index]) || any;
    bits &= ~(std::uint64_t{1} << index);
  }
  return any;
}

bool Workers::help_with(Offer& offer) noexcept {
  bool joined = false;
  std::uint32_t generation = 0;
  std::uint64_t seen = offer.claim.load(std::memory_order_acquire);
  while (true) {
    Claim claim = Claim::of(seen);
    const bool other = joined && claim.generation != generation;
    const bool full =
        !joined && claim.helpers >= offer.most_helpers.load(std::memory_order_relaxed);
    if (claim.head >= claim.tail || other || full) {
      free_.fetch_add(joined ? 1 : 0, std::memory_order_relaxed);
      return joined;
    }
    const std::uint32_t count = claim.share(offer.largest_share.load(std::memory_order_relaxed));
    const std::uint32_t end = claim.tail;
    claim.tail -= count;
    claim.helpers += joined ? 0 : 1;
    if (!offer.claim.compare_exchange_weak(seen, claim.word(), std::memory_order_acq_rel,
                                           std::memory_order_acquire)) {
      continue;
    }
    free_.fetch_sub(joined ? 0 : 1, std::memory_order_relaxed);
    joined = true;
    generation = claim.generation;
    offer.work->run(end - count, end);
    offer.done.fetch_add(count, std::memory_order_seq_cst);
    if (offer.owner_sleeps.load(std::memory_order_seq_cst) != 0) {
      os::futex_wake(&offer.done, 1);
    }
    seen = offer.claim.load(std::memory_order_acquire);
  }
}

bool Workers::run_chore() noexcept {
  if (chores_waiting_.load(std::memory_order_relaxed) == 0) {
    return false;
  }
  Chore* chore = nullptr;
  {
    const MutexLock lock(mutex_);
    if (chores_.empty()) {
      return false;
    }
    chore = chores_.front();
    chores_.erase(chores_.begin());
    chores_waiting_.store(static_cast<std::uint32_t>(chores_.size()), std::memory_order_relaxed);
  }
  free_.fetch_sub(1, std::memory_order_relaxed);
  chore->run();
  free_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool Workers::wants_help() const noexcept {
  for (std::uint64_t bits = offered_.load(std::memory_order_seq_cst); bits != 0; bits &= bits - 1) {
    const Offer& offer = offers_[static_cast<std::size_t>(std::countr_zero(bits))];
    const Claim claim = Claim::of(offer.claim.load(std::memory_order_relaxed));
    if (claim.head < claim.tail &&
        claim.helpers < offer.most_helpers.load(std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

bool Workers::anything_to_do() const noexcept {
  return wants_help() || chores_waiting_.load(std::memory_order_seq_cst) != 0 ||
         stopping_.load(std::memory_order_seq_cst);
}

bool Workers::look_out(Thread& self) noexcept {
  if (preempted(self)) {
    back_off(self, now_ns());
    return false;
  }
  const std::int64_t until_ns = now_ns() + kLookoutNs;
  bool found = false;
  do {
    for (int spin = 0; spin < 16 && !found; ++spin) {
      pause();
      found = wants_help() || chores_waiting_.load(std::memory_order_relaxed) != 0;
    }
  } while (!found && now_ns() < until_ns);
  return found;
}

bool Workers::preempted(Thread& self) noexcept {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw != std::exchange(self.preemptions, usage.ru_nivcsw);
}

void Workers::back_off(Thread& self, std::int64_t now_ns) noexcept {
  const std::int64_t pause_ns = kFirstBackOffNs << std::min(self.vain, kMostDoublings);
  ++self.vain;
  self.not_before_ns.store(now_ns + pause_ns, std::memory_order_relaxed);
}

void Workers::sleep(Thread& self) noexcept {
  refresh_parallelism(now_ns());
  self.woken_ns.store(0, std::memory_order_relaxed);
  free_.fetch_sub(1, std::memory_order_relaxed);
  self.asleep.store(1, std::memory_order_seq_cst);
  if (anything_to_do()) {
    self.asleep.store(0, std::memory_order_relaxed);
    free_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  while (self.asleep.load(std::memory_order_acquire) != 0) {
    os::futex_wait(&self.asleep, 1);
  }
  free_.fetch_add(1, std::memory_order_relaxed);
  const std::int64_t woken_ns = self.woken_ns.load(std::memory_order_relaxed);
  const std::int64_t awake_ns = now_ns();
  const bool in_vain = !anything_to_do();
  if (in_vain || awake_ns - woken_ns > kLateNs) {
    back_off(self, awake_ns);
  } else {
    self.vain = 0;
  }
}

void Workers::refresh_parallelism(std::int64_t now_ns) noexcept {
  std::int64_t last_ns = refreshed_ns_.load(std::memory_order_relaxed);
  if (now_ns - last_ns < kRefreshNs ||
      !refreshed_ns_.compare_exchange_strong(last_ns, now_ns, std::memory_order_relaxed)) {
    return;
  }
  std::uint32_t cpus = std::min(usable_cpus(), cpus_);
  if (const std::optional<double> quota = os::cpu_quota(); quota && *quota < cpus) {
    cpus = std::max(1U, static_cast<std::uint32_t>(std::ceil(*quota)));
  }
  parallelism_.store(cpus, std::memory_order_relaxed);
}

// ---- chores and threads -----------------------------------------------------------------------

void Workers::summon(Chore& chore) noexcept {
  {
    const MutexLock lock(mutex_);
    // Within what is reserved.
    chores_.push_back(&chore);
    chores_waiting_.store(static_cast<std::uint32_t>(chores_.size()), std::memory_order_seq_cst);
  }
  const std::uint32_t started = started_.load(std::memory_order_acquire);
  const std::uint32_t own_slot = current_cpu_slot();
  // One on another CPU first: this one is busy.
  for (std::uint32_t step = 1; step <= started; ++step) {
    Thread& thread = threads_[(own_slot + step) % started];
    if (thread.asleep.load(std::memory_order_seq_cst) != 0) {
      wake(thread, now_ns());
      return;
    }
  }
}

void Workers::reserve(std::int32_t chores) {
  const MutexLock lock(mutex_);
  reserved_ += static_cast<std::size_t>(static_cast<std::ptrdiff_t>(chores));
  chores_.reserve(reserved_);
}

void Workers::start_one() noexcept {
  const std::uint32_t count = started_.load(std::memory_order_relaxed) + 1;
  if (!start(count)) {
    // There may be threads again later; meanwhile nobody helps.
    parallelism_.store(1, std::memory_order_relaxed);
  }
}

Result<void> Workers::start(std::uint32_t count) {
  const MutexLock lock(start_mutex_);
  count = std::min(count, kMostThreads);
  for (std::uint32_t index = started_.load(std::memory_order_relaxed); index < count; ++index) {
    Thread& thread = threads_[index];
    thread.cpu_slot = index % cpus_;
    auto started = os::start_background_thread("uzram-worker" + std::to_string(index),
                                               [this, &thread] { serve(thread); });
    if (!started) {
      return std::move(started).error();
    }
    thread.thread = *std::move(started);
    started_.store(index + 1, std::memory_order_release);
  }
  return {};
}

Workers::Workers()
    : cpus_(usable_cpus()),
      cpu_(std::make_unique<Cpu[]>(cpus_)),
      offers_(std::make_unique<Offer[]>(kOffers)),
      threads_(std::make_unique<Thread[]>(kMostThreads)) {
  refresh_parallelism(kRefreshNs);
}

Workers::~Workers() {
  stopping_.store(true, std::memory_order_seq_cst);
  const std::uint32_t started = started_.load(std::memory_order_acquire);
  for (std::uint32_t index = 0; index < started; ++index) {
    wake(threads_[index], now_ns());
  }
  for (std::uint32_t index = 0; index < started; ++index) {
    threads_[index].thread.join();
  }
}

}  // namespace uzram::engine
