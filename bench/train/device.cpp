// train_device: what a device gains that trains its own tables, and what that costs.
//
//   UZRAM_CORPUS=FOLDER train_device [--rounds N] [--algorithm NAME] [--level N]
//
// Every other page of a corpus is written and read back at random, first on a device that does not
// train, then on one that does, until its first attempt has ended. What it gains is seen on the other
// pages, which it has not met. Latencies are told apart by what the second device did at the time:
// gathered samples, or learnt from them. Without UZRAM_CORPUS the sample is taken, which is small.
#include "uzram/device.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/random.hpp"
#include "engine/device_impl.hpp"
#include "support/corpus.hpp"
#include "tool.hpp"

namespace {

using uzram::Device;
using uzram::DeviceOptions;
using uzram::Errc;
using uzram::Random;
using uzram::engine::Training;
using uzram::test::Corpus;
using uzram::tool::fail;

constexpr std::size_t kPage = uzram::test::kCorpusPageSize;

using Pages = std::vector<std::span<const std::byte>>;

struct Settings {
  std::string algorithm = "pagez";
  std::optional<int> level;
  unsigned rounds = 3;
  bool quick = false;
};

// In microseconds.
struct Latencies {
  std::vector<float> reads;
  std::vector<float> writes;
};

double p99(std::vector<float>& values) {
  if (values.empty()) {
    return 0;
  }
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() * 99 / 100);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

enum Phase : std::size_t { without, gathering, learning, kPhases };

struct Figures {
  double bytes_before = 0;
  double bytes_after = 0;
  double held_out_saving = 0;
  double cpu_ms = 0;
  unsigned published = 0;
  std::array<Latencies, kPhases> latencies;
};

std::unique_ptr<Device> make_device(const Settings& settings, std::size_t pages, bool train) {
  DeviceOptions options;
  options.disksize_bytes = pages * kPage;
  options.algorithm = settings.algorithm;
  options.level = settings.level;
  options.mode = uzram::Mode::nowait;
  options.train = train;
  auto made = Device::create(options);
  if (!made) {
    fail(made.error().message);
  }
  if (train && settings.quick) {
    (*made)->impl().training->set_eager(Training::kLeastSaving);
  }
  return *std::move(made);
}

float microseconds_of(Errc status, std::chrono::steady_clock::time_point begin) {
  const std::chrono::duration<float, std::micro> took = std::chrono::steady_clock::now() - begin;
  if (status != Errc::ok) {
    fail("an operation failed: " + std::string(uzram::describe(status)));
  }
  return took.count();
}

// Writes a page and reads another one, `count` times.
void load(Device& device, const Pages& pages, Random& random, std::size_t count, Latencies& into) {
  std::array<std::byte, kPage> content;
  for (std::size_t turn = 0; turn < count; ++turn) {
    const std::size_t written = random.below(pages.size());
    auto begin = std::chrono::steady_clock::now();
    into.writes.push_back(microseconds_of(device.write(written * kPage, pages[written]), begin));
    begin = std::chrono::steady_clock::now();
    into.reads.push_back(
        microseconds_of(device.read(random.below(pages.size()) * kPage, content), begin));
  }
}

void add(Latencies& sum, const Latencies& more) {
  sum.reads.insert(sum.reads.end(), more.reads.begin(), more.reads.end());
  sum.writes.insert(sum.writes.end(), more.writes.begin(), more.writes.end());
}

// Bytes of all the pages as objects.
double stored_bytes(Device& device, const Pages& pages) {
  if (device.discard(0, device.disksize_bytes()) != Errc::ok) {
    fail("the device cannot be discarded");
  }
  for (std::size_t at = 0; at < pages.size(); ++at) {
    if (device.write(at * kPage, pages[at]) != Errc::ok) {
      fail("a page cannot be written");
    }
  }
  return static_cast<double>(device.stats().compr_data_size);
}

void measure(const Settings& settings, const Pages& met, const Pages& others, std::uint64_t seed,
             Figures& figures) {
  constexpr std::size_t kBlock = 256;
  constexpr std::size_t kBaseline = 256;
  const std::size_t size = std::max(met.size(), others.size());
  Random random(seed);
  {
    const auto plain = make_device(settings, size, false);
    for (std::size_t block = 0; block < (settings.quick ? 4 : kBaseline); ++block) {
      load(*plain, met, random, kBlock, figures.latencies[without]);
    }
    figures.bytes_before += stored_bytes(*plain, others);
  }
  const auto trains = make_device(settings, size, true);
  const auto stats = [&] { return trains->impl().training->stats(); };
  while (stats().attempts == 0) {
    const bool learnt_before = stats().is_learning;
    Latencies block;
    load(*trains, met, random, kBlock, block);
    if (stats().is_learning == learnt_before) {
      add(figures.latencies[learnt_before ? learning : gathering], block);
    }
  }
  const Training::Stats result = stats();
  figures.cpu_ms += std::chrono::duration<double, std::milli>(result.cpu_time).count();
  figures.published += result.generations;
  figures.held_out_saving += result.saving.value_or(0);
  static_cast<void>(trains->set_training(false));
  figures.bytes_after += stored_bytes(*trains, others);
}

void print(const std::string& name, std::size_t pages, unsigned rounds, Figures& figures) {
  const double stored = static_cast<double>(pages) * rounds;
  std::printf("%-12s %6zu %7.0f %7.0f %6.2f%% %6.2f%% %4u/%u %7.0f", name.c_str(), pages,
              figures.bytes_before / stored, figures.bytes_after / stored,
              100 * (1 - figures.bytes_after / figures.bytes_before),
              100 * figures.held_out_saving / rounds, figures.published, rounds,
              figures.cpu_ms / rounds);
  for (Latencies& latencies : figures.latencies) {
    std::printf("  %6.1f %6.1f", p99(latencies.reads), p99(latencies.writes));
  }
  std::printf("\n");
  std::fflush(stdout);
}

// One word repeated takes no room.
bool is_same_filled(std::span<const std::byte> page) {
  return std::equal(page.begin() + sizeof(std::uint64_t), page.end(), page.begin());
}

int run(int argc, char** argv) {
  CLI::App app("What a device gains that trains its own tables", "train_device");
  Settings settings;
  app.add_option("--algorithm", settings.algorithm, "Compressor [pagez]");
  app.add_option("--level", settings.level, "Its level");
  app.add_option("--rounds", settings.rounds, "Devices for each corpus [3]")
      ->check(CLI::Range(1, 1000));
  app.add_flag("--quick", settings.quick, "Few samples: to see that it works, not for figures");
  CLI11_PARSE(app, argc, argv);
  settings.rounds = settings.quick ? 1 : settings.rounds;
  const auto corpora = uzram::test::load_corpora();
  if (!corpora) {
    fail(corpora.error().message);
  }
  std::printf(
      "bytes a page of pages not met; savings there and on held-out samples; rounds that "
      "published;\n"
      "CPU of an attempt; p99 of reads and writes in us: without training, gathering, learning\n"
      "%-12s %6s %7s %7s %7s %7s %6s %7s  %13s  %13s  %13s\n",
      "corpus", "pages", "before", "after", "saved", "held", "publ", "cpu ms", "without r,w",
      "gathering r,w", "learning r,w");
  for (const Corpus& corpus : *corpora) {
    Pages met;
    Pages others;
    for (const std::span<const std::byte> page : corpus.pages()) {
      if (!is_same_filled(page)) {
        (met.size() <= others.size() ? met : others).push_back(page);
      }
    }
    if (others.empty()) {
      continue;
    }
    Figures figures;
    for (unsigned round = 0; round < settings.rounds; ++round) {
      measure(settings, met, others, round, figures);
    }
    print(corpus.name, others.size(), settings.rounds, figures);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return uzram::tool::run_tool("train_device", [&] { return run(argc, argv); });
}
