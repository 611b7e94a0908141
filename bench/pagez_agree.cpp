// pagez_agree: whether all kernels of pagez, and the decoder made from its document, agree.
//
//   pagez_agree [--pages N] [--reference N] [--threads N] [--seed N] [--dump FILE] [PAGES...]
//
// Each page, of 4 KiB to 64 KiB, is made by lot of real pages (of PAGES, files or folders of
// NAME.pages, otherwise of a sample), of patches of them, of hostile pages and of random pieces. All
// kernels this processor can run must make the same object of it, and each must give the page back,
// at the levels in turn; so must the reference decoder for N of the pages. With each of those N, an
// object that is forged or damaged must be taken or refused by all alike. The first page that is
// not agreed upon is written to FILE and the program exits with 1.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/random.hpp"
#include "bench/corpus.hpp"
#include "codec/pagez/kernel.hpp"
#include "support/corpus.hpp"
#include "support/hostile.hpp"
#include "support/pagez_objects.hpp"
#include "support/pagez_reference.hpp"
#include "tool.hpp"

namespace {

using uzram::Errc;
using uzram::Random;
using uzram::codec::pagez::EncodeRoom;
using uzram::codec::pagez::Kernel;
using uzram::codec::pagez::Level;
using uzram::codec::pagez::Tables;
using uzram::tool::fail;
using Bytes = std::vector<std::uint8_t>;

constexpr unsigned kFirstBits = 12;
constexpr unsigned kLastBits = 16;
constexpr unsigned kSizes = kLastBits - kFirstBits + 1;

struct Options {
  std::uint64_t pages = 100000;
  std::uint64_t reference = 1000;
  unsigned threads = 1;
  std::uint64_t seed = 1;
  std::string dump = "pagez_agree.page";
  std::vector<std::string> files;
};

Bytes octets(std::span<const std::byte> bytes) {
  const auto* const from = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return {from, from + bytes.size()};
}

// What pages are made of: real bytes one after the other, each source by itself.
std::vector<Bytes> read_sources(const std::vector<std::string>& paths) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 28;
  std::vector<Bytes> sources;
  for (const std::string& path : paths) {
    const auto files = uzram::bench::find_page_files(path);
    if (!files) {
      fail(files.error().message);
    }
    for (const auto& file : *files) {
      const auto bytes = uzram::bench::read_page_file(file, kMostBytes);
      if (!bytes) {
        fail(bytes.error().message);
      }
      sources.push_back(octets(*bytes));
    }
  }
  if (sources.empty()) {
    for (const auto& corpus : uzram::test::sample_corpora()) {
      sources.push_back(octets(corpus.bytes));
    }
  }
  for (const Bytes& source : sources) {
    if (source.size() < std::size_t{1} << kLastBits) {
      fail("expected files of at least 16 pages");
    }
  }
  return sources;
}

// Pages by lot. Shared by all threads and not changed.
class PageMaker {
 public:
  explicit PageMaker(std::vector<Bytes> sources) : sources_(std::move(sources)) {
    for (unsigned bits = kFirstBits; bits <= kLastBits; ++bits) {
      for (const auto& page : uzram::test::hostile_pages(std::size_t{1} << bits, bits)) {
        hostile_.at(bits - kFirstBits).push_back(octets(page.bytes));
      }
    }
  }

  [[nodiscard]] Bytes make(Random& random, unsigned bits) const {
    const std::size_t size = std::size_t{1} << bits;
    switch (random.below(8)) {
      case 0:
        return patchwork(random, size);
      case 1:
        return woven(random, size);
      case 2:
        return touched(random, any(random, hostile_.at(bits - kFirstBits)));
      case 3:
        return touched(random, real(random, size));
      default:
        return real(random, size);
    }
  }

 private:
  template <typename Value>
  static const Value& any(Random& random, const std::vector<Value>& values) {
    return values[random.below(values.size())];
  }

  [[nodiscard]] Bytes real(Random& random, std::size_t size) const {
    const Bytes& source = any(random, sources_);
    const std::size_t begin = random.below((source.size() - size) / 4096 + 1) * 4096;
    const auto from = source.begin() + static_cast<std::ptrdiff_t>(begin);
    return {from, from + static_cast<std::ptrdiff_t>(size)};
  }

  // A few bytes of a page changed.
  static Bytes touched(Random& random, Bytes page) {
    for (std::uint64_t count = random.below(64); count != 0; --count) {
      page[random.below(page.size())] = static_cast<std::uint8_t>(random.below(256));
    }
    return page;
  }

  // Pieces of real pages, at any place.
  [[nodiscard]] Bytes patchwork(Random& random, std::size_t size) const {
    Bytes page;
    while (page.size() < size) {
      const Bytes& source = any(random, sources_);
      const std::size_t begin = random.below(source.size());
      const std::size_t length =
          std::min({random.below(300) + 1, source.size() - begin, size - page.size()});
      const auto from = source.begin() + static_cast<std::ptrdiff_t>(begin);
      page.insert(page.end(), from, from + static_cast<std::ptrdiff_t>(length));
    }
    return page;
  }

