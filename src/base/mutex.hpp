// A mutex that clang's thread-safety analysis understands.
//
// Role: every lock that is not on the data path's fast side. Members it guards are marked
// UZRAM_GUARDED_BY(mutex); functions that expect it held UZRAM_REQUIRES(mutex).
#pragma once

#include <mutex>

#include "base/annotations.hpp"

namespace uzram {

class UZRAM_CAPABILITY("mutex") Mutex {
 public:
  void lock() UZRAM_ACQUIRE() { mutex_.lock(); }
  void unlock() UZRAM_RELEASE() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class UZRAM_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) UZRAM_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() UZRAM_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace uzram
