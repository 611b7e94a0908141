#include "support/corpus.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include <zstd.h>

#include "base/random.hpp"

namespace uzram::test {
namespace {

constexpr std::size_t kSamplePages = 48;
constexpr std::size_t kSampleBytes = kSamplePages * kCorpusPageSize;
constexpr std::size_t kMinPages = 16;

Error bad_file(const std::filesystem::path& path, std::string_view problem) {
  return {Errc::invalid_argument, 0, "corpus \"" + path.string() + "\": " + std::string(problem)};
}

Result<std::vector<std::byte>> read_file(const std::filesystem::path& path, std::size_t limit) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::byte> bytes;
  std::vector<char> piece(std::size_t{1} << 16);
  while (file && bytes.size() < limit) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    const auto got = std::as_bytes(std::span(piece)).first(static_cast<std::size_t>(file.gcount()));
    bytes.insert(bytes.end(), got.begin(), got.end());
  }
  if (bytes.empty()) {
    return bad_file(path, "expected a readable file that is not empty");
  }
  return bytes;
}

Result<std::vector<std::byte>> unpack(const std::filesystem::path& path,
                                      std::span<const std::byte> packed) {
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(),
                                                                     &ZSTD_freeDCtx);
  std::vector<std::byte> bytes;
  std::vector<std::byte> piece(ZSTD_DStreamOutSize());
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  std::size_t left = 1;
  while (left != 0) {
    ZSTD_outBuffer out{piece.data(), piece.size(), 0};
    left = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(left) != 0) {
      return bad_file(path, ZSTD_getErrorName(left));
    }
    if (left != 0 && out.pos == 0 && in.pos == in.size) {
      return bad_file(path, "ends early; copy the file again");
    }
    bytes.insert(bytes.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(out.pos));
  }
  return bytes;
}

Result<Corpus> load_file(const std::filesystem::path& path, bool packed) {
  Result<std::vector<std::byte>> bytes = read_file(path, SIZE_MAX);
  if (bytes && packed) {
    bytes = unpack(path, *bytes);
  }
  if (!bytes) {
    return bytes.error();
  }
  if (bytes->size() % kCorpusPageSize != 0 || bytes->size() < kMinPages * kCorpusPageSize) {
    return bad_file(path, "holds " + std::to_string(bytes->size()) +
                              " bytes, expected a multiple of 4096 and at least 65536");
  }
  std::string name = path.filename().string();
  name.resize(name.find(".pages"));
  return Corpus{std::move(name), *std::move(bytes)};
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
  Result<std::vector<std::byte>> code = read_file("/proc/self/exe", kSampleBytes);
  if (code && code->size() >= kSampleBytes) {
    code->resize(kSampleBytes);
    corpora.push_back({"sample-code", *std::move(code)});
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
  std::vector<Corpus> corpora;
  std::error_code problem;
  const std::filesystem::directory_iterator end;
  for (std::filesystem::directory_iterator entry(folder, problem); !problem && entry != end;
       entry.increment(problem)) {
    const bool packed = entry->path().extension() == ".zst";
    const std::filesystem::path stem = packed ? entry->path().stem() : entry->path();
    if (stem.extension() != ".pages") {
      continue;
    }
    Result<Corpus> corpus = load_file(entry->path(), packed);
    if (!corpus) {
      return corpus.error();
    }
    corpora.push_back(*std::move(corpus));
  }
  if (problem) {
    return system_error(std::string("UZRAM_CORPUS \"") + folder + "\"", problem.value());
  }
  if (corpora.empty()) {
    return Error{Errc::not_found, 0,
                 std::string("UZRAM_CORPUS \"") + folder +
                     "\": expected a folder with files named *.pages or *.pages.zst"};
  }
  std::sort(corpora.begin(), corpora.end(),
            [](const Corpus& a, const Corpus& b) { return a.name < b.name; });
  return corpora;
}

}  // namespace uzram::test
