// Ring: an io_uring that belongs to one thread.
//
// Role: under the event loops of the front ends; hides which set-up flags the kernel knows.
// Ownership: closes the ring.
// Errors: create() says what forbids io_uring and what to do; later calls return negative errnos
// as liburing does.
// Threads: create() and the destructor by any thread, everything else by the thread that called
// enable().
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string_view>

#include <liburing.h>

#include "uzram/error.hpp"

namespace uzram::os {

// What a set-up of io_uring that failed means, and what to do. `kernel`: what the caller needs, such as
// "Linux 5.11 or later". The code is unsupported where the kernel has none or does not allow it.
[[nodiscard]] Error ring_error(int errno_value, std::string_view kernel);

class Ring {
 public:
  // Room for `entries` submissions and `completions` that nobody has looked at; more of those cost
  // the kernel memory. Errors: unsupported when the kernel has no io_uring or does not allow it, else
  // system.
  static Result<std::unique_ptr<Ring>> create(unsigned entries, unsigned completions);
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // Makes the caller the ring's thread. Returns 0 or a negative errno.
  [[nodiscard]] int enable() noexcept;

  // A free submission entry; submits what is pending to get one.
  [[nodiscard]] io_uring_sqe& entry() noexcept;

  // Submits what is pending and, when `wait`, sleeps until a completion or the time-out.
  void submit(bool wait, std::optional<std::chrono::milliseconds> timeout) noexcept;

  // Calls visit(user_data, result) for each completion that is there.
  template <typename Visit>
  void for_each_completion(Visit&& visit) noexcept {
    unsigned head = 0;
    unsigned count = 0;
    io_uring_cqe* cqe = nullptr;
    io_uring_for_each_cqe(&ring_, head, cqe) {
      ++count;
      visit(cqe->user_data, cqe->res);
    }
    io_uring_cq_advance(&ring_, count);
  }

 private:
  Ring() = default;

  io_uring ring_{};
  bool made_ = false;
};

}  // namespace uzram::os
