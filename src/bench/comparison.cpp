#include <algorithm>
#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/size.hpp"
#include "bench/outputs.hpp"
#include "bench/result_cells.hpp"

namespace uzram::bench {
namespace {

// What makes two cells the same; the members that a comparison leaves open are empty.
struct Key {
  std::uint32_t threads = 0;
  std::string corpus;
  std::uint64_t block_size = 0;
  std::uint32_t iodepth = 0;
  std::string op;
  std::string state;
  std::string algorithm;
  std::string label;
  std::string mode;
  std::optional<std::uint32_t> streams;

  friend auto operator<=>(const Key&, const Key&) = default;
};

struct Identity {
  bool label = false;
  bool algorithm = false;
};

Key key_of(const Row& row, const AlgorithmNames& names, const Identity& identity) {
  Key key;
  key.threads = row.threads;
  key.corpus = row.corpus;
  key.block_size = row.block_size;
  key.iodepth = row.iodepth;
  key.op = row.op;
  key.state = row.state;
  if (identity.algorithm) {
    key.algorithm = names.of(row);
  }
  if (identity.label) {
    key.label = row.label;
    key.mode = row.mode;
    key.streams = row.streams;
  }
  return key;
}

using Rows = std::vector<const Row*>;

template <typename Text>
std::set<std::string> distinct(const Rows& rows, const Text& text) {
  std::set<std::string> texts;
  for (const Row* row : rows) {
    texts.insert(text(*row));
  }
  return texts;
}

std::string label_of(const Row& row) { return row.label; }

std::string quoted(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", printable(name));
  }
  return text.empty() ? "none" : text;
}

Result<Rows> select(const ResultFile& file, const std::string& target, std::string_view which) {
  Rows all;
  Rows selected;
  for (const Row& row : file.rows) {
    // Nothing was measured in a row without a speed.
    if (row.mb_per_s.empty()) {
      continue;
    }
    all.push_back(&row);
    if (target.empty() || row.target == target || row.label == target) {
      selected.push_back(&row);
    }
  }
  if (selected.empty()) {
    return Error{Errc::not_found, 0,
                 target.empty() ? fmt::format("the {} results have no rows to compare", which)
                                : fmt::format("the {} results have no target \"{}\": expected one "
                                              "of {}",
                                              which, target, quoted(distinct(all, label_of)))};
  }
  return selected;
}

Identity identity_of(const Rows& older, const Rows& newer) {
  Identity identity;
  identity.label = distinct(older, label_of).size() > 1 || distinct(newer, label_of).size() > 1;
  identity.algorithm = identity.label || distinct(older, algorithm_text).size() > 1 ||
                       distinct(newer, algorithm_text).size() > 1;
  return identity;
}

struct Cell {
  const Row* older = nullptr;
  const Row* newer = nullptr;
  // New against old, round by round, when both are of one run; else empty.
  Spread ratios;
};

// Targets of one run took turns in each round, so that their rounds belong together.
bool of_one_run(const ResultFile& older, const ResultFile& newer) {
  return older.machine == newer.machine && older.suite == newer.suite &&
         older.parameters == newer.parameters && older.machine.contains("date");
}

// Where the run ended within a round, one of both has a round more: the last one.
Spread paired(const Row& older, const Row& newer) {
  const std::vector<double>& before = older.mb_per_s.values();
  const std::vector<double>& after = newer.mb_per_s.values();
  const bool possible = std::all_of(before.begin(), before.end(), [](double mb) { return mb > 0; });
  std::vector<double> ratios;
  for (std::size_t round = 0; possible && round < std::min(before.size(), after.size()); ++round) {
    ratios.push_back(after[round] / before[round]);
  }
  return Spread(std::move(ratios));
}

std::vector<Cell> match(const Rows& older, const Rows& newer, const Identity& identity,
                        bool one_run) {
  const AlgorithmNames old_names(older);
  const AlgorithmNames new_names(newer);
  std::multimap<Key, const Row*> open;
  for (const Row* row : newer) {
    open.emplace(key_of(*row, new_names, identity), row);
  }
  std::vector<Cell> cells;
  for (const Row* row : older) {
    const Key key = key_of(*row, old_names, identity);
    const auto first = open.lower_bound(key);
    if (first != open.end() && first->first == key) {
      cells.push_back({row, first->second, one_run ? paired(*row, *first->second) : Spread()});
      open.erase(first);
    }
  }
  std::stable_sort(cells.begin(), cells.end(), [](const Cell& a, const Cell& b) {
    return a.older->threads < b.older->threads;
  });
  return cells;
}

enum class Verdict { noise, faster, slower };

Verdict verdict_of(const Cell& cell) {
  if (!cell.ratios.empty()) {
    const bool holds_1 = cell.ratios.min() <= 1 && cell.ratios.max() >= 1;
    return holds_1 ? Verdict::noise : cell.ratios.min() > 1 ? Verdict::faster : Verdict::slower;
  }
  const Spread& older = cell.older->mb_per_s;
  const Spread& newer = cell.newer->mb_per_s;
  if (newer.min() <= older.max() && older.min() <= newer.max()) {
    return Verdict::noise;
  }
  return newer.min() > older.max() ? Verdict::faster : Verdict::slower;
}

std::string verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::noise:
      return "within noise";
    case Verdict::faster:
      return "faster";
    case Verdict::slower:
      return "slower";
  }
  return "";
}

