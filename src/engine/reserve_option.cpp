#include "engine/reserve_option.hpp"

#include <string>

#include "base/size.hpp"
#include "engine/span.hpp"

namespace uzram::engine {

Result<void> check_reserve(const DeviceOptions& options) {
  constexpr std::uint64_t kGreatest = kMaxChunks * kChunkBytes;
  const std::uint64_t bytes = options.reserve_bytes;
  if (bytes == 0) {
    return {};
  }
  const auto refuse = [bytes](const std::string& expected) {
    return Error{Errc::invalid_argument, 0,
                 "reserve " + format_size(bytes) + ": expected " + expected};
  };
  if (bytes > kGreatest) {
    return refuse("at most " + format_size(kGreatest));
  }
  const std::uint64_t whole = round_up(bytes, kSpanBytes);
  if (const std::uint64_t limit = options.mem_limit_bytes; limit != 0 && whole > limit) {
    return refuse("at most mem_limit, which is " + format_size(limit) +
                  " and holds the reserve, rounded up to " + format_size(whole) +
                  "; raise the limit or lower the reserve");
  }
  if (!options.background) {
    return refuse(
        "background on, for that thread keeps the reserve filled; "
        "leave out the one or the other");
  }
  return {};
}

std::uint32_t reserve_spans_of(const DeviceOptions& options) noexcept {
  return static_cast<std::uint32_t>(round_up(options.reserve_bytes, kSpanBytes) / kSpanBytes);
}

}  // namespace uzram::engine
