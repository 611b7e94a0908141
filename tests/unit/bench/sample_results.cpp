#include "unit/bench/sample_results.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace uzram::bench {
namespace {

struct Algorithm {
  const char* name;
  std::optional<int> level;
  double write_us;
  double ratio;
};

constexpr std::uint64_t kDataBytes = std::uint64_t{512} << 20;

Spread scaled(const Spread& spread, double factor, double power) {
  std::vector<double> values;
  for (const double value : spread.values()) {
    values.push_back(factor * std::pow(value, power));
  }
  return Spread(std::move(values));
}

Spread quotient(const Spread& above, const Spread& below) {
  std::vector<double> values;
  for (std::size_t i = 0; i < above.values().size(); ++i) {
    values.push_back(above.values()[i] / below.values()[i]);
  }
  return Spread(std::move(values));
}

Latency sample_latency(double us) {
  const auto ns = [&](double factor) { return static_cast<std::uint64_t>(us * factor * 1000); };
  return {ns(0.6), us * 1050, ns(1), ns(1.7), ns(4), ns(60)};
}

}  // namespace

Spread around(double middle) {
  return Spread({middle * 1.02, middle * 0.97, middle, middle * 1.01, middle * 0.99});
}

Row sample_row(const std::string& label, const std::string& op, double mb_per_s) {
  Row row;
  row.target = label;
  row.label = label;
  row.path = label.starts_with("zram") ? "pread/pwrite" : "function call";
  row.algorithm = "lz4";
  row.corpus = "cc1plus";
  row.op = op;
  row.rounds = 5;
  // Targets differ in how their rounds vary, so that ratios do vary as well.
  std::vector<double> rounds = around(mb_per_s).values();
  std::rotate(rounds.begin(),
              rounds.begin() + static_cast<std::ptrdiff_t>(label.size() % rounds.size()),
              rounds.end());
  row.mb_per_s = Spread(rounds);
  row.iops = scaled(row.mb_per_s, 1e6 / 4096, 1);
  row.us_per_page = scaled(row.mb_per_s, 4096, -1);
  row.elapsed_s = scaled(row.mb_per_s, kDataBytes / 1e6, -1);
  row.ratio_to_first = Spread(std::vector<double>(5, 1.0));
  row.user_s = 0.25;
  row.sys_s = 1.5;
  row.context_switches = 42;
  return row;
}

ResultFile sample_file(const std::string& suite) {
  ResultFile file;
  file.machine = {
      {"version", "1.2.3"}, {"date", "2025-01-31T12:00:00Z"},         {"cpu", "Some CPU @ 2.50GHz"},
      {"cpus", 4},          {"memory_bytes", std::uint64_t{8} << 30}, {"kernel", "6.1.0"}};
  file.suite = suite;
  file.parameters = {{"size", "512M"}, {"rounds", 5}, {"jobs", {1, 2, 3}}};
  return file;
}

ResultFile streams_results() {
  ResultFile file = sample_file("streams");
  constexpr std::array<std::pair<const char*, const char*>, 8> kOps = {{{"read", "holes"},
                                                                        {"randread", "holes"},
                                                                        {"write", ""},
                                                                        {"randwrite", ""},
                                                                        {"read", "stored"},
                                                                        {"randread", "stored"},
                                                                        {"rw", ""},
                                                                        {"randrw", ""}}};
  for (const char* corpus : {"pattern-0xbadc0ffee", "compressible-50"}) {
    for (std::uint32_t jobs = 1; jobs <= 10; ++jobs) {
      for (std::size_t op = 0; op < kOps.size(); ++op) {
        const double scale = (op < 2 ? 9000.0 : 900.0 + 150 * static_cast<double>(op)) *
                             (corpus[0] == 'p' ? 1.0 : 0.6);
        Spread first;
        for (const auto& [label, most] :
             {std::pair("zram:streams=4", 3.0), std::pair("zram:streams=8", 3.4),
              std::pair("engine", 4.2)}) {
          const double speed = scale * most * jobs / (jobs + most - 1);
          Row row = sample_row(label, kOps[op].first, speed);
          row.state = kOps[op].second;
          row.corpus = corpus;
          row.algorithm = "lzo";
          row.threads = jobs;
          row.compr_ratio = 2.1;
          if (row.op == "rw" || row.op == "randrw") {
            row.read_mb_per_s = scaled(row.mb_per_s, 0.5, 1);
            row.write_mb_per_s = row.read_mb_per_s;
          }
          first = first.empty() ? row.mb_per_s : first;
          row.ratio_to_first = quotient(row.mb_per_s, first);
          file.rows.push_back(row);
        }
      }
    }
  }
  return file;
}

ResultFile pages_results() {
  ResultFile file = sample_file("pages");
  file.notes = {"zram has no lz4-9: its rows are left out"};
  const std::array<Algorithm, 5> algorithms = {{{"lz4", std::nullopt, 4, 2.2},
                                                {"lzo-rle", std::nullopt, 4.6, 2.25},
                                                {"zstd", 1, 10, 3.0},
                                                {"zstd", 3, 14, 3.1},
                                                {"deflate", std::nullopt, 40, 3.05}}};
  constexpr std::array<std::pair<const char*, double>, 3> kTargets = {
      {{"codec", 1.0}, {"engine", 1.15}, {"zram", 1.9}}};
  constexpr std::array<std::pair<const char*, double>, 4> kOps = {
      {{"fill", 1.2}, {"write", 1.0}, {"read", 0.3}, {"randread", 0.35}}};
  double harder = 1;
  for (const char* corpus :
       {"anon-browser", "cc1plus", "database", "firefox", "kernel", "python", "text"}) {
    harder *= 1.12;
    for (const Algorithm& algorithm : algorithms) {
      for (const auto& [op, part] : kOps) {
        Spread first;
        for (const auto& [label, slower] : kTargets) {
          const double us = algorithm.write_us * part * slower * harder;
          Row row = sample_row(label, op, 4096 / us);
          row.corpus = corpus;
          row.algorithm = algorithm.name;
          row.level = algorithm.level;
          row.compr_ratio = algorithm.ratio / harder * 1.4;
          row.mem_ratio = *row.compr_ratio * 0.96;
          row.peak_memory = kDataBytes / 2;
          row.latency = sample_latency(us);
          first = first.empty() ? row.mb_per_s : first;
          row.ratio_to_first = quotient(row.mb_per_s, first);
          row.ratio_to_codec = row.ratio_to_first;
          file.rows.push_back(row);
        }
      }
    }
  }
  return file;
}

}  // namespace uzram::bench
