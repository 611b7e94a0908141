#include "bench/cell.hpp"

#include <algorithm>

namespace uzram::bench {
namespace {

std::optional<double> ratio_of(std::optional<std::uint64_t> original,
                               std::optional<std::uint64_t> part) {
  if (!original || !part || *original == 0 || *part == 0) {
    return std::nullopt;
  }
  return static_cast<double>(*original) / static_cast<double>(*part);
}

std::vector<double> scaled(std::vector<double> values, double factor) {
  for (double& value : values) {
    value *= factor;
  }
  return values;
}

}  // namespace

void Cell::add_round(double elapsed_s, const Crew& crew, const Usage& usage, const Target& target) {
  info_ = target.info();
  memory_ = target.memory();
  const JobCounts counts = crew.counts();
  elapsed_s_.push_back(std::max(elapsed_s, 1e-9));
  requests_.push_back(static_cast<double>(counts.requests));
  bytes_.push_back(static_cast<double>(counts.read_bytes + counts.write_bytes));
  read_bytes_.push_back(static_cast<double>(counts.read_bytes));
  write_bytes_.push_back(static_cast<double>(counts.write_bytes));
  // A server that has ended takes its counts along.
  user_s_.push_back(std::max(usage.user_s, 0.0));
  sys_s_.push_back(std::max(usage.sys_s, 0.0));
  switches_.push_back(std::max(usage.context_switches, 0.0));
  for (const auto& [name, count] : crew.counters()) {
    counters_[name].push_back(count);
  }
  if (latency_ == nullptr) {
    latency_ = std::make_unique<LatencyHistogram>();
    submit_latency_ = std::make_unique<LatencyHistogram>();
  }
  crew.merge_latencies(*latency_, *submit_latency_);
}

std::vector<double> Cell::rates(const std::vector<double>& amounts) const {
  std::vector<double> rates;
  for (std::size_t i = 0; i < amounts.size(); ++i) {
    rates.push_back(amounts[i] / elapsed_s_[i]);
  }
  return rates;
}

std::vector<double> Cell::speed_against(const Cell& other) const {
  const std::vector<double> ours = rates(bytes_);
  const std::vector<double> theirs = other.rates(other.bytes_);
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
    ratios.push_back(theirs[i] > 0 ? ours[i] / theirs[i] : 0);
  }
  return ratios;
}

Row Cell::row(const Phase& phase, const TargetConfig& config, const DataSet& data,
              const Cell* first, const Cell* codec) const {
  Row row;
  row.target = config.given;
  row.label = config.label;
  row.path = info_.path;
  row.algorithm = info_.algorithm;
  row.level = info_.level;
  row.mode = info_.mode;
  row.streams = info_.streams;
  row.corpus = data.name();
  row.op = phase.op;
  row.state = phase.state;
  row.threads = phase.jobs;
  row.iodepth = phase.iodepth;
  row.block_size = phase.block_size;
  row.rounds = static_cast<std::uint32_t>(elapsed_s_.size());
  row.mb_per_s = Spread(scaled(rates(bytes_), 1e-6));
  row.iops = Spread(rates(requests_));
  std::vector<double> us_per_page;
  for (const double rate : rates(bytes_)) {
    us_per_page.push_back(rate > 0 ? 1e6 * static_cast<double>(kDataPage) / rate : 0);
  }
  row.us_per_page = Spread(std::move(us_per_page));
  if (first != nullptr) {
    row.ratio_to_first = Spread(speed_against(*first));
  }
  if (codec != nullptr) {
    row.ratio_to_codec = Spread(speed_against(*codec));
  }
  row.elapsed_s = Spread(elapsed_s_);
  if (phase.access == Access::read_write) {
    row.read_mb_per_s = Spread(scaled(rates(read_bytes_), 1e-6));
    row.write_mb_per_s = Spread(scaled(rates(write_bytes_), 1e-6));
  }
  row.user_s = Spread(user_s_).median();
  row.sys_s = Spread(sys_s_).median();
  row.context_switches = Spread(switches_).median();
  for (const auto& [name, counts] : counters_) {
    if (counts.size() == elapsed_s_.size()) {
      row.counters[name] = Spread(counts).median();
    }
  }
  row.compr_ratio = ratio_of(memory_.orig_data_size, memory_.compr_data_size);
  row.mem_ratio = ratio_of(memory_.orig_data_size, memory_.mem_used_total);
  row.mem_used = memory_.mem_used_total;
  row.peak_memory = memory_.peak;
  if (latency_ != nullptr && latency_->count() != 0) {
    row.latency = latency_->summary();
    row.submit_latency = submit_latency_->summary();
  }
  return row;
}

}  // namespace uzram::bench
