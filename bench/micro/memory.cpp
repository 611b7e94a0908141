// The limits of this machine: what no store of pages can be faster than.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>

namespace uzram {
namespace {

constexpr std::size_t kPage = 4096;

// A page that is in the first-level cache: the fastest read there is.
void copy_cached_page(benchmark::State& state) {
  std::vector<std::byte> from(kPage, std::byte{1});
  std::vector<std::byte> to(kPage);
  for ([[maybe_unused]] auto iteration : state) {
    std::memcpy(to.data(), from.data(), kPage);
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kPage));
}
BENCHMARK(copy_cached_page);

struct alignas(64) Line {
  std::uint64_t next;
};

// One load that depends on the one before, from a buffer of that many bytes: of 1 GiB, about what
// the first touch of a table entry or of a stored page costs, with its TLB miss.
void dependent_load(benchmark::State& state) {
  const std::uint64_t lines = static_cast<std::uint64_t>(state.range(0)) / sizeof(Line);
  std::vector<Line> buffer(lines);
  // A linear congruential generator of full period (lines is a power of two) goes through every
  // line once, in an order that no prefetcher guesses.
  for (std::uint64_t i = 0; i < lines; ++i) {
    buffer[i].next = (i * 6364136223846793005 + 1442695040888963407) & (lines - 1);
  }
  std::uint64_t at = 0;
  for ([[maybe_unused]] auto iteration : state) {
    at = buffer[at].next;
    benchmark::DoNotOptimize(at);
  }
}
BENCHMARK(dependent_load)->Arg(16 << 10)->Arg(512 << 10)->Arg(1 << 30);

}  // namespace
}  // namespace uzram
