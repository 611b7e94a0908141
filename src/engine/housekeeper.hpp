// Housekeeper: the thread that does for devices what need not be done on the data path.
//
// Role: beside the data path. A pool gets room from it before it is needed, and is compacted when
// enough of it is holes.
// Ownership: devices share the one of process_wide(). The thread is started by the first poke. Where it cannot be started its work is not
// done ahead; the data path does without.
// Errors: none.
// Threads: add and remove from any, not from tidy; poke from any.
// Lock order: the housekeeper's mutex before those of devices; poke takes none.
// Cost: a poke is one load, and a wake-up when nobody has poked since the client was last looked at.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.hpp"

namespace uzram::engine {

class Housekeeper {
 public:
  class Client {
   public:
    static constexpr std::chrono::nanoseconds kNever = std::chrono::nanoseconds::max();

    // Has tidy() called soon; nothing comes of it once removed. REQUIRES: added, and the housekeeper is
    // still there.
    void poke() noexcept;

   protected:
    ~Client() = default;
    // Does some of what there is to do, for some milliseconds. Returns after how long it is to be
    // called again without a poke.
    virtual std::chrono::nanoseconds tidy() noexcept = 0;

   private:
    friend class Housekeeper;
    Housekeeper* keeper_ = nullptr;
    std::atomic<bool> poked_{false};
    std::chrono::steady_clock::time_point due_ = std::chrono::steady_clock::time_point::max();
  };

  Housekeeper() = default;
  ~Housekeeper();
  Housekeeper(const Housekeeper&) = delete;
  Housekeeper& operator=(const Housekeeper&) = delete;

  // Errors: bad_alloc.
  void add(Client& client);
  // Returns when tidy() is not running and will not be called any more.
  void remove(Client& client) noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  void wake() noexcept;
  void start() noexcept;
  void serve() noexcept;
  // Calls those that are due; when the next one is.
  Clock::time_point look_after_clients() noexcept;

  Mutex mutex_;
  std::vector<Client*> clients_ UZRAM_GUARDED_BY(mutex_);
  Mutex start_mutex_;
  std::thread thread_ UZRAM_GUARDED_BY(start_mutex_);
  std::atomic<bool> started_{false};
  std::atomic<bool> stopping_{false};
  // Where the last poke came from.
  std::atomic<std::uint32_t> poker_slot_{0};
  // A futex word: 1 while nothing has been asked for since the clients were last looked at.
  std::atomic<std::uint32_t> idle_{0};
};

}  // namespace uzram::engine
