// What the test for pages of one repeated word costs: every page that is written pays for it.
#include "engine/same_filled.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <benchmark/benchmark.h>

namespace uzram::engine {
namespace {

constexpr std::size_t kPage = 4096;
// As many pages as stay in a first-level cache.
constexpr std::size_t kPages = 4;

std::vector<std::byte> filled_pages() {
  std::vector<std::byte> pages(kPages * kPage);
  write_fill(0x0123456789abcdef, 0, pages);
  return pages;
}

void run(benchmark::State& state, const std::vector<std::byte>& pages, bool expected) {
  std::size_t next = 0;
  for ([[maybe_unused]] auto iteration : state) {
    std::uint64_t word = 0;
    const std::span<const std::byte> page = std::span(pages).subspan(next * kPage, kPage);
    if (same_filled(page, word) != expected) {
      state.SkipWithError("the page was taken for what it is not");
      break;
    }
    benchmark::DoNotOptimize(word);
    next = (next + 1) % kPages;
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kPage));
}

void change(std::vector<std::byte>& pages, std::size_t at) {
  for (std::size_t page = 0; page < kPages; ++page) {
    pages[page * kPage + at] ^= std::byte{1};
  }
}

void same(benchmark::State& state) { run(state, filled_pages(), true); }
BENCHMARK(same);

// Most pages: the first word is not the last one.
void other_first_word(benchmark::State& state) {
  std::vector<std::byte> pages = filled_pages();
  change(pages, 0);
  run(state, pages, false);
}
BENCHMARK(other_first_word);

void other_last_word(benchmark::State& state) {
  std::vector<std::byte> pages = filled_pages();
  change(pages, kPage - 1);
  run(state, pages, false);
}
BENCHMARK(other_last_word);

// The worst page: its ends are the same, and all of it has to be compared.
void other_word_before_the_last(benchmark::State& state) {
  std::vector<std::byte> pages = filled_pages();
  change(pages, kPage - 2 * sizeof(std::uint64_t));
  run(state, pages, false);
}
BENCHMARK(other_word_before_the_last);

}  // namespace
}  // namespace uzram::engine
