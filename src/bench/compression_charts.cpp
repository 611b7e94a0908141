// Compression ratio against time per page: points with labels that do not cover each other.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "bench/charts.hpp"
#include "bench/gnuplot.hpp"

namespace uzram::bench {
namespace {

constexpr Size kSize = {640, 420};
// The plot's area, so that positions in pixels are known here.
constexpr double kLeft = 70;
constexpr double kRight = 620;
constexpr double kTop = 40;
constexpr double kBottom = 365;
// Of a label's letters, roughly.
constexpr double kLetterWidth = 7.2;
constexpr double kLetterHeight = 14;
constexpr double kMark = 4.5;

struct Point {
  std::string label;
  std::string algorithm;
  double us = 0;
  double ratio = 0;
};

struct Box {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;

  [[nodiscard]] double overlap(const Box& other) const {
    const double width = std::min(right, other.right) - std::max(left, other.left);
    const double height = std::min(bottom, other.bottom) - std::max(top, other.top);
    return width > 0 && height > 0 ? width * height : 0;
  }
};

struct Range {
  double low = std::numeric_limits<double>::max();
  double high = 0;

  void add(double number) {
    low = std::min(low, number);
    high = std::max(high, number);
  }
  // At least `least` from end to end, and room for marks and labels.
  void widen(double least, double room) {
    const double middle = std::sqrt(low * high);
    low = std::min(low, middle / std::sqrt(least)) / room;
    high = std::max(high, middle * std::sqrt(least)) * room;
  }
  [[nodiscard]] double part(double number) const {
    return std::log(number / low) / std::log(high / low);
  }
};

// Greedy: each label goes to the first place around its point where it covers nothing.
class LabelPlacer {
 public:
  void block(const Box& box) { taken_.push_back(box); }

  // The middle of the label, or none when every place covers something and `must` is false.
  std::optional<std::pair<double, double>> place(double x, double y, double width, bool must) {
    std::optional<std::pair<double, double>> best;
    double least = std::numeric_limits<double>::max();
    for (const double far : {1.0, 2.2, 3.6}) {
      const double dx = width / 2 + kMark + 3 * far;
      const double dy = kLetterHeight / 2 + kMark + 8 * (far - 1);
      for (const auto& [along, across] : std::array<std::pair<double, double>, 8>{{{dx, 0},
                                                                                   {0, -dy},
                                                                                   {0, dy},
                                                                                   {-dx, 0},
                                                                                   {dx, -dy},
                                                                                   {dx, dy},
                                                                                   {-dx, -dy},
                                                                                   {-dx, dy}}}) {
        const Box box = around(x + along, y + across, width);
        const double covered = covers(box);
        if (covered < least) {
          least = covered;
          best = {x + along, y + across};
        }
      }
      if (least == 0) {
        break;
      }
    }
    if (least > 0 && !must) {
      return std::nullopt;
    }
    block(around(best->first, best->second, width));
    return best;
  }

 private:
  static Box around(double x, double y, double width) {
    return {x - width / 2, y - kLetterHeight / 2, x + width / 2, y + kLetterHeight / 2};
  }
  [[nodiscard]] double covers(const Box& box) const {
    double area = 0;
    for (const Box& other : taken_) {
      area += box.overlap(other);
    }
    const bool outside =
        box.left < kLeft || box.right > kRight || box.top < kTop || box.bottom > kBottom;
    return area + (outside ? 1000 : 0);
  }

