#include "engine/room.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/log.hpp"

namespace uzram::engine {

Room& Room::process() noexcept {
  static Room room([] {
    auto headroom = os::MemoryHeadroom::open();
    if (!headroom) {
      log(LogLevel::warning,
          "memory limits are not watched: " + std::string(headroom.error().message));
      return std::unique_ptr<os::MemoryHeadroom>();
    }
    return std::move(headroom).value();
  }());
  return room;
}

bool Room::may_take(std::uint64_t bytes) noexcept {
  if (headroom_ == nullptr) {
    return true;
  }
  const auto wanted = static_cast<std::int64_t>(bytes);
  if (credit_bytes_.fetch_sub(wanted, std::memory_order_relaxed) >= wanted) {
    return true;
  }
  const std::uint64_t headroom = headroom_->bytes();
  if (headroom < bytes) {
    credit_bytes_.store(0, std::memory_order_relaxed);
    return false;
  }
  credit_bytes_.store(static_cast<std::int64_t>(std::min(headroom - bytes, kCreditBytes)),
                      std::memory_order_relaxed);
  return true;
}

}  // namespace uzram::engine
