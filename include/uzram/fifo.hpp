// Fifo: a list without memory of its own, first in, first out.
//
// Invariants: items are linked by their `next`, so one is in a single list at a time. They belong to
// the caller.
// Threads: one at a time.
#pragma once

namespace uzram {

template <typename T>
class Fifo {
 public:
  void push(T& item) noexcept {
    item.next = nullptr;
    (last_ == nullptr ? first_ : last_->next) = &item;
    last_ = &item;
  }
  // Before all others.
  void push_front(T& item) noexcept {
    item.next = first_;
    first_ = &item;
    last_ = last_ == nullptr ? &item : last_;
  }
  // nullptr when empty.
  T* pop() noexcept {
    T* const taken = first_;
    if (taken != nullptr) {
      first_ = taken->next;
      last_ = first_ == nullptr ? nullptr : last_;
    }
    return taken;
  }
  [[nodiscard]] T* front() const noexcept { return first_; }
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }

 private:
  T* first_ = nullptr;
  T* last_ = nullptr;
};

}  // namespace uzram
