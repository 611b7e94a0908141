#include "base/log.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include <unistd.h>

namespace uzram {
namespace {

std::string_view prefix(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::info:
      return "uzram: ";
    case LogLevel::warning:
      return "uzram: warning: ";
    case LogLevel::error:
      return "uzram: error: ";
  }
  return "uzram: ";
}

}  // namespace

void log(LogLevel level, std::string_view message) noexcept {
  std::array<char, 1024> line{};
  std::size_t used = 0;
  const auto append = [&](std::string_view text) {
    const std::size_t count = std::min(text.size(), line.size() - 1 - used);
    std::copy_n(text.data(), count, line.data() + used);
    used += count;
  };
  append(prefix(level));
  append(message);
  line.at(used++) = '\n';
  // A log line that cannot be written has nowhere else to go.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), used);
}

}  // namespace uzram
