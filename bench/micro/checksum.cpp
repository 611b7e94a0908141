// What checksums cost: the sum of an object by its length, and writes and reads of a device with them
// and without, side by side, of the same pages by the same codec.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "uzram/device.hpp"

#include "base/crc32c.hpp"
#include "base/random.hpp"

namespace uzram {
namespace {

constexpr std::size_t kPage = 4096;

void sum_of_bytes(benchmark::State& state) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(state.range(0)));
  Random(1).fill(bytes);
  for ([[maybe_unused]] auto iteration : state) {
    benchmark::DoNotOptimize(bytes.data());
    benchmark::DoNotOptimize(crc32c(bytes));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(sum_of_bytes)->ArgName("bytes")->DenseRange(512, 4096, 512);

void sum_by_table(benchmark::State& state) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(state.range(0)));
  Random(1).fill(bytes);
  for ([[maybe_unused]] auto iteration : state) {
    benchmark::DoNotOptimize(bytes.data());
    benchmark::DoNotOptimize(crc32c_by_table(bytes));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(sum_by_table)->ArgName("bytes")->Arg(512)->Arg(4096);

// `random_share` 64ths of a page are random, the rest repeats a letter; 64: stored raw.
std::vector<std::byte> page_of(std::uint64_t seed, std::size_t random_share) {
  std::vector<std::byte> page(kPage, std::byte{'x'});
  Random random(seed);
  for (std::size_t at = 0; at < kPage; at += 64) {
    random.fill(std::span(page).subspan(at, random_share));
  }
  return page;
}

class Scene {
 public:
  Scene(benchmark::State& state, const std::string& algorithm) {
    DeviceOptions options;
    options.disksize_bytes = kPages * kPage;
    options.algorithm = algorithm;
    options.mode = Mode::nowait;
    options.background = false;
    options.checksum = state.range(0) != 0;
    auto made = Device::create(options);
    if (!made) {
      state.SkipWithError(made.error().message.c_str());
      return;
    }
    device_ = std::move(*made);
    const auto share = static_cast<std::size_t>(state.range(1));
    for (std::uint64_t page = 0; page < kPages; ++page) {
      contents_.push_back(page_of(page, share));
      if (write(page) != Errc::ok) {
        state.SkipWithError("a page cannot be written");
        device_.reset();
        return;
      }
    }
  }

  [[nodiscard]] bool usable() const { return device_ != nullptr; }
  Errc write(std::uint64_t page) {
    return device_->write(page % kPages * kPage, contents_[page % kPages]);
  }
  Errc read(std::uint64_t page, std::span<std::byte> into) {
    return device_->read(page % kPages * kPage, into);
  }

 private:
  // More than a second-level cache holds.
  static constexpr std::uint64_t kPages = 4096;

  std::unique_ptr<Device> device_;
  std::vector<std::vector<std::byte>> contents_;
};

void write_pages(benchmark::State& state, const std::string& algorithm) {
  Scene scene(state, algorithm);
  std::uint64_t page = 0;
  for ([[maybe_unused]] auto iteration : state) {
    if (!scene.usable() || scene.write(page++) != Errc::ok) {
      state.SkipWithError("a page cannot be written");
      break;
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kPage));
}

void read_pages(benchmark::State& state, const std::string& algorithm) {
  Scene scene(state, algorithm);
  std::vector<std::byte> into(kPage);
  std::uint64_t page = 0;
  for ([[maybe_unused]] auto iteration : state) {
    if (!scene.usable() || scene.read(page++, into) != Errc::ok) {
      state.SkipWithError("a page cannot be read");
      break;
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kPage));
}

void add_scenes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"checksum", "random_64ths"});
  for (const std::int64_t share : {8, 32, 64}) {
    for (const std::int64_t checksum : {0, 1}) {
      benchmark->Args({checksum, share});
    }
  }
}
BENCHMARK_CAPTURE(write_pages, lz4, "lz4")->Apply(add_scenes);
BENCHMARK_CAPTURE(read_pages, lz4, "lz4")->Apply(add_scenes);
BENCHMARK_CAPTURE(write_pages, zstd, "zstd")->Apply(add_scenes);
BENCHMARK_CAPTURE(read_pages, zstd, "zstd")->Apply(add_scenes);

}  // namespace
}  // namespace uzram
