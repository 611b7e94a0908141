// What the lock in an entry costs: the floor of every read and partial write.
#include "engine/entry_lock.hpp"

#include <atomic>
#include <cstdint>

#include <benchmark/benchmark.h>

namespace uzram::engine {
namespace {

const Entry kContent = Entry::stored(Kind::object, 4711, 1234, 0);

void lock_and_unlock(benchmark::State& state) {
  AtomicEntry entry{kContent.bits()};
  SleeperCount sleepers{0};
  for ([[maybe_unused]] auto iteration : state) {
    benchmark::DoNotOptimize(lock_entry(entry, sleepers));
    unlock_entry(entry);
  }
}
BENCHMARK(lock_and_unlock);

void lock_and_publish(benchmark::State& state) {
  AtomicEntry entry{kContent.bits()};
  SleeperCount sleepers{0};
  for ([[maybe_unused]] auto iteration : state) {
    const Entry content = lock_entry(entry, sleepers);
    publish_locked(entry, content);
  }
}
BENCHMARK(lock_and_publish);

// A whole-page write, which never holds the lock.
void publish_without_lock(benchmark::State& state) {
  AtomicEntry entry{kContent.bits()};
  SleeperCount sleepers{0};
  for ([[maybe_unused]] auto iteration : state) {
    benchmark::DoNotOptimize(publish(entry, kContent, sleepers));
  }
}
BENCHMARK(publish_without_lock);

// Two threads on one entry: the line moves between CPUs, and waiters spin or sleep.
void lock_and_unlock_contended(benchmark::State& state) {
  static AtomicEntry entry{kContent.bits()};
  static SleeperCount sleepers{0};
  for ([[maybe_unused]] auto iteration : state) {
    benchmark::DoNotOptimize(lock_entry(entry, sleepers));
    unlock_entry(entry);
  }
}
BENCHMARK(lock_and_unlock_contended)->Threads(2)->UseRealTime();

void publish_contended(benchmark::State& state) {
  static AtomicEntry entry{kContent.bits()};
  static SleeperCount sleepers{0};
  for ([[maybe_unused]] auto iteration : state) {
    benchmark::DoNotOptimize(publish(entry, kContent, sleepers));
  }
}
BENCHMARK(publish_contended)->Threads(2)->UseRealTime();

}  // namespace
}  // namespace uzram::engine
