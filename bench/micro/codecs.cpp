// What a page costs in each codec at its default level, for each corpus: UZRAM_CORPUS or the sample.
// Every iteration takes another page; with one page alone the branch predictor would learn it, and
// the numbers would be several times too good.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "codec/codec.hpp"
#include "support/corpus.hpp"

namespace uzram::codec {
namespace {

constexpr std::size_t kPage = test::kCorpusPageSize;
constexpr std::size_t kMostPages = 1024;

using Pages = std::vector<std::span<const std::byte>>;

// At most kMostPages, taken evenly from all of the corpus.
Pages pages_of(const test::Corpus& corpus) {
  const Pages all = corpus.pages();
  const std::size_t step = (all.size() + kMostPages - 1) / kMostPages;
  Pages pages;
  for (std::size_t i = 0; i < all.size(); i += step) {
    pages.push_back(all[i]);
  }
  return pages;
}

struct Compressor {
  std::unique_ptr<Codec> codec;
  std::unique_ptr<Workspace> workspace;
};

bool make_compressor(const CodecInfo& info, benchmark::State& state, Compressor& made) {
  Result<std::unique_ptr<Codec>> codec = info.make(info.default_level, kPage);
  if (!codec) {
    state.SkipWithError(codec.error().message.c_str());
    return false;
  }
  Result<std::unique_ptr<Workspace>> workspace = (*codec)->make_workspace();
  if (!workspace) {
    state.SkipWithError(workspace.error().message.c_str());
    return false;
  }
  made = Compressor{*std::move(codec), *std::move(workspace)};
  return true;
}

void report(benchmark::State& state, std::size_t pages, std::size_t stored_bytes) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kPage));
  state.counters["ratio"] = static_cast<double>(pages * kPage) / static_cast<double>(stored_bytes);
}

// The page compressed, or as it is where that is no shorter.
std::vector<std::byte> store(const Compressor& with, std::span<const std::byte> page) {
  std::vector<std::byte> stored(kPage - 1);
  const CompressResult result = with.codec->compress(*with.workspace, page, stored);
  if (result.status != Errc::ok) {
    return {page.begin(), page.end()};
  }
  stored.resize(result.size);
  return stored;
}

void compress(benchmark::State& state, const CodecInfo& info, const test::Corpus& corpus) {
  Compressor with;
  if (!make_compressor(info, state, with)) {
    return;
  }
  const Pages pages = pages_of(corpus);
  std::size_t stored_bytes = 0;
  for (const std::span<const std::byte> page : pages) {
    stored_bytes += store(with, page).size();
  }
  std::vector<std::byte> room(kPage - 1);
  std::size_t next = 0;
  for ([[maybe_unused]] auto iteration : state) {
    benchmark::DoNotOptimize(with.codec->compress(*with.workspace, pages[next], room).size);
    benchmark::ClobberMemory();
    next = next + 1 == pages.size() ? 0 : next + 1;
  }
  report(state, pages.size(), stored_bytes);
}

// A page that was stored as it is is copied, as a device does.
void decompress(benchmark::State& state, const CodecInfo& info, const test::Corpus& corpus) {
  Compressor with;
  if (!make_compressor(info, state, with)) {
    return;
  }
  std::vector<std::vector<std::byte>> objects;
  std::size_t stored_bytes = 0;
  for (const std::span<const std::byte> page : pages_of(corpus)) {
    objects.push_back(store(with, page));
    stored_bytes += objects.back().size();
  }
  std::vector<std::byte> out(kPage);
  std::size_t next = 0;
  for ([[maybe_unused]] auto iteration : state) {
    const std::vector<std::byte>& object = objects[next];
    if (object.size() == kPage) {
      std::memcpy(out.data(), object.data(), kPage);
    } else if (with.codec->decompress(with.workspace.get(), object, out) != Errc::ok) {
      state.SkipWithError("a page did not decompress");
      break;
    }
    benchmark::ClobberMemory();
    next = next + 1 == objects.size() ? 0 : next + 1;
  }
  report(state, objects.size(), stored_bytes);
}

// The corpora stay until the end of the program.
bool register_all() {
  static const Result<std::vector<test::Corpus>> corpora = test::load_corpora();
  if (!corpora) {
    std::fprintf(stderr, "%s\n", corpora.error().message.c_str());
    return false;
  }
  for (const CodecInfo& info : registry()) {
    for (const test::Corpus& corpus : *corpora) {
      const std::string suffix = "/" + std::string(info.name) + "/" + corpus.name;
      benchmark::RegisterBenchmark(
          ("compress" + suffix).c_str(),
          [&info, &corpus](benchmark::State& state) { compress(state, info, corpus); });
      benchmark::RegisterBenchmark(
          ("decompress" + suffix).c_str(),
          [&info, &corpus](benchmark::State& state) { decompress(state, info, corpus); });
    }
  }
  return true;
}

}  // namespace
}  // namespace uzram::codec

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv) || !uzram::codec::register_all()) {
    return 1;
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
