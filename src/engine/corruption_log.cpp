#include "engine/corruption_log.hpp"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <string_view>
#include <utility>

#include "base/log.hpp"
#include "base/process_wide.hpp"

namespace uzram::engine {

CorruptionLog::CorruptionLog(std::string device_name, std::uint32_t page_size_bytes,
                             const Stats& stats, std::chrono::nanoseconds between_lines)
    : device_name_(std::move(device_name)),
      page_size_bytes_(page_size_bytes),
      stats_(stats),
      between_lines_(between_lines),
      keeper_(process_wide<Housekeeper>()) {
  keeper_->add(*this);
}

CorruptionLog::~CorruptionLog() { keeper_->remove(*this); }

void CorruptionLog::found(PageIndex page) noexcept {
  PageIndex none = kNone;
  if (first_.load(std::memory_order_relaxed) == kNone &&
      first_.compare_exchange_strong(none, page, std::memory_order_relaxed)) {
    poke();
  }
}

std::chrono::nanoseconds CorruptionLog::tidy() noexcept {
  const auto now = std::chrono::steady_clock::now();
  if (first_.load(std::memory_order_relaxed) == kNone) {
    return kNever;
  }
  if (now < next_line_) {
    return next_line_ - now;
  }
  next_line_ = now + between_lines_;
  write_line(first_.exchange(kNone, std::memory_order_relaxed));
  return kNever;
}

void CorruptionLog::write_line(PageIndex page) const noexcept {
  std::array<char, 512> line{};
  const int length = std::snprintf(
      line.data(), line.size(),
      "device %.256s: the page at byte %" PRIu64
      " is corrupt in memory: it cannot be read until all of it is written or discarded; "
      "corrupt_pages is %" PRIu64,
      device_name_.c_str(), page * page_size_bytes_, stats_.sum(Counter::corrupt_pages));
  const auto used = static_cast<std::size_t>(std::max(length, 0));
  log(LogLevel::error, std::string_view(line.data(), std::min(used, line.size() - 1)));
}

}  // namespace uzram::engine
