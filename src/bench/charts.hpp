// Charts: gnuplot scripts from rows of results.
//
// Role: which plots a file of results is worth, and what each draws; the report puts them on a page.
// A figure is a heading with charts of one kind; a target has the same colour and mark in all.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "bench/result_cells.hpp"

namespace uzram::bench {

// The labels of all targets of a report, in the order of their first row.
class Palette {
 public:
  void add(const std::vector<Row>& rows);
  [[nodiscard]] std::size_t index_of(std::string_view label) const;
  // "#rrggbb", told apart by the colour-blind too, and gnuplot's number of the mark.
  [[nodiscard]] static std::string_view color(std::size_t index);
  [[nodiscard]] static int point_type(std::size_t index);

 private:
  std::vector<std::string> labels_;
};

// The colours of text and of grid lines, which the page replaces by those of its own.
inline constexpr std::string_view kInk = "#010203";
inline constexpr std::string_view kGrid = "#040506";

struct Size {
  int width = 0;
  int height = 0;
};

struct Figure {
  std::string heading;
  std::string explanation;
  std::vector<std::string> labels;
  // Of all its charts: pixels of the SVG's view box.
  Size size;
  // For each chart the commands after `set terminal`.
  std::vector<std::string> scripts;
};

// MB/s against jobs, a chart for each operation, where there are two job counts or more.
[[nodiscard]] std::vector<Figure> bandwidth_figures(const std::vector<RowGroup>& groups,
                                                    const Palette& palette);
// Ratios to the first target as bars, where there is one job count.
[[nodiscard]] std::vector<Figure> bar_figures(const std::vector<RowGroup>& groups,
                                              const Palette& palette);
// Percentiles of latency, where it was measured.
[[nodiscard]] std::vector<Figure> latency_figures(const std::vector<RowGroup>& groups,
                                                  const Palette& palette);
// Compression ratio against time per page, for all data sets together and for each, where there are
// two algorithms or more.
[[nodiscard]] std::vector<Figure> compression_figures(const std::vector<RowGroup>& groups,
                                                      const Palette& palette);

// What the makers of figures share.

// Title, borders, grid and colours, after a reset.
[[nodiscard]] std::string chart_frame(std::string_view title, std::string_view x_title,
                                      std::string_view y_title);
// `set xtics` or `set ytics` at round numbers of a logarithmic axis.
[[nodiscard]] std::string log_tics(char axis, double low, double high);
// Within what gnuplot can draw.
[[nodiscard]] double drawable(double number);

}  // namespace uzram::bench
