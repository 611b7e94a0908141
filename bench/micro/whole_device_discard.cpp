// Discarding a whole device of 16 TiB that holds little, and what reads notice of it.
//
// The last argument is the number of bytes stored. discard: time to discard them alone (0), as part
// of the whole device (1), and a whole device that holds nothing (2). read_beside: a 4 KiB read at
// random while another thread discards the whole device ("thread"), and through the queue that the
// discard was submitted to ("queue"); counters are percentiles in microseconds.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include "uzram/device.hpp"

#include "base/random.hpp"

namespace uzram {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr std::int64_t kLittle = std::int64_t{16} << 20;
constexpr std::uint64_t kPage = kDefaultPageSize;
// The stored pages lie in runs of 2 MiB.
constexpr std::uint64_t kRun = std::uint64_t{2} << 20;

double microseconds(Clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

std::unique_ptr<Device> make() {
  DeviceOptions options;
  options.disksize_bytes = kMaxDiskSize;
  auto device = Device::create(options);
  return std::move(*device);
}

// From one run to the next when `bytes` are spread over the whole disk.
std::uint64_t spread_of(std::uint64_t bytes) { return kMaxDiskSize / (bytes / kRun); }

void fill(Device& device, std::uint64_t bytes, std::uint64_t spread) {
  Random random(1);
  std::vector<std::byte> run(kRun);
  for (std::size_t at = 0; at < run.size(); at += kPage) {
    random.fill(std::span(run).subspan(at, kPage / 2));
  }
  for (std::uint64_t done = 0; done < bytes; done += kRun) {
    (void)device.write(done / kRun * spread, run);
  }
}

enum Discarded { kStored, kWholeDevice, kEmptyDevice };

void discard(benchmark::State& state) {
  const auto device = make();
  const auto bytes = static_cast<std::uint64_t>(state.range(1));
  for (auto _ : state) {
    state.PauseTiming();
    // What is stored lies together for the first, so that it can be discarded alone.
    if (state.range(0) != kEmptyDevice) {
      fill(*device, bytes, state.range(0) == kStored ? kRun : spread_of(bytes));
    }
    state.ResumeTiming();
    (void)device->discard(0, state.range(0) == kStored ? bytes : kMaxDiskSize);
  }
}

// Reads of a device while it is discarded: `round` fills `times`, in microseconds, from one discard.
template <typename Round>
void read_beside(benchmark::State& state, Round round) {
  const auto device = make();
  const auto bytes = static_cast<std::uint64_t>(state.range(0));
  Random random(2);
  std::vector<std::byte> page(kPage);
  std::vector<double> times;
  const auto next_page = [&] {
    return random.below(bytes / kRun) * spread_of(bytes) + random.below(kRun / kPage) * kPage;
  };
  for (auto _ : state) {
    state.PauseTiming();
    fill(*device, bytes, spread_of(bytes));
    state.ResumeTiming();
    round(*device, next_page, page, times);
  }
  if (times.empty()) {
    return;
  }
  std::ranges::sort(times);
  const auto at = [&](double share) {
    return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
  };
  state.counters["reads"] = static_cast<double>(times.size());
  state.counters["p50"] = at(0.5);
  state.counters["p99"] = at(0.99);
  state.counters["p99.9"] = at(0.999);
  state.counters["max"] = times.back();
}

void read_beside_thread(benchmark::State& state) {
  read_beside(state, [](Device& device, const auto& next_page, std::span<std::byte> page,
                        std::vector<double>& times) {
    std::atomic<bool> over{false};
    std::thread discarder([&] {
      (void)device.discard(0, kMaxDiskSize);
      over.store(true);
    });
    while (!over.load()) {
      const auto start = Clock::now();
      (void)device.read(next_page(), page);
      times.push_back(microseconds(Clock::now() - start));
    }
    discarder.join();
  });
}

void read_beside_queue(benchmark::State& state) {
  read_beside(state, [](Device& device, const auto& next_page, std::span<std::byte> page,
                        std::vector<double>& times) {
    Queue queue(device);
    Request all{.op = Op::discard, .offset = 0, .length = kMaxDiskSize};
    Request* const first[] = {&all};
    queue.submit(first);
    bool over = false;
    while (!over) {
      // As an event loop: one look at the queue, in which the discard goes on, then what has
      // arrived meanwhile.
      const auto arrival = Clock::now();
      over = queue.reap() == &all;
      Request read{.op = Op::read, .offset = next_page(), .length = kPage, .buffer = page.data()};
      Request* const second[] = {&read};
      queue.submit(second);
      if (queue.wait() == &all) {
        over = true;
        (void)queue.wait();
      }
      times.push_back(microseconds(Clock::now() - arrival));
    }
  });
}

constexpr int kTimes = 5;
BENCHMARK(discard)
    ->ArgsProduct({{kStored, kWholeDevice, kEmptyDevice}, {kLittle, kGiB}})
    ->Unit(benchmark::kMillisecond)
    ->Iterations(kTimes);
BENCHMARK(read_beside_thread)
    ->Arg(kLittle)
    ->Arg(kGiB)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(kTimes);
BENCHMARK(read_beside_queue)
    ->Arg(kLittle)
    ->Arg(kGiB)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(kTimes);

}  // namespace
}  // namespace uzram