std::string ratio_text(const Cell& cell) {
  if (!cell.ratios.empty()) {
    return factor_text(cell.ratios.median());
  }
  const double older = cell.older->mb_per_s.median();
  return older > 0 ? factor_text(cell.newer->mb_per_s.median() / older) : "-";
}

using CellText = std::string (*)(const Cell&);
struct Column {
  std::string heading;
  bool right = false;
  // Columns that only tell cells apart are left out when they are the same in all.
  bool identifies = false;
  CellText text = nullptr;
};

std::string ratio_range_text(const Cell& cell) {
  return cell.ratios.empty()
             ? "-"
             : fmt::format("{}-{}", factor_text(cell.ratios.min()), factor_text(cell.ratios.max()));
}

const std::vector<Column>& columns() {
  static const std::vector<Column> all = {
      {"DATA", false, true, [](const Cell& cell) { return printable(cell.older->corpus); }},
      {"BLOCK", true, true, [](const Cell& cell) { return format_size(cell.older->block_size); }},
      {"IODEPTH", true, true, [](const Cell& cell) { return std::to_string(cell.older->iodepth); }},
      {"OP", false, false, [](const Cell& cell) { return op_text(*cell.older); }},
      {"ALGORITHM", false, true, [](const Cell& cell) { return algorithm_text(*cell.older); }},
      {"TARGET", false, true, [](const Cell& cell) { return printable(cell.older->label); }},
      {"OLD MB/S", true, false,
       [](const Cell& cell) { return number_text(cell.older->mb_per_s.median()); }},
      {"MIN-MAX", true, false, [](const Cell& cell) { return range_text(cell.older->mb_per_s); }},
      {"NEW MB/S", true, false,
       [](const Cell& cell) { return number_text(cell.newer->mb_per_s.median()); }},
      {"MIN-MAX", true, false, [](const Cell& cell) { return range_text(cell.newer->mb_per_s); }},
      {"RATIO", true, false, ratio_text},
      {"ROUNDS", true, true, ratio_range_text},
      {"", false, false, [](const Cell& cell) { return verdict_text(verdict_of(cell)); }},
  };
  return all;
}

