// Workers: threads that share the work of submitters.
//
// Role: behind the executor. Work that can be divided is offered: its owner takes units from the
// head, workers take units from the tail, and the owner returns when all are done. Chores are run
// by workers alone.
// When a worker is woken: only for work that lasts longer than a wake-up does, only where the
// worker's CPU has not been used by a submitter or another worker lately, and not for a while after
// its last wake-up came late or to nothing: then the CPU is busy with something this process does
// not see. A worker that has just helped looks out for more for kLookoutNs before it sleeps, unless
// it was preempted meanwhile.
// CPUs: workers are bound to the CPUs of the affinity mask, one after another; no more of them
// help than the control group's CPU quota leaves to a submitter.
// They never take a CPU from a thread that runs: a worker whose CPU is busy comes late, and is left
// alone for a while.
// Ownership: devices share those of process_wide(). Threads are started when they are first needed.
// Units: nanoseconds; units of work are whatever the work says.
// Errors: run() needs no thread, so it cannot fail; start() reports that there are none.
// Threads: all members, any.
// Cost: an offer is two writes to a shared line; work that is not offered costs two reads of the
// clock and one write to a line of this CPU.
// Invariants: 1. run() returns after every unit has been done exactly once, and no worker looks at
// the work after that. 2. A claim names the units and the offer they belong to in one word, so that
// units are never taken from work that has taken the place of the one seen.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "uzram/error.hpp"

#include "base/mutex.hpp"

namespace uzram::engine {

// Work in units that are done in any order, by several threads at once.
class Divisible {
 public:
  // Does the units [begin, end).
  virtual void run(std::uint32_t begin, std::uint32_t end) noexcept = 0;

 protected:
  ~Divisible() = default;
};

// Work for a worker alone.
class Chore {
 public:
  virtual void run() noexcept = 0;

 protected:
  ~Chore() = default;
};

class Workers {
 public:
  static constexpr std::uint32_t kMaxUnits = 0xffff;

  Workers();
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Does all units of `work`, helped by at most `most_helpers` workers. `estimate_ns` is what this
  // thread would need alone. Returns whether a worker did any. REQUIRES: units <= kMaxUnits.
  bool run(Divisible& work, std::uint32_t units, std::uint64_t estimate_ns,
           std::uint32_t most_helpers) noexcept;

  // Has a worker run the chore. REQUIRES: at most as many chores wait as reserve() was told.
  void summon(Chore& chore) noexcept;
  // So many chores more, or fewer, may wait at once. Errors: bad_alloc.
  void reserve(std::int32_t chores);

  // Has at least `count` threads. Errors: system.
  Result<void> start(std::uint32_t count);

  // Offers whatever can be divided and wakes whoever sleeps: for tests, which are not to depend on
  // how busy the machine is.
  void set_eager(bool eager) noexcept { eager_.store(eager, std::memory_order_relaxed); }

  // How many threads of this process can run at once: CPUs of the affinity mask, or what the control
  // group's quota comes to, rounded up. At least 1.
  [[nodiscard]] std::uint32_t parallelism() const noexcept {
    return parallelism_.load(std::memory_order_relaxed);
  }
  // The CPUs of this process: more threads than these are never started for a submitter.
  [[nodiscard]] std::uint32_t cpus() const noexcept { return cpus_; }

 private:
  static constexpr std::uint32_t kMostThreads = 256;
  static constexpr std::uint32_t kOffers = 64;

  struct alignas(128) Thread {
    std::thread thread;
    std::uint32_t cpu_slot = 0;
    std::int64_t preemptions = 0;
    std::uint32_t vain = 0;
    // A futex word: 1 while it sleeps or is about to.
    std::atomic<std::uint32_t> asleep{0};
    std::atomic<std::int64_t> woken_ns{0};
    // It is not to be woken for an offer before this time.
    std::atomic<std::int64_t> not_before_ns{0};
  };

  // A place for work that is being shared.
  struct alignas(128) Offer {
    std::atomic<bool> taken{false};
    // Read after a claim has succeeded.
    Divisible* work = nullptr;
    // A hint, and a bound that a worker respects before it helps.
    std::atomic<std::uint32_t> largest_share{1};
    std::atomic<std::uint32_t> most_helpers{0};
    std::atomic<std::uint64_t> claim{0};
    // Units that workers have done; a futex word.
    alignas(64) std::atomic<std::uint32_t> done{0};
    std::atomic<std::uint32_t> owner_sleeps{0};
  };

  struct alignas(128) Cpu {
    // When a submitter or worker on this CPU expects to be done, or was.
    std::atomic<std::int64_t> busy_until_ns{0};
  };

  void serve(Thread& self) noexcept;
  // Offers that can be helped with, then chores; whether there was something to do.
  bool work(Thread& self) noexcept;
  bool help(Thread& self) noexcept;
  bool help_with(Offer& offer) noexcept;
  bool run_chore() noexcept;
  // Sees whether more comes up before long.
  bool look_out(Thread& self) noexcept;
  void sleep(Thread& self) noexcept;
  // Whether an offer has units left and room for one more helper.
  [[nodiscard]] bool wants_help() const noexcept;
  [[nodiscard]] bool anything_to_do() const noexcept;
  [[nodiscard]] static bool preempted(Thread& self) noexcept;
  static void back_off(Thread& self, std::int64_t now_ns) noexcept;
  void refresh_parallelism(std::int64_t now_ns) noexcept;

  // The number of helpers to hope for, and those of them that sleep.
  std::uint32_t find_helpers(std::uint64_t estimate_ns, std::uint32_t most_helpers,
                             std::uint32_t own_slot, std::int64_t now_ns,
                             std::array<Thread*, 8>& to_wake) noexcept;
  void wake(Thread& thread, std::int64_t now_ns) noexcept;
  void start_one() noexcept;
  Offer* take_offer(std::uint32_t own_slot) noexcept;
  // Takes units from the head; 0 when none are left.
  static std::uint32_t claim_head(Offer& offer, std::uint32_t& begin) noexcept;
  static void await_helpers(Offer& offer, std::uint32_t units) noexcept;

  const std::uint32_t cpus_;
  std::unique_ptr<Cpu[]> cpu_;
  std::unique_ptr<Offer[]> offers_;
  std::unique_ptr<Thread[]> threads_;
  std::atomic<std::uint32_t> parallelism_{1};
  std::atomic<std::int64_t> refreshed_ns_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> eager_{false};
  // Threads that exist: the first of threads_.
  alignas(128) std::atomic<std::uint32_t> started_{0};
  // A bit for each offer whose owner is at work.
  alignas(128) std::atomic<std::uint64_t> offered_{0};
  // Threads that are awake and have nothing to do, or are about to.
  alignas(128) std::atomic<std::uint32_t> free_{0};
  std::atomic<std::uint32_t> chores_waiting_{0};

  Mutex mutex_;
  std::vector<Chore*> chores_ UZRAM_GUARDED_BY(mutex_);
  std::size_t reserved_ UZRAM_GUARDED_BY(mutex_) = 0;
  Mutex start_mutex_;
};

}  // namespace uzram::engine