  std::vector<Box> taken_;
};

std::string labels(const std::vector<Point>& points, const Range& us, const Range& ratio) {
  const auto at = [&](const Point& point) {
    return std::pair(kLeft + us.part(point.us) * (kRight - kLeft),
                     kBottom - ratio.part(point.ratio) * (kBottom - kTop));
  };
  LabelPlacer placer;
  for (const Point& point : points) {
    const auto [x, y] = at(point);
    placer.block({x - kMark, y - kMark, x + kMark, y + kMark});
  }
  std::string script;
  std::set<std::string> named;
  for (const Point& point : points) {
    const auto [x, y] = at(point);
    const double width = kLetterWidth * static_cast<double>(point.algorithm.size());
    // One that finds no room next to its point is told by the height, which its algorithm's others
    // share.
    const auto place = placer.place(x, y, width, !named.contains(point.algorithm));
    if (place) {
      named.insert(point.algorithm);
      script += fmt::format("set label {} at screen {:.4f},{:.4f} center textcolor rgb '{}'\n",
                            gnuplot_quote(point.algorithm), place->first / kSize.width,
                            1 - place->second / kSize.height, kInk);
    }
  }
  return script;
}

std::string chart(const std::string& title, std::string_view ratio_title,
                  const std::vector<Point>& points, const Palette& palette) {
  Range us;
  Range ratio;
  std::map<std::string, std::string> data;
  for (const Point& point : points) {
    us.add(point.us);
    ratio.add(point.ratio);
    data[point.label] += fmt::format("{} {}\n", point.us, point.ratio);
  }
  us.widen(4, 1.25);
  ratio.widen(1.5, 1.08);
  std::string script = chart_frame(title, "us per page (4 KiB)", ratio_title);
  script += fmt::format(
      "set lmargin at screen {:.4f}\nset rmargin at screen {:.4f}\n"
      "set tmargin at screen {:.4f}\nset bmargin at screen {:.4f}\n"
      "set logscale xy\nset xrange [{}:{}]\nset yrange [{}:{}]\n",
      kLeft / kSize.width, kRight / kSize.width, 1 - kTop / kSize.height,
      1 - kBottom / kSize.height, us.low, us.high, ratio.low, ratio.high);
  script += log_tics('x', us.low, us.high) + log_tics('y', ratio.low, ratio.high);
  script += labels(points, us, ratio);
  std::vector<std::string> parts;
  for (const auto& [label, lines] : data) {
    const std::size_t index = palette.index_of(label);
    script += fmt::format("$d{} << EOD\n{}EOD\n", parts.size(), lines);
    parts.push_back(fmt::format("$d{} using 1:2 with points pt {} ps 0.9 lc rgb '{}' notitle",
                                parts.size(), Palette::point_type(index), Palette::color(index)));
  }
  return script + fmt::format("plot {}\n", fmt::join(parts, ", "));
}

// Which of both ratios all charts of a file show.
enum class RatioKind { compression, memory };

std::optional<double> ratio_of(const Row& row, RatioKind kind) {
  return kind == RatioKind::compression ? row.compr_ratio : row.mem_ratio;
}

std::vector<Point> points_of(const RowGroup& group, std::string_view op, RatioKind kind) {
  std::vector<Point> points;
  std::set<std::pair<std::string, std::string>> known;
  const AlgorithmNames names(group.rows);
  for (const Row* row : group.rows) {
    const std::optional<double> ratio = ratio_of(*row, kind);
    // Rows are sorted by the number of jobs: the first is that of the fewest.
    if (row->op == op && ratio.value_or(0) > 0 && !row->us_per_page.empty() &&
        row->us_per_page.median() > 0 && known.insert({row->label, names.of(*row)}).second) {
      points.push_back(
          {row->label, names.of(*row), drawable(row->us_per_page.median()), drawable(*ratio)});
    }
  }
  return points;
}

bool several_algorithms(const std::vector<Point>& points) {
  return std::any_of(points.begin(), points.end(), [&](const Point& point) {
    return point.algorithm != points.front().algorithm;
  });
}

// The geometric means of the points that all of `sets` have.
std::vector<Point> means_of(const std::vector<std::vector<Point>>& sets) {
  struct Sum {
    std::size_t count = 0;
    double us = 0;
    double ratio = 0;
  };
  std::map<std::pair<std::string, std::string>, Sum> sums;
  for (const auto& points : sets) {
    for (const Point& point : points) {
      Sum& sum = sums[{point.label, point.algorithm}];
      ++sum.count;
      sum.us += std::log(point.us);
      sum.ratio += std::log(point.ratio);
    }
  }
  std::vector<Point> means;
  for (const auto& [name, sum] : sums) {
    if (sum.count == sets.size()) {
      const auto count = static_cast<double>(sum.count);
      means.push_back(
          {name.first, name.second, std::exp(sum.us / count), std::exp(sum.ratio / count)});
    }
  }
  return means;
}

// The charts of groups that differ in the data set alone.
std::optional<Figure> figure_of(const std::vector<const RowGroup*>& groups,
                                const Palette& palette) {
  const bool compressed = std::any_of(groups.begin(), groups.end(), [](const RowGroup* group) {
    return std::any_of(group->rows.begin(), group->rows.end(),
                       [](const Row* row) { return row->compr_ratio.has_value(); });
  });
  const RatioKind kind = compressed ? RatioKind::compression : RatioKind::memory;
  const std::string_view ratio_title = compressed ? "compression ratio" : "memory ratio";
  Figure figure;
  std::vector<std::string> singles;
  std::map<std::string_view, std::vector<std::vector<Point>>> sets;
  std::set<std::string> labels;
  for (const RowGroup* group : groups) {
    for (const std::string_view op : {"write", "read"}) {
      const std::vector<Point> points = points_of(*group, op, kind);
      if (several_algorithms(points)) {
        singles.push_back(
            chart(fmt::format("{}: {}", group->corpus, op), ratio_title, points, palette));
        sets[op].push_back(points);
        for (const Point& point : points) {
          labels.insert(point.label);
        }
      }
    }
  }
  if (singles.empty()) {
    return std::nullopt;
  }
  for (const std::string_view op : {"write", "read"}) {
    const std::vector<Point> means = means_of(sets[op]);
    if (sets[op].size() > 1 && !means.empty()) {
      figure.scripts.push_back(
          chart(fmt::format("geometric mean of {} data sets: {}", sets[op].size(), op), ratio_title,
                means, palette));
    }
  }
  figure.scripts.insert(figure.scripts.end(), singles.begin(), singles.end());
  figure.labels.assign(labels.begin(), labels.end());
  std::sort(figure.labels.begin(), figure.labels.end(), [&](const auto& a, const auto& b) {
    return palette.index_of(a) < palette.index_of(b);
  });
  return figure;
}

}  // namespace

std::vector<Figure> compression_figures(const std::vector<RowGroup>& groups,
                                        const Palette& palette) {
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::vector<const RowGroup*>> alike;
  for (const RowGroup& group : groups) {
    alike[{group.block_size, group.iodepth}].push_back(&group);
  }
  std::vector<Figure> figures;
  for (const auto& [shape, members] : alike) {
    std::optional<Figure> figure = figure_of(members, palette);
    if (figure) {
      figure->heading = "Ratio against time per page: " + shape_text(*members.front());
      figure->explanation =
          "Both axes are logarithmic; up and left is better. A point is an algorithm on a target, "
          "its time the median of the rounds.";
      figure->size = kSize;
      figures.push_back(std::move(*figure));
    }
  }
  return figures;
}

}  // namespace uzram::bench
