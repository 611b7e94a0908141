// CorruptionLog: tells people of pages that were found corrupt.
//
// Role: beside the data path. Who finds a page corrupt leaves its number here; the housekeeper writes a
// line to the log: at once for the first one, later at most one in `between_lines`.
// Units: PageIndex; bytes in the line.
// Errors: none. Pages found between two lines are counted in the next one, and not named.
// Threads: found from any.
// Cost: found is a load and, for the first page since the last line, a poke of the housekeeper.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/format.hpp"
#include "engine/housekeeper.hpp"
#include "engine/stats.hpp"

namespace uzram::engine {

class CorruptionLog final : private Housekeeper::Client {
 public:
  // `stats` counts what was found, and outlives this.
  CorruptionLog(std::string device_name, std::uint32_t page_size_bytes, const Stats& stats,
                std::chrono::nanoseconds between_lines = std::chrono::minutes(1));
  ~CorruptionLog();
  CorruptionLog(const CorruptionLog&) = delete;
  CorruptionLog& operator=(const CorruptionLog&) = delete;

  void found(PageIndex page) noexcept;

 private:
  static constexpr PageIndex kNone = ~PageIndex{0};

  std::chrono::nanoseconds tidy() noexcept override;
  void write_line(PageIndex page) const noexcept;

  const std::string device_name_;
  const std::uint32_t page_size_bytes_;
  const Stats& stats_;
  const std::chrono::nanoseconds between_lines_;
  // The first page that was found since the last line.
  std::atomic<PageIndex> first_{kNone};
  // Of the housekeeper: when there may be another line.
  std::chrono::steady_clock::time_point next_line_{};
  const std::shared_ptr<Housekeeper> keeper_;
};

}  // namespace uzram::engine
