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

Room::Grant Room::ask(std::uint64_t bytes, Scope scope) noexcept {
  const MutexLock lock(mutex_);
  if (headroom_ != nullptr) {
    if (credit_bytes_ < bytes) {
      const std::uint64_t headroom = headroom_->bytes(scope);
      credit_bytes_ = 0;
      if (headroom < in_flight_bytes_ || headroom - in_flight_bytes_ < bytes) {
        return {nullptr, 0};
      }
      // What the whole system has not is no credit for others.
      const std::uint64_t further = scope == Scope::groups ? 0 : kCreditBytes;
      credit_bytes_ = bytes + std::min(headroom - in_flight_bytes_ - bytes, further);
    }
    credit_bytes_ -= bytes;
  }
  in_flight_bytes_ += bytes;
  return {this, bytes};
}

void Room::settle(std::uint64_t bytes) noexcept {
  const MutexLock lock(mutex_);
  in_flight_bytes_ -= bytes;
}

}  // namespace uzram::engine
