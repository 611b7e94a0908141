#include "bench/charts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "bench/gnuplot.hpp"

namespace uzram::bench {
namespace {

constexpr Size kSmall = {350, 250};
constexpr Size kWide = {1300, 340};

// The charts of a figure: rows by operation, and by algorithm where a target has several.
using Facet = std::vector<const Row*>;

bool algorithms_vary(const RowGroup& group) {
  std::map<std::string, std::string> known;
  const AlgorithmNames names(group.rows);
  return std::any_of(group.rows.begin(), group.rows.end(), [&](const Row* row) {
    const std::string algorithm = names.of(*row);
    return known.try_emplace(row->label, algorithm).first->second != algorithm;
  });
}

std::vector<std::pair<std::string, Facet>> facets_of(const RowGroup& group, bool by_algorithm) {
  std::vector<std::pair<std::string, Facet>> facets;
  const AlgorithmNames names(group.rows);
  for (const Row* row : group.rows) {
    std::string title = op_text(*row);
    if (by_algorithm) {
      title += ", " + names.of(*row);
    }
    // Rows are sorted by operation, but algorithms take turns.
    const auto found =
        std::find_if(facets.begin(), facets.end(), [&](const auto& f) { return f.first == title; });
    if (found == facets.end()) {
      facets.emplace_back(std::move(title), Facet{row});
    } else {
      found->second.push_back(row);
    }
  }
  return facets;
}

std::vector<std::string> labels_of(const std::vector<const Row*>& rows) {
  std::vector<std::string> labels;
  std::set<std::string> known;
  for (const Row* row : rows) {
    if (known.insert(row->label).second) {
      labels.push_back(row->label);
    }
  }
  return labels;
}

std::set<std::uint32_t> job_counts(const std::vector<const Row*>& rows) {
  std::set<std::uint32_t> counts;
  for (const Row* row : rows) {
    counts.insert(row->threads);
  }
  return counts;
}

// One datablock and one part of the plot command for each label, as `line` says.
struct Plot {
  std::string blocks;
  std::vector<std::string> parts;

