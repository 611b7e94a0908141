#include "support/corpus.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>

#include "base/random.hpp"
#include "bench/corpus.hpp"

namespace uzram::test {
namespace {

constexpr std::size_t kSamplePages = 48;
constexpr std::size_t kSampleBytes = kSamplePages * kCorpusPageSize;
constexpr std::size_t kMinPages = 16;

// The start of a file; less when it is shorter or cannot be read.
std::vector<std::byte> read_start(const char* path, std::size_t size) {
  std::vector<std::byte> bytes(size);
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

std::vector<std::byte> sample_text(Random& random) {
  constexpr std::array<std::string_view, 24> kWords = {
      "page ",  "the ",   "device ", "of ",     "memory ", "and ",    "a ",      "return ",
      "in ",    "to ",    "static ", "object ", "is ",     "stream ", "const ",  "while ",
      "error ", "write ", "read ",   "that ",   "\n\n",    "kernel ", "buffer ", "0x7f "};
  std::vector<std::byte> bytes;
  bytes.reserve(kSampleBytes + 16);
  while (bytes.size() < kSampleBytes) {
    // The smaller of two draws: early words are the frequent ones.
    const std::string_view word =
        kWords.at(std::min(random.below(kWords.size()), random.below(kWords.size())));
    const auto view = std::as_bytes(std::span(word));
    bytes.insert(bytes.end(), view.begin(), view.end());
  }
  bytes.resize(kSampleBytes);
  return bytes;
}

// Heap-like pages: addresses close to each other, lengths and null pointers.
std::vector<std::byte> sample_pointers(Random& random) {
  std::vector<std::byte> bytes(kSampleBytes);
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t kind = random.below(4);
    const std::uint64_t word = kind == 0   ? 0
                               : kind == 1 ? random.below(512)
                                           : 0x00007f5a10000000U + random.below(1U << 20) * 16;
    std::memcpy(bytes.data() + at, &word, sizeof word);
  }
  return bytes;
}

// Arrays of records whose fields change slowly.
std::vector<std::byte> sample_records(Random& random) {
  struct Record {
    std::uint32_t id;
    std::uint32_t flags;
    double value;
    std::array<char, 16> label;
  };
  std::vector<std::byte> bytes(kSampleBytes);
  Record record{1, 0x80, 0.0, {"record"}};
  for (std::size_t at = 0; at + sizeof record <= bytes.size(); at += sizeof record) {
    record.id += 1;
    record.flags ^= static_cast<std::uint32_t>(random.below(2));
    record.value += static_cast<double>(random.below(100)) / 8;
    std::memcpy(bytes.data() + at, &record, sizeof record);
  }
  return bytes;
}

// Zeroes with a few bytes set; every fourth page is same-filled.
std::vector<std::byte> sample_sparse(Random& random) {
  std::vector<std::byte> bytes(kSampleBytes);
  for (std::size_t page = 0; page < kSamplePages; ++page) {
    if (page % 4 == 0) {
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(page * kCorpusPageSize),
                  kCorpusPageSize, static_cast<std::byte>(page * 5));
      continue;
    }
    for (std::uint64_t count = random.below(40); count != 0; --count) {
      bytes.at(page * kCorpusPageSize + random.below(kCorpusPageSize)) = random.byte();
    }
  }
  return bytes;
}

Error named(Error error) {
  error.message = "UZRAM_CORPUS: " + error.message;
  return error;
}

}  // namespace

std::vector<std::span<const std::byte>> Corpus::pages(std::size_t page_size_bytes) const {
  std::vector<std::span<const std::byte>> views;
  views.reserve(bytes.size() / page_size_bytes);
  for (std::size_t at = 0; at + page_size_bytes <= bytes.size(); at += page_size_bytes) {
    views.push_back(std::span(bytes).subspan(at, page_size_bytes));
  }
  return views;
}

std::vector<Corpus> sample_corpora() {
  Random random(20240229);
  std::vector<Corpus> corpora;
  if (auto code = read_start("/proc/self/exe", kSampleBytes); code.size() == kSampleBytes) {
    corpora.push_back({"sample-code", std::move(code)});
  }
  corpora.push_back({"sample-pointers", sample_pointers(random)});
  std::vector<std::byte> noise(kSampleBytes);
  random.fill(noise);
  corpora.push_back({"sample-random", std::move(noise)});
  corpora.push_back({"sample-records", sample_records(random)});
  corpora.push_back({"sample-sparse", sample_sparse(random)});
  corpora.push_back({"sample-text", sample_text(random)});
  return corpora;
}

Result<std::vector<Corpus>> load_corpora() {
  const char* const folder = std::getenv("UZRAM_CORPUS");  // NOLINT(concurrency-mt-unsafe)
  if (folder == nullptr || *folder == '\0') {
    return sample_corpora();
  }
  const auto files = bench::find_page_files(folder);
  if (!files) {
    return named(files.error());
  }
  std::vector<Corpus> corpora;
  for (const bench::PageFile& file : *files) {
    auto bytes = bench::read_page_file(file, bench::readable_bytes());
    if (!bytes) {
      return named(bytes.error());
    }
    if (bytes->size() < kMinPages * kCorpusPageSize) {
      return named({Errc::invalid_argument, 0,
                    "corpus \"" + file.path + "\": expected at least 16 pages for tests"});
    }
    corpora.push_back({file.name, *std::move(bytes)});
  }
  return corpora;
}

}  // namespace uzram::test
