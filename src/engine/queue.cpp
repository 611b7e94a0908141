// Queue: how a submitter hands in requests and gets them back.
//
// Role: step 1 of the data path.
// Invariants: 1. A worker does not touch the Queue after it has taken a request off in_flight_.
// 2. Between a worker's push to arrived_ and its look at armed_, and the submitter's store to armed_
// and its look at arrived_, at least one sees the other's write.
#include <sys/eventfd.h>

#include "uzram/device.hpp"

#include "engine/device_impl.hpp"
#include "os/futex.hpp"

namespace uzram {

Queue::~Queue() {
  for (std::uint32_t left = in_flight_.load(std::memory_order_acquire); left != 0;
       left = in_flight_.load(std::memory_order_acquire)) {
    // The doorbell, if there is one, rings for nobody.
    sched_yield();
  }
}

void Queue::submit(std::span<Request* const> batch) noexcept {
  outstanding_ += batch.size();
  device_.impl().executor.submit(*this, batch);
}

void Queue::append(Request& request) noexcept { completed_.push(request); }

void Queue::defer(Request& request) noexcept {
  request.done = 0;
  deferred_.push(request);
}

void Queue::advance() noexcept {
  if (device_.impl().executor.advance(*deferred_.front())) {
    append(*deferred_.pop());
  }
}

void Queue::arrive(Request& request) noexcept {
  Request* newest = arrived_.load(std::memory_order_relaxed);
  do {
    request.next = newest;
  } while (!arrived_.compare_exchange_weak(newest, &request, std::memory_order_seq_cst,
                                           std::memory_order_relaxed));
  if (armed_.load(std::memory_order_seq_cst) != nobody) {
    const std::uint32_t awaited = armed_.exchange(nobody, std::memory_order_seq_cst);
    if (awaited == doorbell) {
      ::eventfd_write(doorbell_fd_, 1);
    } else if (awaited == sleeper) {
      os::futex_wake(&armed_, 1);
    }
  }
  in_flight_.fetch_sub(1, std::memory_order_release);
}

Request* Queue::reap() noexcept {
  if (completed_.empty() && arrived_.load(std::memory_order_relaxed) != nullptr) {
    // Oldest first.
    Request* newest = arrived_.exchange(nullptr, std::memory_order_acquire);
    while (newest != nullptr) {
      Request* const older = newest->next;
      completed_.push_front(*newest);
      newest = older;
    }
  }
  if (completed_.empty() && !deferred_.empty()) {
    advance();
  }
  Request* const request = completed_.pop();
  outstanding_ -= request == nullptr ? 0 : 1;
  return request;
}

bool Queue::arm(Awaited awaited) noexcept {
  if (!completed_.empty() || !deferred_.empty()) {
    return false;
  }
  armed_.store(awaited, std::memory_order_seq_cst);
  if (arrived_.load(std::memory_order_seq_cst) == nullptr) {
    return true;
  }
  armed_.store(nobody, std::memory_order_relaxed);
  return false;
}

Request* Queue::wait() noexcept {
  while (outstanding_ != 0) {
    if (Request* const request = reap()) {
      return request;
    }
    if (arm(sleeper)) {
      os::futex_wait(&armed_, sleeper);
    }
  }
  return nullptr;
}

}  // namespace uzram
