// compare_zram: this engine, in process, against a private device of the kernel's zram.
//
// Each corpus (UZRAM_CORPUS, or a made-up sample) is written a number of times over, one after the
// other, to both; then overwritten and read at random, 4 KiB at a time by one thread. The two take
// turns within each round, so that only ratios within a round count. A function call is not a
// system call: the engine is called, the kernel's device is reached by pread and pwrite with
// O_DIRECT.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <unistd.h>

#include "uzram/device.hpp"

#include "base/random.hpp"
#include "base/size.hpp"
#include "os/kernel_zram.hpp"
#include "support/corpus.hpp"

namespace {

using namespace uzram;

constexpr std::size_t kPage = 4096;

struct FreeAligned {
  void operator()(std::byte* bytes) const { std::free(bytes); }
};
using AlignedBytes = std::unique_ptr<std::byte, FreeAligned>;

AlignedBytes aligned_bytes(std::size_t size) {
  return AlignedBytes(static_cast<std::byte*>(std::aligned_alloc(kPage, size)));
}

struct Options {
  std::string algorithm = "lz4";
  unsigned rounds = 5;
  unsigned repeat = 32;
  bool kernel = true;
};

// One of the two sides: 4 KiB in, 4 KiB out.
struct Side {
  std::function<bool(std::uint64_t, std::byte*)> write;
  std::function<bool(std::uint64_t, std::byte*)> read;
};

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

[[noreturn]] void fail(const std::string& what) {
  fmt::print(stderr, "compare_zram: {}\n", what);
  std::exit(1);  // NOLINT(concurrency-mt-unsafe): one thread
}

enum Operation { kFill, kOverwrite, kRead, kRandomRead, kOperations };
constexpr const char* kNames[] = {"fill", "overwrite", "read", "randread"};

struct Times {
  std::vector<double> of[kOperations];
};

std::uint64_t resident_shared_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "RssShmem:") {
      std::uint64_t kib = 0;
      status >> kib;
      return kib * 1024;
    }
  }
  return 0;
}

class Comparison {
 public:
  Comparison(const test::Corpus& corpus, const Options& options)
      : options_(options),
        corpus_pages_(corpus.bytes.size() / kPage),
        pages_(corpus_pages_ * options.repeat),
        corpus_(aligned_bytes(corpus_pages_ * kPage)),
        buffer_(aligned_bytes(kPage)) {
    std::memcpy(corpus_.get(), corpus.bytes.data(), corpus_pages_ * kPage);
    order_.resize(pages_);
    Random random(1);
    for (std::size_t i = 0; i < pages_; ++i) {
      order_[i] = i;
      std::swap(order_[i], order_[random.below(i + 1)]);
    }
  }

  void run(const std::string& name) {
    for (unsigned round = 0; round < options_.rounds; ++round) {
      round_of_both(round);
    }
    report(name);
  }

 private:
  void round_of_both(unsigned round) {
    const std::uint64_t before = resident_shared_bytes();
    DeviceOptions device_options;
    device_options.disksize_bytes = pages_ * kPage;
    device_options.algorithm = options_.algorithm;
    auto device = Device::create(device_options);
    if (!device) {
      fail(device.error().message);
    }
    Device& ours = **device;
    const Side engine = {[&](std::uint64_t offset, std::byte* data) {
                           return ours.write(offset, {data, kPage}) == Errc::ok;
                         },
                         [&](std::uint64_t offset, std::byte* data) {
                           return ours.read(offset, {data, kPage}) == Errc::ok;
                         }};
    std::unique_ptr<os::KernelZram> zram;
    Side kernel;
    if (options_.kernel) {
      auto made = os::KernelZram::create(options_.algorithm, std::nullopt, pages_ * kPage);
      if (!made) {
        fail(made.error().message + " (--no-kernel leaves it out)");
      }
      zram = std::move(*made);
      const int fd = zram->fd();
      kernel = {[fd](std::uint64_t offset, std::byte* data) {
                  return ::pwrite(fd, data, kPage, static_cast<off_t>(offset)) == kPage;
                },
                [fd](std::uint64_t offset, std::byte* data) {
                  return ::pread(fd, data, kPage, static_cast<off_t>(offset)) == kPage;
                }};
    }
    for (int operation = kFill; operation < kOperations; ++operation) {
      if (operation == kOverwrite) {
        stats_of_fill_ = ours.stats();
        kernel_stats_ = zram != nullptr ? zram->mm_stat() : os::ZramMmStat{};
      }
      // Whoever goes first finds other caches; they take turns.
      for (int turn = 0; turn < 2; ++turn) {
        if ((turn + static_cast<int>(round)) % 2 == 0) {
          engine_times_.of[operation].push_back(time(engine, operation));
        } else if (zram != nullptr) {
          kernel_times_.of[operation].push_back(time(kernel, operation));
        }
      }
    }
    stats_of_overwrite_ = ours.stats();
    if (ours.discard(0, pages_ * kPage) != Errc::ok) {
      fail("discard failed");
    }
    left_bytes_ = resident_shared_bytes() - std::min(resident_shared_bytes(), before);
  }

