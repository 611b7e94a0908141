// A table of text as zramctl prints it.
//
// Units: columns of the terminal; a byte sequence of UTF-8 counts as one.
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace uzram {

struct TableColumn {
  std::string_view heading;
  bool right = false;
};

struct TableStyle {
  bool headings = true;
  // Cells are separated by one blank and not aligned; blanks, backslashes and control characters
  // in them are written as \xHH.
  bool raw = false;
};

// REQUIRES: every row has as many cells as there are columns. Nothing for a table without rows.
[[nodiscard]] std::string format_table(const std::vector<TableColumn>& columns,
                                       const std::vector<std::vector<std::string>>& rows,
                                       const TableStyle& style);

}  // namespace uzram
