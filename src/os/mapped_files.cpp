#include "os/mapped_files.hpp"

#include <charconv>
#include <optional>
#include <set>

#include "os/proc_text.hpp"

namespace uzram::os {
namespace {

struct Line {
  MappedRange range;
  bool readable = false;
  bool executable = false;
};

// "7f0000000000-7f0000001000 r-xp 00000000 fe:00 1234   /usr/lib/libc.so.6"
std::optional<Line> parse_line(std::string_view text) {
  Line line;
  std::string_view addresses = take_until(text, ' ');
  const std::string_view begin = take_until(addresses, '-');
  constexpr int kHex = 16;
  if (std::from_chars(begin.data(), begin.data() + begin.size(), line.range.begin, kHex).ec !=
          std::errc{} ||
      std::from_chars(addresses.data(), addresses.data() + addresses.size(), line.range.end, kHex)
              .ec != std::errc{}) {
    return std::nullopt;
  }
  const std::string_view rights = take_until(text, ' ');
  line.readable = rights.starts_with('r');
  line.range.writable = rights.substr(0, 2).ends_with('w');
  line.executable = rights.substr(0, 3).ends_with('x');
  for (int field = 0; field < 3; ++field) {
    take_until(text, ' ');
  }
  const std::size_t path = text.find_first_not_of(' ');
  if (path != std::string_view::npos) {
    line.range.path = text.substr(path);
  }
  return line;
}

}  // namespace

std::vector<MappedRange> program_ranges(std::string_view maps) {
  std::vector<Line> lines;
  std::set<std::string> programs;
  while (!maps.empty()) {
    if (auto line = parse_line(take_until(maps, '\n'))) {
      if (line->executable && line->range.path.starts_with('/')) {
        programs.insert(line->range.path);
      }
      lines.push_back(*std::move(line));
    }
  }
  std::vector<MappedRange> ranges;
  for (const Line& line : lines) {
    const MappedRange& range = line.range;
    const bool follows = range.path.empty() && range.writable && !ranges.empty() &&
                         ranges.back().writable && !ranges.back().path.empty() &&
                         ranges.back().end == range.begin;
    if (line.readable && (follows || range.path == "[heap]" || programs.contains(range.path))) {
      ranges.push_back(range);
    }
  }
  return ranges;
}

}  // namespace uzram::os
