// What the size of a device costs: the same number of stored pages on devices from 1 to 64 GiB, in runs
// of 2 MiB spread over the disk (a page of the table each) or as single pages, scattered.
//
// Counters: overhead is what a stored page takes beside its object: table, free maps, and the pool's
// room that holds no object, in bytes.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>

#include "uzram/device.hpp"

#include "base/random.hpp"

namespace uzram {
namespace {

constexpr std::uint64_t kPage = kDefaultPageSize;
constexpr std::uint64_t kStored = std::uint64_t{1} << 16;

// Where the stored pages are.
std::vector<std::uint64_t> places(std::uint64_t size_bytes, std::uint64_t run_pages) {
  std::vector<std::uint64_t> offsets;
  const std::uint64_t runs = kStored / run_pages;
  for (std::uint64_t run = 0; run < runs; ++run) {
    const std::uint64_t begin = size_bytes / runs * run / kPage * kPage;
    for (std::uint64_t page = 0; page < run_pages; ++page) {
      offsets.push_back(begin + page * kPage);
    }
  }
  return offsets;
}

std::vector<std::byte> half_compressible(Random& random) {
  std::vector<std::byte> page(kPage);
  random.fill(std::span(page).first(kPage / 2));
  return page;
}

class Filled {
 public:
  Filled(std::uint64_t size_bytes, std::uint64_t run_pages)
      : offsets_(places(size_bytes, run_pages)), random_(1) {
    DeviceOptions options;
    options.disksize_bytes = size_bytes;
    auto device = Device::create(options);
    device_ = std::move(*device);
    page_ = half_compressible(random_);
    for (const std::uint64_t offset : offsets_) {
      (void)device_->write(offset, page_);
    }
  }

  Errc write() { return device_->write(offset(), page_); }
  Errc read() { return device_->read(offset(), page_); }
  [[nodiscard]] double overhead() const {
    const DeviceStats stats = device_->stats();
    return static_cast<double>(stats.mem_used_total - stats.compr_data_size + stats.table_bytes +
                               stats.metadata_bytes) /
           static_cast<double>(kStored);
  }

 private:
  std::uint64_t offset() { return offsets_[random_.below(offsets_.size())]; }

  std::vector<std::uint64_t> offsets_;
  Random random_;
  std::unique_ptr<Device> device_;
  std::vector<std::byte> page_;
};

void report(benchmark::State& state, const Filled& filled) {
  state.SetItemsProcessed(state.iterations());
  state.counters["overhead"] = filled.overhead();
}

void overwrite(benchmark::State& state) {
  Filled filled(static_cast<std::uint64_t>(state.range(0)) << 30,
                static_cast<std::uint64_t>(state.range(1)));
  for (auto _ : state) {
    benchmark::DoNotOptimize(filled.write());
  }
  report(state, filled);
}

void read(benchmark::State& state) {
  Filled filled(static_cast<std::uint64_t>(state.range(0)) << 30,
                static_cast<std::uint64_t>(state.range(1)));
  for (auto _ : state) {
    benchmark::DoNotOptimize(filled.read());
  }
  report(state, filled);
}

// Size in GiB; pages in a run: 512 are 2 MiB.
BENCHMARK(overwrite)->ArgNames({"gib", "run"})->ArgsProduct({{1, 8, 64}, {512, 1}});
BENCHMARK(read)->ArgNames({"gib", "run"})->ArgsProduct({{1, 8, 64}, {512, 1}});

}  // namespace
}  // namespace uzram
