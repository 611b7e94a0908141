// Waiting for what other threads do.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace uzram::test {

// Whether `holds` does within `limit`.
inline bool eventually(const std::function<bool()>& holds,
                       std::chrono::seconds limit = std::chrono::seconds(30)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace uzram::test