  void add(const std::string& data, const std::string& drawn) {
    const std::string name = fmt::format("$d{}", parts.size());
    blocks += fmt::format("{} << EOD\n{}EOD\n", name, data);
    parts.push_back(fmt::format("{} {}", name, drawn));
  }
  [[nodiscard]] std::string text() const {
    return fmt::format("{}plot {}\n", blocks, fmt::join(parts, ", "));
  }
};

std::string line_style(const Palette& palette, std::string_view label) {
  const std::size_t index = palette.index_of(label);
  return fmt::format("lc rgb '{}' lw 1.6 pt {} ps 0.7 notitle", Palette::color(index),
                     Palette::point_type(index));
}

// Where the `index`th of `count` things side by side stands: from -1 to 1, 0 alone.
double centred(std::size_t index, std::size_t count) {
  return count < 2 ? 0 : 2 * static_cast<double>(index) / static_cast<double>(count - 1) - 1;
}

std::string bandwidth_chart(const std::string& title, const Facet& rows, const Palette& palette) {
  double most = 0;
  for (const Row* row : rows) {
    most = std::max(most, row->mb_per_s.empty() ? 0 : drawable(row->mb_per_s.max()));
  }
  if (most == 0) {
    return "";
  }
  const double unit = most >= 10000 ? 1000 : 1;
  const std::set<std::uint32_t> jobs = job_counts(rows);
  std::string script = chart_frame(title, "jobs", unit == 1 ? "MB/s" : "GB/s");
  const double margin = std::max(0.3, 0.04 * (*jobs.rbegin() - *jobs.begin()));
  script += fmt::format("set xrange [{}:{}]\nset yrange [0:{}]\n", *jobs.begin() - margin,
                        *jobs.rbegin() + margin, most / unit * 1.08);
  if (jobs.size() <= 12) {
    script += fmt::format("set xtics ({})\n", fmt::join(jobs, ", "));
  }
  Plot plot;
  const std::vector<std::string> labels = labels_of(rows);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    // Side by side, as bars on top of each other cannot be told apart.
    const double aside = margin / 3 * centred(i, labels.size());
    std::string data;
    for (const Row* row : rows) {
      if (row->label == labels[i] && !row->mb_per_s.empty()) {
        data += fmt::format(
            "{} {} {} {}\n", row->threads + aside, drawable(row->mb_per_s.median()) / unit,
            drawable(row->mb_per_s.min()) / unit, drawable(row->mb_per_s.max()) / unit);
      }
    }
    if (!data.empty()) {
      plot.add(data, "using 1:2:3:4 with yerrorlines " + line_style(palette, labels[i]));
    }
  }
  return script + plot.text();
}

// A place on the x axis of bars: an operation or an algorithm.
struct Bars {
  std::vector<std::string> places;
  std::vector<std::pair<std::size_t, const Row*>> rows;
};

// Longer names do not fit the axis of a small chart.
constexpr std::size_t kLongestOnAxis = 24;

std::string bar_chart(const std::string& title, std::string_view first, const Bars& bars,
                      const std::vector<std::string>& labels, const Palette& palette) {
  double most = 1;
  for (const auto& [place, row] : bars.rows) {
    most = std::max(most, drawable(row->ratio_to_first.max()));
  }
  std::string script = chart_frame(
      title, "",
      fmt::format("speed / {}", first.size() <= kLongestOnAxis ? first : "first target"));
  std::vector<std::string> tics;
  bool two_lines = false;
  for (std::size_t i = 0; i < bars.places.size(); ++i) {
    // The state gets a line of its own.
    const std::string& place = bars.places[i];
    const std::size_t at = place.find(" (");
    std::string quoted = gnuplot_quote(place.substr(0, at));
    if (at != std::string::npos) {
      quoted += ".\"\\n\"." + gnuplot_quote(place.substr(at + 1));
      two_lines = true;
    }
    tics.push_back(fmt::format("{} {}", quoted, i));
  }
  script += fmt::format(
      "set grid noxtics\nset bmargin {}\nset xtics ({}) scale 0\n"
      "set xrange [-0.6:{}]\nset yrange [0:{}]\n",
      two_lines ? 3.2 : 2.2, fmt::join(tics, ", "), static_cast<double>(tics.size()) - 0.4,
      most * 1.08);
  const double width = 0.8 / static_cast<double>(labels.size());
  script += fmt::format(
      "set style fill solid 0.85 noborder\nset boxwidth {}\n"
      "set arrow 1 from graph 0, first 1 to graph 1, first 1 nohead back lc rgb '{}' dt 2\n",
      width * 0.88, kInk);
  Plot plot;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    std::string data;
    for (const auto& [place, row] : bars.rows) {
      if (row->label == labels[i]) {
        const double x =
            static_cast<double>(place) +
            (static_cast<double>(i) + 0.5 - 0.5 * static_cast<double>(labels.size())) * width;
        const Spread& ratios = row->ratio_to_first;
        data += fmt::format("{} {} {} {}\n", x, drawable(ratios.median()), drawable(ratios.min()),
                            drawable(ratios.max()));
      }
    }
    if (!data.empty()) {
      plot.add(data, fmt::format("using 1:2 with boxes lc rgb '{}' notitle",
                                 Palette::color(palette.index_of(labels[i]))));
      // Error bars would leave a gap where their mark is.
      plot.add(data, fmt::format("using 1:3:(0):($4-$3) with vectors heads size screen "
                                 "0.004,90 lw 1.2 lc rgb '{}' notitle",
                                 kInk));
    }
  }
  return script + plot.text();
}

struct LatencyLine {
  std::string label;
  Latency latency;
};

