#include <algorithm>
#include <cstddef>
#include <set>

#include <fmt/format.h>

#include "bench/outputs.hpp"
#include "bench/result_cells.hpp"

namespace uzram::bench {
namespace {

constexpr std::size_t kWidth = 120;

// `name` and the items behind it, wrapped and indented.
std::string list_text(std::string_view name, const std::vector<std::string>& items) {
  std::string text;
  std::string line = fmt::format("{:<12}", name);
  for (const std::string& item : items) {
    const bool last = &item == &items.back();
    if (line.size() > 12 && line.size() + 1 + item.size() >= kWidth) {
      text += line + "\n";
      line = std::string(12, ' ');
    }
    line += (line.size() > 12 ? " " : "") + item + (last ? "" : ";");
  }
  return items.empty() ? "" : text + line + "\n";
}

std::vector<std::string> members_text(const nlohmann::ordered_json& object) {
  std::vector<std::string> items;
  for (const auto& [name, value] : object.items()) {
    if (value.is_null() || value == "") {
      continue;
    }
    items.push_back(fmt::format("{}: {}", printable(name), value_text(value)));
  }
  return items;
}

std::string rounds_text(const std::vector<Row>& rows) {
  if (rows.empty()) {
    return "none";
  }
  const auto [least, most] = std::minmax_element(
      rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.rounds < b.rounds; });
  return least->rounds == most->rounds ? std::to_string(most->rounds)
                                       : fmt::format("{} to {}", least->rounds, most->rounds);
}

std::string heading_text(const ResultFile& results) {
  std::string text = list_text("suite", {printable(results.suite)});
  text += list_text("machine", members_text(results.machine));
  text += list_text("rounds", {rounds_text(results.rows) +
                               (results.interrupted ? ", interrupted before the end" : "")});
  text += list_text("parameters", members_text(results.parameters));
  text += list_text("paths", members_text(paths_of(results.rows)));
  for (const std::string& line : legend(results.rows)) {
    text += line + "\n";
  }
  return text;
}

std::size_t longest_line(std::string_view text) {
  std::size_t longest = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    longest = std::max(longest, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return longest;
}

// A blank line between operations (the first column), where each has many lines.
std::string separated(const TextTable& table) {
  const std::string text = table.text();
  std::string spaced;
  std::size_t begin = 0;
  for (std::size_t line = 0; begin < text.size(); ++line) {
    const std::size_t end = text.find('\n', begin) + 1;
    if (line >= 2 && table.rows[line - 1].front() != table.rows[line - 2].front()) {
      spaced += '\n';
    }
    spaced += text.substr(begin, end - begin);
    begin = end;
  }
  return spaced;
}

std::string speed_and_cost(const RowGroup& group) {
  const std::set<std::string> ops = [&] {
    std::set<std::string> names;
    for (const Row* row : group.rows) {
      names.insert(op_text(*row));
    }
    return names;
  }();
  const auto text_of = [&](TablePart part) {
    const TextTable table = result_table(group, part);
    return group.rows.size() > 3 * ops.size() ? separated(table) : table.text();
  };
  std::string text = text_of(TablePart::whole);
  if (longest_line(text) > kWidth) {
    text = text_of(TablePart::speed) + "\n" + text_of(TablePart::cost);
  }
  return text;
}

std::string latencies(const RowGroup& group) {
  std::string text;
  for (const LatencyKind kind : {LatencyKind::request, LatencyKind::submission}) {
    const TextTable table = latency_table(group, kind);
    if (!table.rows.empty()) {
      text += fmt::format("\nlatency of {} in us\n",
                          kind == LatencyKind::request ? "requests" : "submissions");
      text += table.text();
    }
  }
  return text;
}

std::string counters(const RowGroup& group) {
  const TextTable table = counter_table(group);
  return table.rows.empty() ? "" : "\nhardware counters\n" + table.text();
}

}  // namespace

std::string format_tables(const ResultFile& results) {
  std::string text = heading_text(results);
  bool counted = false;
  for (const RowGroup& group : group_rows(results.rows)) {
    const std::string hardware = counters(group);
    counted = counted || !hardware.empty();
    text += fmt::format("\n== {}\n", group_text(group));
    text += speed_and_cost(group) + latencies(group) + hardware;
  }
  text += results.rows.empty() ? "\nno results\n" : "";
  text += counted ? "" : "\nhardware counters: unavailable\n";
  for (const std::string& note : results.notes) {
    text += fmt::format("note: {}\n", printable(note));
  }
  return text;
}

}  // namespace uzram::bench
