// process_wide: the one object of a type that its users in this process share.
//
// Ownership: the first user makes it, the last one ends it; after that the next user makes another.
// Errors: what T's constructor throws.
// Threads: any.
#pragma once

#include <memory>

#include "base/mutex.hpp"

namespace uzram {

template <typename T>
[[nodiscard]] std::shared_ptr<T> process_wide() {
  static Mutex mutex;
  static std::weak_ptr<T> current;
  const MutexLock lock(mutex);
  std::shared_ptr<T> shared = current.lock();
  if (!shared) {
    shared = std::make_shared<T>();
    current = shared;
  }
  return shared;
}

}  // namespace uzram
