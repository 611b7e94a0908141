// Corpora: pages of real programs (or a made-up sample) for tests and benchmarks.
//
// Role: input of everything that compresses. The environment variable UZRAM_CORPUS names a folder
// of page files, or one (bench/corpus.hpp). When it is unset or empty, sample_corpora() is used
// instead.
// Errors: load_corpora says which file or folder is at fault.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "uzram/error.hpp"

namespace uzram::test {

inline constexpr std::size_t kCorpusPageSize = 4096;

struct Corpus {
  std::string name;
  // A whole number of 4096-byte pages, at least 16 of them.
  std::vector<std::byte> bytes;

  // Views of `bytes`, cut into pages; an incomplete page at the end is left out. They stay valid as
  // long as `bytes` is neither changed nor destroyed.
  [[nodiscard]] std::vector<std::span<const std::byte>> pages(
      std::size_t page_size_bytes = kCorpusPageSize) const;
};

// Sorted by name, at least one. Errors: those of bench/corpus.hpp.
[[nodiscard]] Result<std::vector<Corpus>> load_corpora();

// About 1 MiB, each kind a corpus: text, pointers, records, random bytes, sparse pages, and code
// (the start of the running program's file). All but the code are the same at every run.
[[nodiscard]] std::vector<Corpus> sample_corpora();

}  // namespace uzram::test
