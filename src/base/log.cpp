#include "base/log.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>

#include <unistd.h>

namespace uzram {
namespace {

std::atomic<LogLevel> threshold{LogLevel::info};

std::string_view prefix(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::debug:
      return "uzram: debug: ";
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

void set_log_level(LogLevel level) noexcept { threshold.store(level, std::memory_order_relaxed); }

void log(LogLevel level, std::string_view message) noexcept {
  if (level < threshold.load(std::memory_order_relaxed)) {
    return;
  }
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