std::string latency_chart(const std::string& title, const std::vector<LatencyLine>& lines,
                          const Palette& palette) {
  double low = std::numeric_limits<double>::max();
  double high = 0;
  Plot plot;
  for (const auto& [label, ns] : lines) {
    std::string data;
    int place = 0;
    for (const std::uint64_t number : {ns.min_ns, ns.p50_ns, ns.p99_ns, ns.p999_ns, ns.max_ns}) {
      const double us = drawable(std::max(static_cast<double>(number), 1.0) / 1000);
      low = std::min(low, us);
      high = std::max(high, us);
      data += fmt::format("{} {}\n", place++, us);
    }
    plot.add(data, "using 1:2 with linespoints " + line_style(palette, label));
  }
  low /= 1.3;
  high *= 1.3;
  return chart_frame(title, "percentile", "latency, us") + log_tics('y', low, high) +
         fmt::format(
             "set logscale y\nset yrange [{}:{}]\nset xrange [-0.2:4.2]\n"
             "set xtics ('min' 0, '50' 1, '99' 2, '99.9' 3, 'max' 4)\n",
             low, high) +
         plot.text();
}

// The target that the others are compared with, where all rows have one and the same.
std::string first_target(const RowGroup& group) {
  std::set<std::string> firsts;
  for (const Row* row : group.rows) {
    if (!row->ratio_to_first.empty() && is_reference(row->ratio_to_first)) {
      firsts.insert(row->label);
    }
  }
  return firsts.size() == 1 ? printable(*firsts.begin()) : "first target";
}

std::optional<Figure> bar_figure(const RowGroup& group, const Palette& palette) {
  Figure figure;
  const std::string first = first_target(group);
  RowGroup compared = group;
  std::erase_if(compared.rows, [](const Row* row) {
    return row->ratio_to_first.empty() || is_reference(row->ratio_to_first);
  });
  if (compared.rows.empty() || job_counts(group.rows).size() != 1) {
    return std::nullopt;
  }
  figure.heading = fmt::format("Speed against {}: {}", first, group_text(group));
  figure.labels = labels_of(compared.rows);
  figure.explanation =
      "Median of the ratios of the rounds, whiskers from the least to the greatest; above the "
      "dashed line a target is faster than the one it is compared with.";
  const bool by_algorithm = algorithms_vary(compared);
  const AlgorithmNames names(group.rows);
  figure.size = by_algorithm ? kSmall : kWide;
  std::vector<std::pair<std::string, Facet>> facets = facets_of(compared, false);
  if (!by_algorithm) {
    facets = {{"", compared.rows}};
  }
  for (const auto& [title, rows] : facets) {
    Bars bars;
    for (const Row* row : rows) {
      const std::string place = by_algorithm ? names.of(*row) : op_text(*row);
      const auto found = std::find(bars.places.begin(), bars.places.end(), place);
      bars.rows.emplace_back(found - bars.places.begin(), row);
      if (found == bars.places.end()) {
        bars.places.push_back(place);
      }
    }
    figure.scripts.push_back(bar_chart(title, first, bars, figure.labels, palette));
  }
  return figure;
}

}  // namespace

void Palette::add(const std::vector<Row>& rows) {
  std::set<std::string> known(labels_.begin(), labels_.end());
  for (const Row& row : rows) {
    if (known.insert(row.label).second) {
      labels_.push_back(row.label);
    }
  }
}

std::size_t Palette::index_of(std::string_view label) const {
  return static_cast<std::size_t>(std::find(labels_.begin(), labels_.end(), label) -
                                  labels_.begin());
}

std::string_view Palette::color(std::size_t index) {
  // Okabe and Ito's, without black and the yellow that is hard to see on white.
  constexpr std::array<std::string_view, 7> kColors = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                       "#e69f00", "#56b4e9", "#7f7f7f"};
  return kColors[index % kColors.size()];
}

int Palette::point_type(std::size_t index) {
  constexpr std::array<int, 6> kFilled = {7, 5, 9, 13, 11, 15};
  return kFilled[index % kFilled.size()];
}

double drawable(double number) { return std::clamp(number, 1e-6, 1e12); }

