// What it costs to free an object and to allocate another one, in a pool that has been used for a
// while: its holes are of all sizes, and the caches are filled from and emptied into the pool.
#include "engine/pool_cache.hpp"

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include <benchmark/benchmark.h>

#include "engine/pool.hpp"
#include "engine/room.hpp"

namespace uzram::engine {
namespace {

struct Object {
  Place place = 0;
  std::uint32_t units = 0;
};

// A pool, one cache of it and the objects that live there.
class Store {
 public:
  explicit Store(benchmark::State& state) {
    Result<std::unique_ptr<Pool>> pool = Pool::create("micro", 4096, 0, Room::process());
    if (!pool) {
      state.SkipWithError(pool.error().message.c_str());
      return;
    }
    pool_ = *std::move(pool);
    cache_ = std::make_unique<PoolCache>(*pool_);
  }

  [[nodiscard]] Pool& pool() { return *pool_; }
  [[nodiscard]] PoolCache* cache() { return cache_.get(); }

 private:
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<PoolCache> cache_;
};

// One object is replaced by another of a random size of the range.
void replace(benchmark::State& state) {
  constexpr std::size_t kObjects = 1 << 15;
  Store store(state);
  if (store.cache() == nullptr) {
    return;
  }
  PoolCache& cache = *store.cache();
  std::mt19937 random(1);
  std::uniform_int_distribution<std::uint32_t> units(static_cast<std::uint32_t>(state.range(0)),
                                                     static_cast<std::uint32_t>(state.range(1)));
  std::vector<Object> objects(kObjects);
  for (Object& object : objects) {
    object.units = units(random);
    if (cache.allocate(object.units, object.place) != Errc::ok) {
      state.SkipWithError("the pool has no room");
      return;
    }
  }
  // Drawn beforehand, so that only the pool is timed.
  struct Step {
    std::uint32_t object;
    std::uint32_t units;
  };
  std::vector<Step> steps(1 << 18);
  for (Step& step : steps) {
    step = Step{static_cast<std::uint32_t>(random() % kObjects), units(random)};
  }
  const auto run = [&](const Step& step) {
    Object& object = objects[step.object];
    cache.free(object.place, object.units);
    object.units = step.units;
    return cache.allocate(object.units, object.place);
  };
  for (const Step& step : steps) {
    benchmark::DoNotOptimize(run(step));
  }
  std::size_t next = 0;
  for ([[maybe_unused]] auto iteration : state) {
    if (run(steps[next]) != Errc::ok) {
      state.SkipWithError("the pool has no room");
      break;
    }
    next = next + 1 == steps.size() ? 0 : next + 1;
  }
  double held = 0;
  for (const Object& object : objects) {
    held += object.units * double{kPlaceUnit};
  }
  state.counters["memory/objects"] = static_cast<double>(store.pool().used_bytes()) / held;
}
// 16 bytes to 4 KiB, as pages of mixed content compress, and objects of one size alone.
BENCHMARK(replace)->ArgNames({"from_units", "to_units"})->Args({1, 255})->Args({64, 64});

void replace_raw_page(benchmark::State& state) {
  Store store(state);
  if (store.cache() == nullptr) {
    return;
  }
  PoolCache& cache = *store.cache();
  const std::uint32_t units = store.pool().page_units();
  std::vector<Place> places(1 << 12);
  for (Place& place : places) {
    if (cache.allocate_raw(place) != Errc::ok) {
      state.SkipWithError("the pool has no room");
      return;
    }
  }
  std::size_t next = 0;
  for ([[maybe_unused]] auto iteration : state) {
    cache.free(places[next], units);
    if (cache.allocate_raw(places[next]) != Errc::ok) {
      state.SkipWithError("the pool has no room");
      break;
    }
    next = (next + 1) % places.size();
  }
}
BENCHMARK(replace_raw_page);

}  // namespace
}  // namespace uzram::engine
