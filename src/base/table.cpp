#include "base/table.hpp"

#include <algorithm>

namespace uzram {
namespace {

std::size_t width_of(std::string_view text) noexcept {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
  }));
}

std::string escape(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string escaped;
  for (const char byte : text) {
    const auto code = static_cast<unsigned char>(byte);
    if (code <= 0x20 || code == 0x7f || byte == '\\') {
      escaped += "\\x";
      escaped += kDigits[code >> 4U];
      escaped += kDigits[code & 0xFU];
    } else {
      escaped += byte;
    }
  }
  return escaped;
}

std::string format_raw(const std::vector<std::string>& row) {
  std::string line;
  for (const std::string& cell : row) {
    if (&cell != &row.front()) {
      line += ' ';
    }
    line += escape(cell);
  }
  return line + "\n";
}

std::string format_aligned(const std::vector<TableColumn>& columns,
                           const std::vector<std::size_t>& widths,
                           const std::vector<std::string>& row) {
  std::string line;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::string padding(widths[i] - width_of(row[i]), ' ');
    line += i == 0 ? "" : " ";
    line += columns[i].right ? padding + row[i] : row[i] + padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

std::string format_table(const std::vector<TableColumn>& columns,
                         const std::vector<std::vector<std::string>>& rows,
                         const TableStyle& style) {
  if (rows.empty()) {
    return "";
  }
  std::vector<std::vector<std::string>> lines;
  if (style.headings) {
    std::vector<std::string>& headings = lines.emplace_back();
    for (const TableColumn& column : columns) {
      headings.emplace_back(column.heading);
    }
  }
  lines.insert(lines.end(), rows.begin(), rows.end());

  std::vector<std::size_t> widths(columns.size(), 0);
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      widths[i] = std::max(widths[i], width_of(line[i]));
    }
  }
  std::string text;
  for (const auto& line : lines) {
    text += style.raw ? format_raw(line) : format_aligned(columns, widths, line);
  }
  return text;
}

}  // namespace uzram
