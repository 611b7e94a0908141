// Executor: who does the work of a device's requests.
//
// Role: step 3 of the data path, between Queue and Device::Impl.
// nowait: the submitter does everything before submit returns. While a request is worked on, the
// entry of the one after the next and the object of the next are being loaded.
// async: requests are queued; workers take a few at a time and hand them back to their Queue.
// automatic: the submitter begins at the head of its batch, idle workers take from the tail;
// requests of many pages are divided among them likewise. submit returns when all is done.
// A call of Device::read or write waits for its result, so in async, too, the caller carries it out.
// Units: bytes, nanoseconds.
// Errors: set_mode only.
// Threads: all members, any.
// Lock order: mode, backlog, workers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "uzram/device.hpp"
#include "uzram/error.hpp"
#include "uzram/request.hpp"

#include "base/mutex.hpp"
#include "engine/workers.hpp"

namespace uzram::engine {

class Executor {
 public:
  explicit Executor(Device::Impl& device);
  // REQUIRES: nothing is outstanding.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Errors: invalid_argument; system when there are no threads for async.
  Result<void> set_mode(Mode mode, std::uint32_t workers);
  [[nodiscard]] Mode mode() const noexcept { return mode_.load(std::memory_order_relaxed); }
  // As set; 0 is as many as CPUs.
  [[nodiscard]] std::uint32_t workers() const noexcept {
    return workers_set_.load(std::memory_order_relaxed);
  }

  // Takes a batch of `queue`, which gets the requests back when they have completed.
  void submit(Queue& queue, std::span<Request* const> batch) noexcept;
  // The next piece of a request that was deferred: up to a quarter of a stretch that holds
  // something, or as many of those as there are threads to help. Returns whether it is complete.
  bool advance(Request& request) noexcept;
  // Carries out one request for a caller who waits for it.
  void execute(Request& request) noexcept {
    if (request.length < kWorthDividingBytes || mode() != Mode::automatic) {
      execute_alone(request);
    } else {
      execute_divided(request);
    }
  }

 private:
  // Requests from this length on are divided. In 1 MiB requests the pieces are what counts; in
  // smaller ones the number of requests.
  static constexpr std::uint64_t kWorthDividingBytes = std::uint64_t{32} << 10;

  // Requests that wait for workers.
  class Backlog final : public Chore {
   public:
    explicit Backlog(Executor& executor) noexcept : executor_(executor) {}
    // Lets at most `workers` work at once, at least 1.
    void open(std::uint32_t workers) noexcept;
    // Refuses what comes, and returns when what came has been done.
    void close() noexcept;
    // False when it is closed.
    bool push(Request* first, Request* last, std::uint32_t count) noexcept;
    void run() noexcept override;

   private:
    // The first of a list; nullptr when the caller's part as a worker is over.
    Request* take() noexcept;

    Executor& executor_;
    Mutex mutex_;
    Request* first_ UZRAM_GUARDED_BY(mutex_) = nullptr;
    Request* last_ UZRAM_GUARDED_BY(mutex_) = nullptr;
    std::uint32_t queued_ UZRAM_GUARDED_BY(mutex_) = 0;
    std::uint32_t most_ UZRAM_GUARDED_BY(mutex_) = 0;
    // Workers summoned or working.
    std::atomic<std::uint32_t> active_{0};
    bool open_ UZRAM_GUARDED_BY(mutex_) = false;
  };

  // What one page has cost of late.
  class PageCost {
   public:
    explicit PageCost(std::uint32_t first_guess_ns) noexcept : ns_(first_guess_ns) {}
    [[nodiscard]] std::uint64_t of(std::uint64_t pages) const noexcept {
      return pages * ns_.load(std::memory_order_relaxed);
    }
    void learn(std::uint64_t pages, std::int64_t elapsed_ns) noexcept;

   private:
    std::atomic<std::uint32_t> ns_;
  };

  class BatchWork;
  class RequestWork;

  [[nodiscard]] std::uint64_t pages_of(const Request& request) const noexcept;
  [[nodiscard]] bool is_long_range(const Request& request) const noexcept;
  [[nodiscard]] PageCost& cost_of(Op op) noexcept;
  [[nodiscard]] std::uint32_t most_helpers() const noexcept;

  void execute_alone(Request& request) noexcept;
  void execute_divided(Request& request) noexcept;
  // One after the other, what comes next being loaded meanwhile.
  void execute_run(std::span<Request* const> run) noexcept;
  // Requests that are not divided.
  void execute_shared(std::span<Request* const> run) noexcept;
  void execute_batch(std::span<Request* const> batch) noexcept;
  // In the submitter, helped as the mode says.
  void complete(Queue& queue, std::span<Request* const> batch) noexcept;
  // To workers.
  void post(Queue& queue, std::span<Request* const> batch) noexcept;

  Device::Impl& device_;
  const std::shared_ptr<Workers> workers_;
  std::atomic<Mode> mode_{Mode::nowait};
  std::atomic<std::uint32_t> workers_set_{0};
  PageCost read_cost_{1000};
  PageCost write_cost_{2500};
  // A page of a range that is discarded or zeroed.
  PageCost range_cost_{60};
  Backlog backlog_;
  Mutex mode_mutex_;
  std::uint32_t chores_reserved_ UZRAM_GUARDED_BY(mode_mutex_) = 0;
};

}  // namespace uzram::engine
