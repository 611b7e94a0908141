#include "bench/result_cells.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/size.hpp"
#include "base/table.hpp"

namespace uzram::bench {
namespace {

struct Column {
  std::string_view heading;
  bool right = true;
  // Which of the two tables has it when one would be too wide; `whole`: both.
  TablePart part = TablePart::whole;
  std::string (*cell)(const Row& row) = nullptr;
};

std::string median_text(const Spread& spread) {
  return spread.empty() ? "" : number_text(spread.median());
}

std::string ratio_text(const Spread& ratios) {
  return ratios.empty() ? "" : factor_text(ratios.median());
}

std::string ratio_range_text(const Spread& ratios) {
  if (ratios.empty() || is_reference(ratios)) {
    return "";
  }
  return factor_text(ratios.min()) + "-" + factor_text(ratios.max()) +
         (within_noise(ratios) ? " =" : "");
}

// With another target than itself.
bool is_compared(const Row& row) {
  return !row.ratio_to_first.empty() && !is_reference(row.ratio_to_first);
}

std::string distance_text(const Spread& ratios) {
  const bool known = !ratios.empty() && ratios.median() > 0 && !is_reference(ratios);
  return known ? factor_text(1 / ratios.median()) : "";
}

std::string optional_ratio_text(const std::optional<double>& ratio) {
  return ratio ? factor_text(*ratio) : "";
}

std::string optional_size_text(const std::optional<std::uint64_t>& size) {
  return size ? format_size(*size) : "";
}

// Empty where no CPU time was measured at all.
std::string seconds_text(const Row& row, double seconds) {
  return row.user_s + row.sys_s > 0 ? fmt::format("{:.{}f}", seconds, seconds < 9.9995 ? 3 : 1)
                                    : "";
}

std::vector<Column> key_columns(const RowGroup& group) {
  const auto differs = [&](const auto& what) {
    return std::any_of(group.rows.begin(), group.rows.end(),
                       [&](const Row* row) { return what(*row) != what(*group.rows.front()); });
  };
  std::vector<Column> columns = {{"OP", false, TablePart::whole, op_text}};
  if (differs([](const Row& row) { return row.threads; })) {
    columns.push_back({"JOBS", true, TablePart::whole,
                       [](const Row& row) { return std::to_string(row.threads); }});
  }
  if (differs(algorithm_text)) {
    columns.push_back({"ALGORITHM", false, TablePart::whole, algorithm_text});
  }
  columns.push_back(
      {"TARGET", false, TablePart::whole, [](const Row& row) { return printable(row.label); }});
  return columns;
}

std::vector<Column> value_columns(const RowGroup& group) {
  std::vector<Column> columns = {
      {"MB/S", true, TablePart::speed, [](const Row& row) { return median_text(row.mb_per_s); }},
      {"MIN-MAX", true, TablePart::speed, [](const Row& row) { return range_text(row.mb_per_s); }},
      {"IOPS", true, TablePart::speed,
       [](const Row& row) { return row.iops.empty() ? "" : count_text(row.iops.median()); }},
      {"US/PAGE", true, TablePart::speed,
       [](const Row& row) { return median_text(row.us_per_page); }},
      {"RATIO", true, TablePart::speed,
       [](const Row& row) { return ratio_text(row.ratio_to_first); }},
      {"MIN-MAX", false, TablePart::speed,
       [](const Row& row) { return ratio_range_text(row.ratio_to_first); }},
      {"CODEC", true, TablePart::speed,
       [](const Row& row) { return distance_text(row.ratio_to_codec); }},
      {"ELAPSED", true, TablePart::cost,
       [](const Row& row) {
         return row.elapsed_s.empty() ? "" : fmt::format("{:.3f}", row.elapsed_s.median());
       }},
      {"COMPR", true, TablePart::cost,
       [](const Row& row) { return optional_ratio_text(row.compr_ratio); }},
      {"MEM", true, TablePart::cost,
       [](const Row& row) { return optional_ratio_text(row.mem_ratio); }},
      {"USED", true, TablePart::cost,
       [](const Row& row) { return optional_size_text(row.mem_used); }},
      {"USER", true, TablePart::cost, [](const Row& row) { return seconds_text(row, row.user_s); }},
      {"SYS", true, TablePart::cost, [](const Row& row) { return seconds_text(row, row.sys_s); }},
      {"CSW", true, TablePart::cost,
       [](const Row& row) {
         return row.context_switches > 0 ? count_text(row.context_switches) : "";
       }},
      {"PEAK", true, TablePart::cost,
       [](const Row& row) { return optional_size_text(row.peak_memory); }},
  };
  // With the distance to the codec in the table, time says more than operations a second.
  const bool has_codec = std::any_of(group.rows.begin(), group.rows.end(),
                                     [](const Row* row) { return !row->ratio_to_codec.empty(); });
  const std::string_view redundant = has_codec ? "IOPS" : "US/PAGE";
  std::erase_if(columns, [&](const Column& column) { return column.heading == redundant; });
  // Alone, or without others to compare with, all ratios are 1.
  if (std::none_of(group.rows.begin(), group.rows.end(),
                   [](const Row* row) { return is_compared(*row); })) {
    std::erase_if(columns, [](const Column& column) { return column.heading == "RATIO"; });
  }
  return columns;
}

TextTable make_table(const std::vector<Column>& columns, const std::vector<const Row*>& rows) {
  TextTable table;
  table.rows.resize(rows.size());
  for (const Column& column : columns) {
    std::vector<std::string> cells;
    cells.reserve(rows.size());
    for (const Row* row : rows) {
      cells.push_back(column.cell(*row));
    }
    // The first one stays, so that no row is without cells.
    if (!table.columns.empty() &&
        std::all_of(cells.begin(), cells.end(), [](const auto& cell) { return cell.empty(); })) {
      continue;
    }
    table.columns.push_back({std::string(column.heading), column.right});
    for (std::size_t i = 0; i < rows.size(); ++i) {
      table.rows[i].push_back(std::move(cells[i]));
    }
  }
  return table;
}

// Numbers keys in the order of their first use.
template <typename Key>
std::size_t place_of(std::map<Key, std::size_t>& known, const Key& key) {
  return known.try_emplace(key, known.size()).first->second;
}

std::string microseconds_text(double ns) { return number_text(ns / 1000); }

}  // namespace

std::vector<RowGroup> group_rows(const std::vector<Row>& rows) {
  using Key = std::tuple<std::string, std::uint64_t, std::uint32_t>;
  std::map<Key, std::size_t> keys;
  std::vector<RowGroup> groups;
  for (const Row& row : rows) {
    const std::size_t place = place_of(keys, Key(row.corpus, row.block_size, row.iodepth));
    if (place == groups.size()) {
      groups.push_back({row.corpus, row.block_size, row.iodepth, {}});
    }
    groups[place].rows.push_back(&row);
  }
  for (RowGroup& group : groups) {
    using Place = std::tuple<std::size_t, std::uint32_t, std::size_t>;
    std::map<std::string, std::size_t> ops;
    std::map<std::string, std::size_t> algorithms;
    const AlgorithmNames names(group.rows);
    std::vector<std::pair<Place, const Row*>> placed;
    for (const Row* row : group.rows) {
      const std::size_t op = place_of(ops, op_text(*row));
      placed.emplace_back(Place(op, row->threads, place_of(algorithms, names.of(*row))), row);
    }
    std::stable_sort(placed.begin(), placed.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::transform(placed.begin(), placed.end(), group.rows.begin(),
                   [](const auto& pair) { return pair.second; });
  }
  return groups;
}

std::string shape_text(const RowGroup& group) {
  return fmt::format("{} blocks, iodepth {}", format_size(group.block_size), group.iodepth);
}

std::string group_text(const RowGroup& group) {
  std::string text = group.corpus.empty() ? "" : printable(group.corpus) + ", ";
  text += shape_text(group);
  const Row& first = *group.rows.front();
  const auto all = [&](const auto& what) {
    return std::all_of(group.rows.begin(), group.rows.end(),
                       [&](const Row* row) { return what(*row) == what(first); });
  };
  if (all(algorithm_text) && !algorithm_text(first).empty()) {
    text += ", " + algorithm_text(first);
  }
  if (all([](const Row& row) { return row.threads; })) {
    text += ", " + jobs_text(first.threads);
  }
  return text;
}

std::vector<std::string> legend(const std::vector<Row>& rows) {
  const auto any = [&](const auto& has) { return std::any_of(rows.begin(), rows.end(), has); };
  std::vector<std::string> lines = {"MB/S: median of the rounds, 10^6 bytes a second."};
  if (any(is_compared)) {
    lines.emplace_back(
        "RATIO: speed by that of the first target, each round with its own of one interleaved run; "
        "above 1: faster.");
    lines.emplace_back("=: the range of the rounds contains 1: no difference is shown.");
  }
  if (any([](const Row& row) { return !row.ratio_to_codec.empty(); })) {
    lines.emplace_back("CODEC: so many times slower than the bare codec.");
  }
  if (any([](const Row& row) { return row.compr_ratio || row.mem_ratio; })) {
    lines.emplace_back(
        "COMPR: data stored by its compressed size; MEM: by USED, what its pool takes (without "
        "tables).");
  }
  if (any([](const Row& row) { return row.user_s + row.sys_s > 0; })) {
    lines.emplace_back(
        "ELAPSED, USER, SYS: seconds, CSW: context switches of a round; CPU of generator and "
        "server.");
  }
  const auto called = [](const Row& row) { return row.path.starts_with("function call"); };
  if (any(called) && !std::all_of(rows.begin(), rows.end(), called)) {
    lines.emplace_back(
        "A function call is not a system call: it does not pay for the way into the kernel.");
  }
  return lines;
}

nlohmann::ordered_json paths_of(const std::vector<Row>& rows) {
  std::map<std::string, std::size_t> labels;
  std::vector<std::pair<std::string, std::string>> paths;
  for (const Row& row : rows) {
    if (place_of(labels, row.label) == paths.size()) {
      paths.emplace_back(row.label, row.path);
    }
  }
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [label, path] : paths) {
    object[label] = path;
  }
  return object;
}

std::string printable(std::string_view text) {
  std::string clean;
  for (const char byte : text) {
    const auto code = static_cast<unsigned char>(byte);
    clean += code < 0x20 || code == 0x7f ? '?' : byte;
  }
  // The control characters U+0080 to U+009F.
  for (std::size_t at = clean.find('\xc2'); at != std::string::npos; at = clean.find('\xc2', at)) {
    const bool control = at + 1 < clean.size() && static_cast<unsigned char>(clean[at + 1]) < 0xa0;
    if (control) {
      clean.replace(at, 2, "?");
    } else {
      ++at;
    }
  }
  return clean;
}

std::string value_text(const nlohmann::ordered_json& value) {
  using Handler = nlohmann::ordered_json::error_handler_t;
  return printable(value.is_string() ? value.get_ref<const std::string&>()
                                     : value.dump(-1, ' ', false, Handler::replace));
}

std::string op_text(const Row& row) {
  return printable(row.state.empty() ? row.op : fmt::format("{} ({})", row.op, row.state));
}

std::string algorithm_text(const Row& row) {
  return printable(row.level ? fmt::format("{}-{}", row.algorithm, *row.level) : row.algorithm);
}

AlgorithmNames::AlgorithmNames(const std::vector<const Row*>& rows) {
  std::map<std::pair<std::string, std::string>, std::optional<int>> levels;
  for (const Row* row : rows) {
    const auto key = std::pair(row->label, row->algorithm);
    if (levels.try_emplace(key, row->level).first->second != row->level) {
      with_level_.insert(row->algorithm);
    }
  }
}

std::string AlgorithmNames::of(const Row& row) const {
  return with_level_.contains(row.algorithm) ? algorithm_text(row) : printable(row.algorithm);
}

std::string jobs_text(std::uint32_t jobs) {
  return fmt::format("{} {}", jobs, jobs == 1 ? "job" : "jobs");
}

std::string number_text(double number) {
  if (number >= 99.95 || number == 0) {
    return number < 1e15 ? fmt::format("{:.0f}", number) : fmt::format("{:.2e}", number);
  }
  if (number >= 9.995) {
    return fmt::format("{:.1f}", number);
  }
  return number >= 0.0995 ? fmt::format("{:.2f}", number) : fmt::format("{:.2g}", number);
}

std::string factor_text(double factor) {
  return factor >= 0.0995 && factor < 9.995 ? fmt::format("{:.2f}", factor) : number_text(factor);
}

std::string count_text(double count) {
  constexpr std::string_view kUnits = "kMGTP";
  if (count < 9999.5) {
    return fmt::format("{:.0f}", count);
  }
  std::size_t unit = 0;
  count /= 1000;
  while (count >= 999.5 && unit + 1 < kUnits.size()) {
    count /= 1000;
    ++unit;
  }
  return number_text(count) + kUnits[unit];
}

std::string range_text(const Spread& spread) {
  return spread.empty()
             ? ""
             : fmt::format("{}-{}", number_text(spread.min()), number_text(spread.max()));
}

bool within_noise(const Spread& ratios) { return ratios.min() <= 1 && ratios.max() >= 1; }

bool is_reference(const Spread& ratios) { return ratios.min() == 1 && ratios.max() == 1; }

std::string TextTable::text() const {
  std::vector<TableColumn> plain;
  for (const TextColumn& column : columns) {
    plain.push_back({column.heading, column.right});
  }
  return format_table(plain, rows, {});
}

TextTable result_table(const RowGroup& group, TablePart part) {
  std::vector<Column> columns = key_columns(group);
  for (const Column& column : value_columns(group)) {
    if (part == TablePart::whole || column.part == part) {
      columns.push_back(column);
    }
  }
  return make_table(columns, group.rows);
}

std::optional<Latency> submission_alone(const Row& row) {
  const auto parts = [](const Latency& ns) {
    return std::tuple(ns.min_ns, ns.avg_ns, ns.p50_ns, ns.p99_ns, ns.p999_ns, ns.max_ns);
  };
  const bool same =
      row.latency && row.submit_latency && parts(*row.latency) == parts(*row.submit_latency);
  return same ? std::nullopt : row.submit_latency;
}

TextTable latency_table(const RowGroup& group, LatencyKind kind) {
  RowGroup measured = group;
  std::vector<Latency> latencies;
  std::erase_if(measured.rows, [&](const Row* row) {
    const std::optional<Latency> latency =
        kind == LatencyKind::request ? row->latency : submission_alone(*row);
    if (latency) {
      latencies.push_back(*latency);
    }
    return !latency;
  });
  if (measured.rows.empty()) {
    return {};
  }
  TextTable table = make_table(key_columns(group), measured.rows);
  for (const std::string_view heading : {"MIN", "AVG", "P50", "P99", "P99.9", "MAX"}) {
    table.columns.push_back({std::string(heading), true});
  }
  for (std::size_t i = 0; i < latencies.size(); ++i) {
    const Latency& ns = latencies[i];
    for (const double number : {static_cast<double>(ns.min_ns), ns.avg_ns,
                                static_cast<double>(ns.p50_ns), static_cast<double>(ns.p99_ns),
                                static_cast<double>(ns.p999_ns), static_cast<double>(ns.max_ns)}) {
      table.rows[i].push_back(microseconds_text(number));
    }
  }
  return table;
}

TextTable counter_table(const RowGroup& group) {
  RowGroup measured = group;
  std::erase_if(measured.rows, [](const Row* row) { return row->counters.empty(); });
  std::set<std::string> names;
  for (const Row* row : measured.rows) {
    for (const auto& [name, count] : row->counters) {
      names.insert(name);
    }
  }
  TextTable table = make_table(key_columns(group), measured.rows);
  for (const std::string& name : names) {
    table.columns.push_back({printable(name), true});
    for (std::size_t i = 0; i < measured.rows.size(); ++i) {
      const auto& counters = measured.rows[i]->counters;
      const auto found = counters.find(name);
      table.rows[i].push_back(found == counters.end() ? "" : count_text(found->second));
    }
  }
  return table;
}

}  // namespace uzram::bench
