#include "engine/housekeeper.hpp"

#include <algorithm>

#include "base/cpu.hpp"
#include "base/log.hpp"
#include "os/background_thread.hpp"
#include "os/futex.hpp"
#include "os/swap_fitness.hpp"

namespace uzram::engine {

void Housekeeper::Client::poke() noexcept {
  if (!poked_.load(std::memory_order_relaxed) &&
      !poked_.exchange(true, std::memory_order_seq_cst)) {
    keeper_->wake();
  }
}

Housekeeper::~Housekeeper() {
  stopping_.store(true, std::memory_order_seq_cst);
  const MutexLock lock(start_mutex_);
  if (thread_.joinable()) {
    idle_.store(0, std::memory_order_seq_cst);
    os::futex_wake(&idle_, 1);
    thread_.join();
  }
}

void Housekeeper::add(Client& client) {
  const MutexLock lock(mutex_);
  client.keeper_ = this;
  clients_.push_back(&client);
}

void Housekeeper::remove(Client& client) noexcept {
  const MutexLock lock(mutex_);
  std::erase(clients_, &client);
}

void Housekeeper::wake() noexcept {
  if (!started_.load(std::memory_order_acquire)) [[unlikely]] {
    start();
  }
  poker_slot_.store(current_cpu_slot(), std::memory_order_relaxed);
  if (idle_.exchange(0, std::memory_order_seq_cst) != 0) {
    os::futex_wake(&idle_, 1);
  }
}

void Housekeeper::start() noexcept {
  const MutexLock lock(start_mutex_);
  if (started_.load(std::memory_order_relaxed)) {
    return;
  }
  if (auto started = os::start_background_thread("uzram-keeper", [this] { serve(); }); started) {
    thread_ = *std::move(started);
  } else {
    log(LogLevel::warning,
        "room is not taken ahead, and pools are not compacted: " + started.error().message);
  }
  // Once is enough to know that there is none.
  started_.store(true, std::memory_order_release);
}

void Housekeeper::serve() noexcept {
  if (os::memory_is_locked()) {
    os::take_stack();
  }
  never_preempt_on_wakeup();
  std::uint32_t avoided = ~std::uint32_t{0};
  while (!stopping_.load(std::memory_order_seq_cst)) {
    // Left to itself the kernel puts a woken thread beside the one that wakes it, which has work to do.
    if (const std::uint32_t poker = poker_slot_.load(std::memory_order_relaxed); poker != avoided) {
      avoid_cpu_slot(poker);
      avoided = poker;
    }
    idle_.store(1, std::memory_order_seq_cst);
    const Clock::time_point due = look_after_clients();
    // A poke from here on, or one that came while the clients were looked after, has made it 0.
    while (idle_.load(std::memory_order_seq_cst) != 0 && Clock::now() < due &&
           !stopping_.load(std::memory_order_seq_cst)) {
      if (due == Clock::time_point::max()) {
        os::futex_wait(&idle_, 1);
      } else {
        os::futex_wait_for(&idle_, 1, due - Clock::now());
      }
    }
  }
}

Housekeeper::Clock::time_point Housekeeper::look_after_clients() noexcept {
  const MutexLock lock(mutex_);
  Clock::time_point next = Clock::time_point::max();
  for (Client* const client : clients_) {
    if (client->poked_.exchange(false, std::memory_order_seq_cst) || Clock::now() >= client->due_) {
      const std::chrono::nanoseconds pause = client->tidy();
      client->due_ = pause == Client::kNever ? Clock::time_point::max() : Clock::now() + pause;
    }
    next = std::min(next, client->due_);
  }
  return next;
}

}  // namespace uzram::engine