  // Runs, random bytes of few values and copies of what is there, of lengths of any magnitude.
  static Bytes woven(Random& random, std::size_t size) {
    Bytes page;
    while (page.size() < size) {
      const std::uint64_t length = std::min<std::uint64_t>(
          random.below(std::uint64_t{2} << random.below(11)) + 1, size - page.size());
      const std::uint64_t kind = page.empty() ? 0 : random.below(4);
      const std::uint64_t values = std::uint64_t{1} << random.below(9);
      const std::size_t offset = page.empty() ? 0 : random.below(page.size()) + 1;
      const auto run = static_cast<std::uint8_t>(random.below(2) * random.below(256));
      for (std::uint64_t at = 0; at < length; ++at) {
        page.push_back(kind == 0   ? static_cast<std::uint8_t>(random.below(values))
                       : kind == 1 ? run
                                   : page[page.size() - offset]);
      }
    }
    return page;
  }

  std::vector<Bytes> sources_;
  std::array<std::vector<Bytes>, kSizes> hostile_;
};

struct Counts {
  std::uint64_t pages = 0;
  std::uint64_t stored = 0;
  std::uint64_t referenced = 0;
  std::uint64_t odd_taken = 0;
  std::uint64_t odd_refused = 0;
};

// One thread's kernels and their working memory.
class Judge {
 public:
  Judge(const PageMaker& maker, std::uint64_t seed) : maker_(maker), random_(seed) {
    for (const Kernel* const kernel : uzram::codec::pagez::kernels()) {
      if (kernel->is_usable()) {
        kernels_.push_back(kernel);
      }
    }
    for (unsigned bits = kFirstBits; bits <= kLastBits; ++bits) {
      auto tables = Tables::builtin(bits);
      if (!tables) {
        fail(tables.error().message);
      }
      sizes_.at(bits - kFirstBits) = {*tables, std::make_unique<EncodeRoom>(1U << bits)};
    }
    decode_room_ = uzram::codec::pagez::make_decode_room(kLastBits);
  }

  // Page `number`. Returns what is wrong, or nothing; page() is then the page, or the object.
  std::string check(std::uint64_t number, bool with_reference) {
    // Small pages are what devices have.
    bits_ = random_.below(4) != 0 ? kFirstBits
                                  : kFirstBits + static_cast<unsigned>(random_.below(kSizes));
    page_ = maker_.make(random_, bits_);
    ++counts.pages;
    const auto level = static_cast<Level>(number % 3 + 1);
    const Bytes object = compressed(*kernels_[0], level);
    for (const Kernel* const kernel : kernels_) {
      if (compressed(*kernel, level) != object) {
        return std::string(kernel->name) + " makes another object than " +
               std::string(kernels_[0]->name) + " at level " + std::to_string(number % 3 + 1);
      }
    }
    counts.stored += object.empty() ? 1 : 0;
    if (!object.empty()) {
      if (std::string why = compare(object, page_, with_reference); !why.empty()) {
        return why + " at level " + std::to_string(number % 3 + 1);
      }
    }
    return with_reference ? check_odd_object(object) : std::string();
  }

  [[nodiscard]] const Bytes& page() const { return page_; }
  [[nodiscard]] unsigned bits() const { return bits_; }
  [[nodiscard]] std::string kernel_names() const {
    std::string names;
    for (const Kernel* const kernel : kernels_) {
      names += (names.empty() ? "" : ", ") + std::string(kernel->name);
    }
    return names;
  }

  Counts counts;

 private:
  struct Size {
    std::shared_ptr<const Tables> tables;
    std::unique_ptr<EncodeRoom> room;
  };

  // Empty when the page is incompressible.
  [[nodiscard]] Bytes compressed(const Kernel& kernel, Level level) {
    const Size& size = sizes_.at(bits_ - kFirstBits);
    const std::uint32_t bytes =
        kernel.compress(*size.tables, 0, level, *size.room, page_.data(), 1U << bits_);
    const auto begin = size.room->pack.object.begin();
    return {begin, begin + bytes};
  }

  // Empty when it is corrupt. The object lies in memory of just its size.
  [[nodiscard]] Bytes decompressed(const Kernel& kernel, const Bytes& object) {
    const std::unique_ptr<std::uint8_t[]> exact(new std::uint8_t[object.size()]);
    std::copy(object.begin(), object.end(), exact.get());
    Bytes page(std::size_t{1} << bits_);
    const Errc status =
        kernel.decompress(*sizes_.at(bits_ - kFirstBits).tables, decode_room_.get(), exact.get(),
                          static_cast<std::uint32_t>(object.size()), page.data());
    return status == Errc::ok ? page : Bytes();
  }

