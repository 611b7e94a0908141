#include "os/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace uzram::os {

void futex_wait(const std::atomic<std::uint32_t>* word, std::uint32_t expected) noexcept {
  ::syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void futex_wait_for(const std::atomic<std::uint32_t>* word, std::uint32_t expected,
                    std::chrono::nanoseconds time) noexcept {
  if (time <= std::chrono::nanoseconds(0)) {
    return;
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  const timespec most = {seconds.count(), (time - seconds).count()};
  ::syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, &most, nullptr, 0);
}

void futex_wake(const std::atomic<std::uint32_t>* word, int count) noexcept {
  ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

}  // namespace uzram::os
