// The summary lines that fio prints under "Run status group".
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "bench/outputs.hpp"
#include "bench/result_cells.hpp"

namespace uzram::bench {
namespace {

// One line of a direction: "READ", "WRITE", "TRIM" or, of both directions together, "MIXED".
struct Line {
  std::string_view direction;
  double bytes_per_s = 0;
  double bytes = 0;
};

// fio's num2str: divided until at most `digits` digits stand before the point, the rest of the
// digits behind it.
std::string scaled(double number, std::size_t digits, std::uint64_t step, std::size_t unit,
                   const std::array<std::string_view, 6>& units) {
  auto whole = static_cast<std::uint64_t>(std::round(std::clamp(number, 0.0, 1e18)));
  std::uint64_t rest = 0;
  bool divided = false;
  while (std::to_string(whole).size() > digits && unit + 1 < units.size()) {
    rest = whole % step;
    whole /= step;
    divided = true;
    ++unit;
  }
  const std::size_t length = std::to_string(whole).size();
  if (!divided || length + 1 >= digits) {
    whole += divided && rest >= step / 2 ? 1 : 0;
    return fmt::format("{}{}", whole, units[unit]);
  }
  const std::string fraction = fmt::format(
      "{:.{}f}", static_cast<double>(rest) / static_cast<double>(step), digits - length - 1);
  return fmt::format("{}.{}{}", whole, fraction.substr(2), units[unit]);
}

std::string binary3(double bytes) {
  return scaled(bytes, 4, 1024, 0, {"B", "KiB", "MiB", "GiB", "TiB", "PiB"});
}

std::string decimal3(double bytes) {
  return scaled(bytes, 4, 1000, 0, {"B", "kB", "MB", "GB", "TB", "PB"});
}

// fio 2 counts in units of 1024 bytes and calls them KB.
std::string binary2(double bytes) {
  return scaled(bytes / 1024, 6, 1024, 1, {"B", "KB", "MB", "GB", "TB", "PB"});
}

std::string summary(const Line& line, double seconds, std::uint32_t jobs, FioStyle style) {
  const double all = line.bytes_per_s;
  // How the jobs differ is not known: each has its part.
  const double one = all / std::max(jobs, 1U);
  const auto msec = static_cast<std::uint64_t>(std::clamp(seconds * 1000, 1.0, 1e15));
  if (style == FioStyle::fio2) {
    return fmt::format("{:>7}: io={}, aggrb={}/s, minb={}/s, maxb={}/s, mint={}msec, maxt={}msec\n",
                       line.direction, binary2(line.bytes), binary2(all), binary2(one),
                       binary2(one), msec, msec);
  }
  return fmt::format("{:>7}: bw={}/s ({}/s), {}/s-{}/s ({}/s-{}/s), io={} ({}), run={}-{}msec\n",
                     line.direction, binary3(all), decimal3(all), binary3(one), binary3(one),
                     decimal3(one), decimal3(one), binary3(line.bytes), decimal3(line.bytes), msec,
                     msec);
}

// The bytes are those of a round: the speed of one times the time of another would be neither's.
Line line_of(std::string_view direction, const Spread& mb_per_s, const Spread& elapsed_s) {
  if (mb_per_s.empty()) {
    return {direction};
  }
  std::vector<double> bytes;
  const std::size_t rounds = std::min(mb_per_s.values().size(), elapsed_s.values().size());
  for (std::size_t round = 0; round < rounds; ++round) {
    bytes.push_back(mb_per_s.values()[round] * 1e6 * elapsed_s.values()[round]);
  }
  return {direction, mb_per_s.median() * 1e6, bytes.empty() ? 0 : Spread(bytes).median()};
}

std::vector<Line> lines_of(const Row& row) {
  if (!row.read_mb_per_s.empty() && !row.write_mb_per_s.empty()) {
    return {line_of("READ", row.read_mb_per_s, row.elapsed_s),
            line_of("WRITE", row.write_mb_per_s, row.elapsed_s)};
  }
  const auto has = [&](std::string_view part) { return row.op.find(part) != std::string::npos; };
  if (has("discard") || has("trim")) {
    return {line_of("TRIM", row.mb_per_s, row.elapsed_s)};
  }
  if (row.op == "rw" || row.op == "randrw") {
    return {line_of("MIXED", row.mb_per_s, row.elapsed_s)};
  }
  return {
      line_of(has("read") || row.op == "verify" ? "READ" : "WRITE", row.mb_per_s, row.elapsed_s)};
}

// The names of the experiments' job files.
std::string job_name(const Row& row) {
  static const std::map<std::string_view, std::string_view> names = {
      {"read", "seq-read"},        {"randread", "rand-read"}, {"write", "seq-write"},
      {"randwrite", "rand-write"}, {"rw", "mixed-seq"},       {"randrw", "mixed-rand"}};
  const auto found = names.find(row.op);
  std::string name(found == names.end() ? row.op : found->second);
  return printable(row.state.empty() ? name : fmt::format("{} ({})", name, row.state));
}

// Rows of one target, data set, block size, depth and algorithm.
struct Block {
  std::string title;
  std::map<std::uint32_t, std::vector<const Row*>> by_jobs;
};

std::vector<Block> blocks_of(const std::vector<Row>& rows) {
  std::vector<Block> blocks;
  for (const Row& row : rows) {
    RowGroup alone{row.corpus, row.block_size, row.iodepth, {&row}};
    std::string title = group_text(alone);
    title.resize(title.rfind(", "));  // the number of jobs
    title = fmt::format("{}: {}", printable(row.label), title);
    auto found = std::find_if(blocks.begin(), blocks.end(),
                              [&](const Block& block) { return block.title == title; });
    if (found == blocks.end()) {
      found = blocks.insert(found, Block{title, {}});
    }
    found->by_jobs[row.threads].push_back(&row);
  }
  return blocks;
}

}  // namespace

std::string format_fio(const ResultFile& results, FioStyle style) {
  std::string text;
  for (const Block& block : blocks_of(results.rows)) {
    text += fmt::format("{}{}\n", text.empty() ? "" : "\n", block.title);
    for (const auto& [jobs, rows] : block.by_jobs) {
      text += fmt::format("#jobs{}\n", jobs);
      for (const Row* row : rows) {
        text += fmt::format("{}: (all jobs):\n", job_name(*row));
        const double seconds = row->elapsed_s.empty() ? 0 : row->elapsed_s.median();
        for (const Line& line : lines_of(*row)) {
          text += summary(line, seconds, jobs, style);
        }
      }
    }
  }
  return text;
}

}  // namespace uzram::bench