std::string chart_frame(std::string_view title, std::string_view x_title,
                        std::string_view y_title) {
  return fmt::format(
      "reset\nset key off\nset border 3 lc rgb '{0}' lw 0.8\n"
      "set tics nomirror out scale 0.5 textcolor rgb '{0}'\n"
      "set grid xtics ytics lt 1 lw 0.6 lc rgb '{1}'\n"
      "set tmargin 1.8\nset bmargin 3.2\nset title {2} textcolor rgb '{0}' offset 0,-0.5 font "
      "',13'\n"
      "set xlabel {3} textcolor rgb '{0}' offset 0,0.6\n"
      "set ylabel {4} textcolor rgb '{0}' offset 1,0\n",
      kInk, kGrid, gnuplot_quote(title), gnuplot_quote(x_title), gnuplot_quote(y_title));
}

std::string log_tics(char axis, double low, double high) {
  const double decades = std::log10(high / low);
  const std::vector<double> steps =
      decades < 0.5   ? std::vector<double>{1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9}
      : decades < 1.2 ? std::vector<double>{1, 1.5, 2, 3, 4, 5, 7}
      : decades < 3   ? std::vector<double>{1, 2, 5}
                      : std::vector<double>{1};
  std::vector<std::string> tics;
  for (int power = static_cast<int>(std::floor(std::log10(low))); power <= std::log10(high);
       ++power) {
    for (const double step : steps) {
      const double at = step * std::pow(10, power);
      if (at >= low && at <= high) {
        tics.push_back(fmt::format("'{0:g}' {0:g}", at));
      }
    }
  }
  return fmt::format("set {}tics ({})\n", axis, fmt::join(tics, ", "));
}

std::vector<Figure> bandwidth_figures(const std::vector<RowGroup>& groups, const Palette& palette) {
  std::vector<Figure> figures;
  for (const RowGroup& group : groups) {
    if (job_counts(group.rows).size() < 2) {
      continue;
    }
    Figure figure;
    figure.heading = "Bandwidth against jobs: " + group_text(group);
    figure.explanation = "Median of the rounds, bars from the slowest to the fastest round.";
    figure.labels = labels_of(group.rows);
    figure.size = kSmall;
    for (const auto& [title, rows] : facets_of(group, algorithms_vary(group))) {
      std::string script = bandwidth_chart(title, rows, palette);
      if (!script.empty()) {
        figure.scripts.push_back(std::move(script));
      }
    }
    figures.push_back(std::move(figure));
  }
  return figures;
}

std::vector<Figure> bar_figures(const std::vector<RowGroup>& groups, const Palette& palette) {
  std::vector<Figure> figures;
  for (const RowGroup& group : groups) {
    if (std::optional<Figure> figure = bar_figure(group, palette); figure) {
      figures.push_back(std::move(*figure));
    }
  }
  return figures;
}

std::vector<Figure> latency_figures(const std::vector<RowGroup>& groups, const Palette& palette) {
  std::vector<Figure> figures;
  for (const RowGroup& group : groups) {
    const bool by_algorithm = algorithms_vary(group);
    const AlgorithmNames names(group.rows);
    std::vector<std::pair<std::string, std::vector<LatencyLine>>> charts;
    const auto add = [&](std::string title, const Row& row, const Latency& latency) {
      title += by_algorithm ? ", " + names.of(row) : "";
      const auto found = std::find_if(charts.begin(), charts.end(),
                                      [&](const auto& chart) { return chart.first == title; });
      auto& lines = found == charts.end() ? charts.emplace_back(title, 0).second : found->second;
      lines.push_back({row.label, latency});
    };
    for (const Row* row : group.rows) {
      const std::string title = fmt::format("{}, {}", op_text(*row), jobs_text(row->threads));
      if (row->latency) {
        add(title, *row, *row->latency);
      }
      if (const std::optional<Latency> submission = submission_alone(*row); submission) {
        add(title + ": submission", *row, *submission);
      }
    }
    if (charts.empty()) {
      continue;
    }
    Figure figure;
    figure.heading = "Latency: " + group_text(group);
    figure.explanation =
        "From before the submission of a request to its completion; \"submission\": of the "
        "submission alone. All rounds together.";
    figure.labels = labels_of(group.rows);
    figure.size = kSmall;
    for (const auto& [title, lines] : charts) {
      figure.scripts.push_back(latency_chart(title, lines, palette));
    }
    figures.push_back(std::move(figure));
  }
  return figures;
}

}  // namespace uzram::bench