// A table for each number of jobs, all with the same columns.
std::string sections(const std::vector<Cell>& cells) {
  std::vector<Column> used;
  std::vector<std::string> common;
  for (const Column& column : columns()) {
    const std::string first = column.text(cells.front());
    const bool same = std::all_of(cells.begin(), cells.end(),
                                  [&](const Cell& cell) { return column.text(cell) == first; });
    if (!column.identifies || !same) {
      used.push_back(column);
    } else if (column.heading != "TARGET" && column.heading != "ROUNDS" && !first.empty()) {
      common.push_back(fmt::format("{} {}", column.heading, first));
    }
  }
  std::string text = common.empty() ? "" : fmt::format("all: {}\n", fmt::join(common, ", "));
  for (auto cell = cells.begin(); cell != cells.end();) {
    const std::uint32_t jobs = cell->older->threads;
    TextTable table;
    for (const Column& column : used) {
      table.columns.push_back({column.heading, column.right});
    }
    for (; cell != cells.end() && cell->older->threads == jobs; ++cell) {
      std::vector<std::string>& line = table.rows.emplace_back();
      for (const Column& column : used) {
        line.push_back(column.text(*cell));
      }
    }
    text += fmt::format("\n#jobs {}\n{}", jobs, table.text());
  }
  return text;
}

std::string member_text(const ResultFile& file, const std::string& name) {
  const auto found = file.machine.find(name);
  return found == file.machine.end() ? "unknown" : value_text(*found);
}

std::string heading(const ResultFile& older, const ResultFile& newer, const Rows& old_rows,
                    const Rows& new_rows) {
  std::string text = fmt::format("old: {}\nnew: {}\n", quoted(distinct(old_rows, label_of)),
                                 quoted(distinct(new_rows, label_of)));
  text += "MB/S: median of the rounds. ";
  text +=
      of_one_run(older, newer)
          ? "One run: RATIO and ROUNDS are of each round with its own; within\nnoise: their range "
            "contains 1.\n"
          : "Separate runs: within noise: the rounds of old and new overlap.\nThey differ also "
            "by what changed on the machine between them.\n";
  for (const auto& [name, value] : older.machine.items()) {
    const std::string other = member_text(newer, name);
    if (name != "date" && other != value_text(value)) {
      text +=
          fmt::format("note: {} differs: {} and {}\n", printable(name), value_text(value), other);
    }
  }
  if (older.interrupted || newer.interrupted) {
    text += fmt::format("note: interrupted before the end: {}\n",
                        older.interrupted ? (newer.interrupted ? "both" : "old") : "new");
  }
  return text;
}

}  // namespace

Result<std::string> format_comparison(const ResultFile& older, const ResultFile& newer,
                                      const CompareOptions& options) {
  const Result<Rows> old_rows = select(older, options.old_target, "old");
  if (!old_rows) {
    return old_rows.error();
  }
  const Result<Rows> new_rows = select(newer, options.new_target, "new");
  if (!new_rows) {
    return new_rows.error();
  }
  const Identity identity = identity_of(*old_rows, *new_rows);
  const std::vector<Cell> cells = match(*old_rows, *new_rows, identity, of_one_run(older, newer));
  if (cells.empty()) {
    return Error{
        Errc::not_found, 0,
        fmt::format("no cell of the old results (targets {}, operations {}) is in the new ones "
                    "(targets {}, operations {}): expected the same suite and options, and a "
                    "target chosen of each where they have several",
                    quoted(distinct(*old_rows, label_of)), quoted(distinct(*old_rows, op_text)),
                    quoted(distinct(*new_rows, label_of)), quoted(distinct(*new_rows, op_text)))};
  }
  std::map<Verdict, std::size_t> counts;
  for (const Cell& cell : cells) {
    ++counts[verdict_of(cell)];
  }
  std::string text = heading(older, newer, *old_rows, *new_rows) + sections(cells) + "\n";
  if (cells.size() < old_rows->size() || cells.size() < new_rows->size()) {
    text += fmt::format("without a counterpart: {} of old, {} of new\n",
                        old_rows->size() - cells.size(), new_rows->size() - cells.size());
  }
  return text + fmt::format("{} cells: {} within noise, {} faster, {} slower\n", cells.size(),
                            counts[Verdict::noise], counts[Verdict::faster],
                            counts[Verdict::slower]);
}

}  // namespace uzram::bench
