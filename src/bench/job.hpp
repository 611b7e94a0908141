// Job: one submitter of a phase.
//
// Role: the load generator. Issues the requests of its range through a Port, one at a time or
// `iodepth` in flight, and counts. All targets are driven by this code.
// Units: bytes, nanoseconds.
// Errors: the first request that fails, or content that is not what it must be, ends the job;
// failure() says which.
// Threads: a Job is used by one thread; results are read when that thread has stopped.
// Cost: some 10 ns a request beside the target's own; with latencies the clock is read twice more.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/contents.hpp"
#include "bench/latency.hpp"
#include "bench/order.hpp"
#include "bench/plan.hpp"
#include "bench/target.hpp"

namespace uzram::bench {

// What a job does between two pauses: a number of requests, or whatever fits a time.
struct Stretch {
  std::uint64_t requests = 0;
  // Nanoseconds; 0: no limit, `requests` counts.
  std::uint64_t time_ns = 0;
  // A flush at the end, within the time.
  bool flush = false;
  // Instead of a number or a time: until this is set. May be null.
  const std::atomic<bool>* until = nullptr;
};

struct JobCounts {
  std::uint64_t requests = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t write_bytes = 0;  // discarded ones too
  // Of the last stretch, on the steady clock.
  std::uint64_t start_ns = 0;
  std::uint64_t end_ns = 0;
};

class Job {
 public:
  // `contents`: may be null; REQUIRED when the phase verifies. `stop`: ends every stretch when set.
  // Errors: no_space (buffers).
  static Result<std::unique_ptr<Job>> make(const Phase& phase, std::uint32_t index,
                                           std::shared_ptr<const DataSet> data, Port& port,
                                           Contents* contents, const std::atomic<bool>& stop);

  // REQUIRES: the last stretch did not fail.
  void run(const Stretch& stretch) noexcept;

  // The requests of one pass over the range.
  [[nodiscard]] std::uint64_t blocks() const noexcept { return blocks_; }
  [[nodiscard]] const JobCounts& counts() const noexcept { return counts_; }
  [[nodiscard]] const LatencyHistogram* latency() const noexcept { return latency_.get(); }
  // As fio's slat: of each request from when it is ready until the call that submits it, with what
  // else is in its batch, has returned.
  [[nodiscard]] const LatencyHistogram* submit_latency() const noexcept {
    return submit_latency_.get();
  }
  // Empty: nothing failed.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }

 private:
  // One request that may be in flight, and its buffer for reads.
  struct Slot {
    Request request;
    std::byte* buffer = nullptr;
    std::uint64_t submitted_ns = 0;
    // Of what a write stores.
    std::uint32_t generation = 0;
  };
  struct FreeBuffer {
    void operator()(std::byte* buffer) const noexcept;
  };

  Job(const Phase& phase, std::uint32_t index, std::shared_ptr<const DataSet> data, Port& port,
      Contents* contents, const std::atomic<bool>& stop);

  Result<void> take_memory();
  void run_one_at_a_time(const Stretch& stretch) noexcept;
  void run_in_flight(const Stretch& stretch) noexcept;
  void submit_batch() noexcept;
  void reap_completed() noexcept;
  [[nodiscard]] bool waits_for_pass() const noexcept;
  [[nodiscard]] bool goes_on(const Stretch& stretch, std::uint64_t issued) noexcept;
  void prepare(Slot& slot) noexcept;
  void finish(Slot& slot) noexcept;
  void fail(const Request& request, const std::string& why);
  [[nodiscard]] std::uint64_t next_block(bool reads) noexcept;
  [[nodiscard]] std::uint32_t generation() const noexcept;

  const Phase phase_;
  const std::shared_ptr<const DataSet> data_;
  Port& port_;
  Contents* const contents_;
  const std::atomic<bool>& stop_;
  const std::uint64_t blocks_;
  const std::uint64_t first_byte_;
  const std::uint32_t index_;
  const std::uint64_t seed_;
  // Writes a range that nobody else writes or reads meanwhile.
  const bool replaces_alone_;
  // Reading the clock at every request would cost as much as some requests.
  const std::uint64_t requests_between_clocks_;

  RandomOrder order_;
  std::uint64_t pass_ = 0;
  // Where the passes are: of reads and of writes for sequential mixes, else the first.
  std::uint64_t cursors_[2] = {0, 0};
  std::uint64_t mix_state_;

  std::unique_ptr<std::byte, FreeBuffer> buffers_;
  std::vector<Slot> slots_;
  std::vector<Slot*> free_;
  std::vector<Request*> batch_;

  JobCounts counts_;
  std::unique_ptr<LatencyHistogram> latency_;
  std::unique_ptr<LatencyHistogram> submit_latency_;
  std::string failure_;
};

}  // namespace uzram::bench