  double time(const Side& side, int operation) {
    return seconds([&] {
      for (std::size_t i = 0; i < pages_; ++i) {
        bool good = false;
        switch (operation) {
          case kFill:
            good = side.write(i * kPage, corpus_.get() + i % corpus_pages_ * kPage);
            break;
          case kOverwrite:
            // Another page than the one that is there, in the order of the disk.
            good = side.write(i * kPage, corpus_.get() + (i + 1) % corpus_pages_ * kPage);
            break;
          case kRead:
            good = side.read(i * kPage, buffer_.get());
            break;
          default:
            good = side.read(order_[i] * kPage, buffer_.get());
        }
        if (!good) {
          fail(fmt::format("{} failed at page {}", kNames[operation], i));
        }
      }
    });
  }

  void report(const std::string& name) const {
    const double megabytes = static_cast<double>(pages_ * kPage) / 1e6;
    for (int operation = kFill; operation < kOperations; ++operation) {
      const auto& ours = engine_times_.of[operation];
      const auto& theirs = kernel_times_.of[operation];
      fmt::print("{:<10} {:<10} {:>9.0f} {:>8.2f}", name, kNames[operation],
                 megabytes / median(ours), median(ours) * 1e6 / static_cast<double>(pages_));
      if (!theirs.empty()) {
        std::vector<double> ratios;
        for (std::size_t i = 0; i < ours.size(); ++i) {
          ratios.push_back(theirs[i] / ours[i]);
        }
        fmt::print(" {:>9.0f} {:>7.2f} {:>6.2f}-{:.2f}", megabytes / median(theirs), median(ratios),
                   *std::min_element(ratios.begin(), ratios.end()),
                   *std::max_element(ratios.begin(), ratios.end()));
      }
      fmt::print("\n");
    }
    report_memory(name, "filled", stats_of_fill_);
    report_memory(name, "rewritten", stats_of_overwrite_);
    fmt::print("{:<10} discarded  {} of shared memory left\n", name, format_size(left_bytes_));
    if (kernel_stats_.compr_data_size != 0) {
      const auto compr = static_cast<double>(kernel_stats_.compr_data_size);
      fmt::print("{:<10} kernel     ratio {:.3f}, overhead {:.2f} % without its table\n", name,
                 static_cast<double>(kernel_stats_.orig_data_size) / compr,
                 100 * (static_cast<double>(kernel_stats_.mem_used_total) - compr) / compr);
    }
  }

  static void report_memory(const std::string& name, const char* state, const DeviceStats& stats) {
    const auto compr = static_cast<double>(stats.compr_data_size);
    const auto taken = static_cast<double>(stats.mem_used_total + stats.table_bytes);
    fmt::print(
        "{:<10} {:<10} ratio {:.3f}, overhead {:.2f} % (pool {}, table {}, compr {}); free maps "
        "{}\n",
        name, state, static_cast<double>(stats.orig_data_size) / compr,
        100 * (taken - compr) / compr, format_size(stats.mem_used_total),
        format_size(stats.table_bytes), format_size(stats.compr_data_size),
        format_size(stats.metadata_bytes));
  }

  const Options options_;
  const std::size_t corpus_pages_;
  const std::size_t pages_;
  AlignedBytes corpus_;
  AlignedBytes buffer_;
  std::vector<std::size_t> order_;
  Times engine_times_;
  Times kernel_times_;
  DeviceStats stats_of_fill_;
  DeviceStats stats_of_overwrite_;
  os::ZramMmStat kernel_stats_;
  std::uint64_t left_bytes_ = 0;
};

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): CLI11 and fmt throw only on errors of ours
int main(int argc, char** argv) {
  Options options;
  CLI::App app("compare_zram: the engine in process against a private kernel zram device");
  app.add_option("--algorithm", options.algorithm, "a compressor both have");
  app.add_option("--rounds", options.rounds, "interleaved rounds")->check(CLI::Range(1, 1000));
  app.add_option("--repeat", options.repeat, "times each corpus is written over")
      ->check(CLI::Range(1, 100000));
  app.add_flag("--no-kernel{false}", options.kernel, "only the engine");
  CLI11_PARSE(app, argc, argv);
  auto corpora = test::load_corpora();
  if (!corpora) {
    fail(corpora.error().message);
  }
  fmt::print("one thread, 4 KiB, {}, {} rounds; MB/s, us a page; ratio > 1: the engine is faster\n",
             options.algorithm, options.rounds);
  fmt::print("{:<10} {:<10} {:>9} {:>8} {:>9} {:>7} {:>11}\n", "corpus", "operation", "engine",
             "us/page", "kernel", "ratio", "min-max");
  for (const auto& corpus : *corpora) {
    Comparison(corpus, options).run(corpus.name);
  }
  return 0;
}
