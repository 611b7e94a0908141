#include <algorithm>
#include <array>
#include <cstddef>

#include <fmt/format.h>

#include "bench/charts.hpp"
#include "bench/gnuplot.hpp"
#include "bench/outputs.hpp"
#include "bench/result_cells.hpp"

namespace uzram::bench {
namespace {

// Of one file: a page with more takes a browser too long.
constexpr std::size_t kMostCharts = 250;

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ink: #1d2127; --soft: #5a6370; --page: #fff; --line: #d5dae1;
  --band: #f4f6f8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7eb; --soft: #a3acb8; --page: #16191d; --line: #3a4048; --band: #1f2328; } }
@media print {
  :root { --ink: #000; --soft: #444; --page: #fff; --line: #bbb; --band: #f4f4f4; }
  figure, tr { break-inside: avoid; } h2, h3, h4 { break-after: avoid; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page);
  max-width: 1320px; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.7rem; margin: 0 0 .5rem; }
h2 { font-size: 1.35rem; margin: 2.5rem 0 .75rem; border-bottom: 2px solid var(--line); }
h3 { font-size: 1.1rem; margin: 2rem 0 .25rem; }
h4 { font-size: 1rem; margin: 1.25rem 0 .25rem; }
p { margin: .25rem 0 .5rem; max-width: 60rem; }
.soft { color: var(--soft); }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .6rem; text-align: left; vertical-align: top; white-space: nowrap; }
th { color: var(--soft); font-weight: 600; border-bottom: 1px solid var(--line); }
tr.next td { border-top: 1px solid var(--line); }
tbody tr:hover { background: var(--band); }
.r { text-align: right; }
.facts td { white-space: normal; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
.facts { display: flex; flex-wrap: wrap; gap: 0 3rem; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: .5rem 0; padding: 0;
  list-style: none; }
.legend svg { width: 14px; height: 14px; vertical-align: -2px; margin-right: .4rem; }
.charts { display: grid; gap: .75rem; }
.charts.small { grid-template-columns: repeat(auto-fill, minmax(min(100%, 300px), 1fr)); }
.charts.medium { grid-template-columns: repeat(auto-fill, minmax(min(100%, 520px), 1fr)); }
figure { margin: 0; }
figure svg { display: block; width: 100%; height: auto; }
)";

std::string escape(std::string_view text) {
  std::string escaped;
  for (const char byte : printable(text)) {
    switch (byte) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += byte;
    }
  }
  return escaped;
}

std::string facts(const nlohmann::ordered_json& object, std::string_view title) {
  std::string html = fmt::format("<div><h4>{}</h4><table><tbody>\n", title);
  for (const auto& [name, value] : object.items()) {
    if (value.is_null() || value == "") {
      continue;
    }
    html += fmt::format("<tr><td class=\"soft\">{}</td><td>{}</td></tr>\n", escape(name),
                        escape(value_text(value)));
  }
  return html + "</tbody></table></div>\n";
}

std::string table(const TextTable& cells) {
  std::string html = "<div class=\"scroll\"><table><thead><tr>";
  const auto side = [&](std::size_t i) { return cells.columns[i].right ? " class=\"r\"" : ""; };
  for (std::size_t i = 0; i < cells.columns.size(); ++i) {
    html += fmt::format("<th{}>{}</th>", side(i), escape(cells.columns[i].heading));
  }
  html += "</tr></thead><tbody>\n";
  const std::string* before = nullptr;
  for (const std::vector<std::string>& row : cells.rows) {
    const bool next = before != nullptr && *before != row.front();
    before = &row.front();
    html += next ? "<tr class=\"next\">" : "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      html += fmt::format("<td{}>{}</td>", side(i), escape(row[i]));
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string tables(const std::vector<RowGroup>& groups) {
  std::string html;
  for (const RowGroup& group : groups) {
    html += fmt::format("<h3>{}</h3>\n{}", escape(group_text(group)),
                        table(result_table(group, TablePart::whole)));
    const auto add = [&](std::string_view title, const TextTable& cells) {
      if (!cells.rows.empty()) {
        html += fmt::format("<h4>{}</h4>\n{}", title, table(cells));
      }
    };
    add("Latency of requests, us", latency_table(group, LatencyKind::request));
    add("Latency of submissions, us", latency_table(group, LatencyKind::submission));
    add("Hardware counters", counter_table(group));
  }
  return html;
}

// The marks of gnuplot's point types, see Palette::point_type.
std::string mark(std::size_t index) {
  std::string_view shape;
  switch (Palette::point_type(index)) {
    case 5:
      shape = "<rect x=\"2\" y=\"2\" width=\"10\" height=\"10\"/>";
      break;
    case 9:
      shape = "<path d=\"M7 1L13 12H1z\"/>";
      break;
    case 11:
      shape = "<path d=\"M7 13L13 2H1z\"/>";
      break;
    case 13:
      shape = "<path d=\"M7 0L14 7L7 14L0 7z\"/>";
      break;
    case 15:
      shape = "<path d=\"M7 0L14 5L11 13H3L0 5z\"/>";
      break;
    default:
      shape = "<circle cx=\"7\" cy=\"7\" r=\"5.5\"/>";
  }
  return fmt::format("<svg viewBox=\"0 0 14 14\" fill=\"{}\" aria-hidden=\"true\">{}</svg>",
                     Palette::color(index), shape);
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// gnuplot's document as a part of the page: without its head, with the page's colours.
std::string inline_svg(std::string svg) {
  svg.erase(0, svg.find("<svg"));
  // A browser would show it as a tip.
  const std::size_t title = svg.find("<title>");
  const std::size_t end = svg.find("</title>");
  if (title != std::string::npos && end != std::string::npos) {
    svg.erase(title, end + 8 - title);
  }
  // kInk and kGrid, in the two forms that gnuplot writes.
  for (const std::string_view ink : {"rgb(  1,   2,   3)", "rgb(1,2,3)"}) {
    replace_all(svg, ink, "currentColor");
  }
  // The current colour is then the page's, not that of gnuplot's first line type.
  replace_all(svg, " color=\"black\"", "");
  for (const std::string_view grid : {"rgb(  4,   5,   6)", "rgb(4,5,6)"}) {
    replace_all(svg, grid, "rgba(128,128,128,.3)");
  }
  return svg;
}

// Draws the charts of all figures by one gnuplot.
Result<std::vector<std::string>> draw(const std::vector<Figure>& figures) {
  std::string script;
  std::size_t count = 0;
  for (const Figure& figure : figures) {
    for (const std::string& chart : figure.scripts) {
      script += fmt::format(
          "set terminal svg size {},{} dynamic noenhanced font 'sans-serif,12' name 'c{}'\n{}",
          figure.size.width, figure.size.height, count++, chart);
    }
  }
  std::vector<std::string> drawn;
  if (count == 0) {
    return drawn;
  }
  const Result<std::string> output = run_gnuplot(script);
  if (!output) {
    return output.error();
  }
  constexpr std::string_view kStart = "<?xml";
  for (std::size_t at = output->find(kStart); at != std::string::npos;) {
    const std::size_t next = output->find(kStart, at + kStart.size());
    drawn.push_back(inline_svg(output->substr(at, next - at)));
    at = next;
  }
  if (drawn.size() != count) {
    return Error{Errc::system, 0,
                 fmt::format("gnuplot drew {} plots: expected {}", drawn.size(), count)};
  }
  return drawn;
}

std::string figure_html(const Figure& figure, const Palette& palette, std::string* drawn) {
  std::string html = fmt::format("<h3>{}</h3>\n<p class=\"soft\">{}</p>\n<ul class=\"legend\">",
                                 escape(figure.heading), escape(figure.explanation));
  for (const std::string& label : figure.labels) {
    html += fmt::format("<li>{}{}</li>", mark(palette.index_of(label)), escape(label));
  }
  const std::string_view columns = figure.size.width > 1000  ? ""
                                   : figure.size.width > 500 ? " medium"
                                                             : " small";
  html += fmt::format("</ul>\n<div class=\"charts{}\">\n", columns);
  for (std::size_t i = 0; i < figure.scripts.size(); ++i) {
    html += fmt::format("<figure>{}</figure>\n", drawn[i]);
  }
  return html + "</div>\n";
}

std::vector<Figure> figures_of(const std::vector<RowGroup>& groups, const Palette& palette) {
  std::vector<Figure> figures;
  for (const auto make : {bandwidth_figures, bar_figures, compression_figures, latency_figures}) {
    for (Figure& figure : make(groups, palette)) {
      figures.push_back(std::move(figure));
    }
  }
  return figures;
}

// Leaves out what is beyond kMostCharts; how many were.
std::size_t limit(std::vector<Figure>& figures) {
  std::size_t room = kMostCharts;
  std::size_t left_out = 0;
  for (Figure& figure : figures) {
    const std::size_t kept = std::min(room, figure.scripts.size());
    left_out += figure.scripts.size() - kept;
    figure.scripts.resize(kept);
    room -= kept;
  }
  std::erase_if(figures, [](const Figure& figure) { return figure.scripts.empty(); });
  return left_out;
}

Result<std::string> plots(const std::vector<RowGroup>& groups, const Palette& palette) {
  std::vector<Figure> figures = figures_of(groups, palette);
  const std::size_t left_out = limit(figures);
  Result<std::vector<std::string>> drawn = draw(figures);
  if (!drawn) {
    return drawn.error();
  }
  std::string html;
  std::string* next = drawn->data();
  for (const Figure& figure : figures) {
    html += figure_html(figure, palette, next);
    next += figure.scripts.size();
  }
  if (left_out > 0) {
    html += fmt::format("<p>{} more plots are left out.</p>\n", left_out);
  }
  return html;
}

std::string notes(const ResultFile& file) {
  std::string html;
  if (file.interrupted) {
    html += "<li>The run was interrupted before its end.</li>\n";
  }
  for (const std::string& note : file.notes) {
    html += fmt::format("<li>{}</li>\n", escape(note));
  }
  return html.empty() ? "" : fmt::format("<h4>Notes</h4><ul>\n{}</ul>\n", html);
}

Result<std::string> section(const ResultFile& file, const std::string& name,
                            const Palette& palette) {
  const std::vector<RowGroup> groups = group_rows(file.rows);
  Result<std::string> drawn = plots(groups, palette);
  if (!drawn) {
    return drawn.error();
  }
  std::string html = fmt::format("<section>\n<h2>{}: {}</h2>\n<div class=\"facts\">\n",
                                 escape(name), escape(file.suite));
  html += facts(file.machine, "Machine") + facts(file.parameters, "Parameters");
  html += facts(paths_of(file.rows), "Paths of the targets") + "</div>\n" + notes(file);
  html += *drawn;
  html += "<h3>Columns of the tables</h3>\n<p class=\"soft\">";
  for (const std::string& line : legend(file.rows)) {
    html += escape(line) + "<br>\n";
  }
  html += "</p>\n";
  html += file.rows.empty() ? "<p>No results.</p>\n" : tables(groups);
  return html + "</section>\n";
}

}  // namespace

Result<std::string> format_report(const std::vector<ResultFile>& files,
                                  const std::vector<std::string>& names) {
  Palette palette;
  for (const ResultFile& file : files) {
    palette.add(file.rows);
  }
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>uzram bench report</title>\n<style>{}</style>\n</head>\n<body>\n"
      "<h1>uzram bench report</h1>\n",
      kStyle);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string name = i < names.size() ? names[i] : fmt::format("file {}", i + 1);
    const Result<std::string> part = section(files[i], name, palette);
    if (!part) {
      return part.error();
    }
    html += *part;
  }
  return html + "</body>\n</html>\n";
}

}  // namespace uzram::bench
