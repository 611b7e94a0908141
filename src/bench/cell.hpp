// Cell: what the rounds of one target in one phase have measured, and the row that comes of it.
//
// Units: seconds, bytes.
// Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/crew.hpp"
#include "bench/latency.hpp"
#include "bench/plan.hpp"
#include "bench/resources.hpp"
#include "bench/results.hpp"
#include "bench/target.hpp"

namespace uzram::bench {

class Cell {
 public:
  // One round. `elapsed_s`: the sum of its stretches.
  void add_round(double elapsed_s, const Crew& crew, const Usage& usage, const Target& target);

  [[nodiscard]] bool empty() const noexcept { return elapsed_s_.empty(); }
  // Rounds may be missing at the end of a run that was stopped: both have the first ones.
  [[nodiscard]] std::vector<double> speed_against(const Cell& other) const;

  // `first` and `codec` may be this cell; `codec` may be null. REQUIRES: not empty().
  [[nodiscard]] Row row(const Phase& phase, const TargetConfig& config, const DataSet& data,
                        const Cell* first, const Cell* codec) const;

 private:
  [[nodiscard]] std::vector<double> rates(const std::vector<double>& amounts) const;

  TargetInfo info_;
  std::vector<double> elapsed_s_;
  std::vector<double> requests_;
  std::vector<double> bytes_;
  std::vector<double> read_bytes_;
  std::vector<double> write_bytes_;
  std::vector<double> user_s_;
  std::vector<double> sys_s_;
  std::vector<double> switches_;
  std::map<std::string, std::vector<double>> counters_;
  MemoryUse memory_;
  std::unique_ptr<LatencyHistogram> latency_;
  std::unique_ptr<LatencyHistogram> submit_latency_;
};

}  // namespace uzram::bench
