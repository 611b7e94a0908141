#include "codec/pagez/classes.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace uzram::codec::pagez {
namespace {

// The best way to code the first symbols with a number of classes.
struct Cell {
  double bits = std::numeric_limits<double>::infinity();
  std::uint32_t before = 0;
  std::uint8_t width = 0;
};

}  // namespace

std::vector<std::uint8_t> best_widths(const std::vector<double>& frequencies, unsigned classes,
                                      unsigned most_width) {
  const std::size_t count = frequencies.size();
  std::vector<double> sums(count + 1);
  for (std::size_t at = 0; at < count; ++at) {
    sums[at + 1] = sums[at] + frequencies[at];
  }
  std::vector<std::vector<Cell>> cells(classes + 1, std::vector<Cell>(count + 1));
  cells[0][0].bits = 0;
  for (unsigned used = 0; used < classes; ++used) {
    for (std::size_t from = 0; from <= count; ++from) {
      if (cells[used][from].bits == std::numeric_limits<double>::infinity()) {
        continue;
      }
      for (unsigned width = 0; width <= most_width; ++width) {
        const std::size_t to = std::min(count, from + (std::size_t{1} << width));
        const double bits = cells[used][from].bits + width * (sums[to] - sums[from]);
        if (bits < cells[used + 1][to].bits) {
          cells[used + 1][to] = {bits, static_cast<std::uint32_t>(from),
                                 static_cast<std::uint8_t>(width)};
        }
        if (to == count) {
          break;
        }
      }
    }
  }
  if (cells[classes][count].bits == std::numeric_limits<double>::infinity()) {
    return {};
  }
  std::vector<std::uint8_t> widths(classes);
  std::size_t at = count;
  for (unsigned used = classes; used > 0; --used) {
    widths[used - 1] = cells[used][at].width;
    at = cells[used][at].before;
  }
  return widths;
}

double rank_bits(const std::vector<double>& frequencies, const std::vector<std::uint8_t>& widths) {
  double bits = 0;
  std::size_t at = 0;
  for (const std::uint8_t width : widths) {
    for (std::size_t left = std::size_t{1} << width; left > 0 && at < frequencies.size(); --left) {
      bits += width * frequencies[at++];
    }
  }
  return bits;
}

}  // namespace uzram::codec::pagez
