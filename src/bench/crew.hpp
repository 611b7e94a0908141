// Crew: the jobs of one phase on one target, each with a thread of its own.
//
// Role: between the runner and the jobs. Threads and ports are made before anything is timed and wait
// between stretches, so that targets can take turns.
// Errors: those of opening ports, and the first failure of a job.
// Threads: all calls by one thread, the runner's.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "bench/job.hpp"
#include "bench/plan.hpp"
#include "bench/target.hpp"
#include "os/perf_counters.hpp"

namespace uzram::bench {

// By name, see os/perf_counters.hpp.
using Counters = std::map<std::string, double>;

// Without those that some of the threads could not have: the sum of the others would pass for all.
[[nodiscard]] Counters sum_of_counters(const std::vector<Counters>& of_threads);

class Crew {
 public:
  // REQUIRES: `stop` outlives the crew.
  static Result<std::unique_ptr<Crew>> make(const Phase& phase, Target& target,
                                            const std::shared_ptr<const DataSet>& data,
                                            Contents* contents, const std::atomic<bool>& stop);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Stretch number `index` of `count` that the phase is cut into. Returns the time from the first
  // job's start to the last one's end, in seconds. Errors: a request that failed, in words.
  Result<double> run(std::uint32_t index, std::uint32_t count);
  // Until `end` is set. Otherwise as run().
  Result<double> run_until(const std::atomic<bool>& end);

  // Sums over the jobs.
  [[nodiscard]] JobCounts counts() const;
  void merge_latencies(LatencyHistogram& latency, LatencyHistogram& submit) const;
  [[nodiscard]] Counters counters() const;
  // Port::note() of the first that has one.
  [[nodiscard]] std::string note() const;

 private:
  struct Member {
    std::unique_ptr<Port> port;
    std::unique_ptr<Job> job;
    std::unique_ptr<os::PerfCounters> counters;
    Error error;
    bool failed = false;
    std::thread thread;
  };

  Crew(const Phase& phase, Target& target) : phase_(phase), target_(target) {}
  void work(Member& member, std::uint32_t index, const std::shared_ptr<const DataSet>& data,
            Contents* contents, const std::atomic<bool>& stop);
  Result<double> run(const Stretch& stretch);
  void start_all(const Stretch& stretch);
  void wait_for_all();
  [[nodiscard]] Stretch stretch_of(std::uint64_t blocks, std::uint32_t index,
                                   std::uint32_t count) const noexcept;

  const Phase phase_;
  Target& target_;
  std::vector<std::unique_ptr<Member>> members_;

  std::mutex mutex_;
  std::condition_variable begin_;
  std::condition_variable end_;
  Stretch stretch_;
  std::uint64_t turn_ = 0;
  std::size_t at_work_ = 0;
  bool dismissed_ = false;
};

}  // namespace uzram::bench