  // `expected` empty: to be refused.
  std::string compare(const Bytes& object, const Bytes& expected, bool with_reference) {
    for (const Kernel* const kernel : kernels_) {
      if (decompressed(*kernel, object) != expected) {
        return std::string(kernel->name) + " decodes differently";
      }
    }
    if (with_reference) {
      const auto decoded = uzram::test::decode_pagez(object, bits_);
      ++counts.referenced;
      if (!decoded.corrupt.empty() || decoded.page != expected) {
        return "the reference decodes differently (" + decoded.corrupt + ")";
      }
    }
    return {};
  }

  // Kernels are given only what the codec lets through: tokens, tables of the program, and less
  // than a page.
  std::string check_odd_object(const Bytes& object) {
    Bytes odd = object.empty() || random_.below(2) == 0
                    ? uzram::test::forged_pagez_object(random_, bits_)
                    : object;
    if (random_.below(2) == 0) {
      odd = uzram::test::damaged_pagez_object(random_, odd);
    }
    const auto decoded = uzram::test::decode_pagez(odd, bits_);
    if (odd.size() <= decoded.header.bytes || odd.size() >= std::size_t{1} << bits_ ||
        decoded.header.tokens == 0 || decoded.header.generation != 0) {
      return {};
    }
    const bool is_sound = decoded.corrupt.empty();
    ++(is_sound ? counts.odd_taken : counts.odd_refused);
    std::string why = compare(odd, is_sound ? decoded.page : Bytes(), false);
    if (!why.empty()) {
      page_ = std::move(odd);
      why += " from the reference, an object that no encoder made";
    }
    return why;
  }

  const PageMaker& maker_;
  Random random_;
  std::vector<const Kernel*> kernels_;
  std::array<Size, kSizes> sizes_;
  uzram::codec::pagez::DecodeRoomMemory decode_room_;
  unsigned bits_ = kFirstBits;
  Bytes page_;
};

class Run {
 public:
  Run(const Options& options, const PageMaker& maker) : options_(options), maker_(maker) {}

  // Whether all agreed.
  bool go() {
    std::vector<std::jthread> threads;
    for (unsigned at = 0; at < options_.threads; ++at) {
      threads.emplace_back([this, at] { work(at); });
    }
    threads.clear();
    std::printf(
        "%llu pages agreed upon by %s: %llu incompressible; %llu objects by the reference; "
        "of odd objects %llu taken, %llu refused\n",
        as_printed(sum_.pages), names_.c_str(), as_printed(sum_.stored),
        as_printed(sum_.referenced), as_printed(sum_.odd_taken), as_printed(sum_.odd_refused));
    return !has_failed_;
  }

 private:
  static unsigned long long as_printed(std::uint64_t number) { return number; }

  void work(unsigned thread) {
    Judge judge(maker_, options_.seed * 1000003 + thread);
    const std::uint64_t step =
        options_.reference == 0 ? 0
                                : std::max<std::uint64_t>(options_.pages / options_.reference, 1);
    for (std::uint64_t number = thread; number < options_.pages && !has_failed_;
         number += options_.threads) {
      // One of each `step`, and in turn the first, the second …, so that all levels have their share.
      const std::uint64_t turn = number / options_.threads;
      const bool with_reference = step != 0 && turn % step == turn / step % step;
      if (const std::string why = judge.check(number, with_reference); !why.empty()) {
        report(why, judge);
      }
    }
    const std::scoped_lock lock(mutex_);
    names_ = judge.kernel_names();
    sum_.pages += judge.counts.pages;
    sum_.stored += judge.counts.stored;
    sum_.referenced += judge.counts.referenced;
    sum_.odd_taken += judge.counts.odd_taken;
    sum_.odd_refused += judge.counts.odd_refused;
  }

  void report(const std::string& why, const Judge& judge) {
    if (has_failed_.exchange(true)) {
      return;
    }
    std::ofstream out(options_.dump, std::ios::binary);
    out.write(reinterpret_cast<const char*>(judge.page().data()),
              static_cast<std::streamsize>(judge.page().size()));
    std::fprintf(stderr, "pagez_agree: pages of %u bytes: %s; see \"%s\"\n", 1U << judge.bits(),
                 why.c_str(), options_.dump.c_str());
  }

  const Options& options_;
  const PageMaker& maker_;
  std::atomic<bool> has_failed_ = false;
  std::mutex mutex_;
  Counts sum_;
  std::string names_;
};

int run(int argc, char** argv) {
  CLI::App app("Whether all encoders and decoders of pagez agree", "pagez_agree");
  Options options;
  app.add_option("--pages", options.pages, "Pages to try")->capture_default_str();
  app.add_option("--reference", options.reference,
                 "Pages of them that the reference decodes too, and odd objects")
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Threads")
      ->check(CLI::Range(1U, 1024U))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of all that is made by lot")->capture_default_str();
  app.add_option("--dump", options.dump, "File for a page, or object, not agreed upon")
      ->capture_default_str();
  app.add_option("PAGES", options.files, "NAME.pages files, or folders of them; default a sample");
  CLI11_PARSE(app, argc, argv);
  const PageMaker maker(read_sources(options.files));
  return Run(options, maker).go() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return uzram::tool::run_tool("pagez_agree", [&] { return run(argc, argv); });
}
