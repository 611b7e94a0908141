// Synthetic data: buffers as fio 3 makes them.
//
// Role: the content of --buffer-… options, as a bank of pages.
// Like fio: a pattern begins at the first byte of the bank, as it does in a block, and goes on to
// the end; its first byte is the first one written. Compressible data are chunks whose first part
// is random and whose rest is zero, or the pattern begun anew; random bytes of different chunks
// differ. The random bytes themselves are not fio's: they are seeded and the same at every run.
// Bank: as many pages as the pattern needs to meet a page's end, so that it goes on when the bank
// begins anew (one page when its length divides 4096, five for five bytes); 4096 pages, or a few
// more, where there is something random.
// Errors: name the text, what is expected and where.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "uzram/error.hpp"

#include "bench/data.hpp"

namespace uzram::bench {

// As in fio.
inline constexpr std::size_t kLongestPattern = 512;
inline constexpr std::uint32_t kDefaultChunk = 512;
inline constexpr std::uint32_t kLongestChunk = 1U << 20;

// fio's syntax: any sequence of hexadecimal bytes "0x…" (of an odd number of digits, the first
// stands alone), texts "\"…\"", and decimal numbers of 32 bits, least byte first, without leading
// zero bytes. Errors: invalid_argument.
[[nodiscard]] Result<std::vector<std::byte>> parse_pattern(std::string_view text);

struct Synthetic {
  // As given and as bytes; empty: none.
  std::string pattern_text;
  std::vector<std::byte> pattern;
  // Of each chunk, that part is the rest. Without it, all is pattern, or random without a pattern.
  std::optional<std::uint32_t> compress_percentage;
  // 1 to 4096: chunks begin anew in each page, as in fio's blocks of 4 KiB. Above: a multiple of
  // 4096 up to kLongestChunk.
  std::uint32_t compress_chunk = kDefaultChunk;
  // That many of 100 pages, evenly spread, each repeat one 8-byte word, every page another.
  std::uint32_t same_percentage = 0;
};

// "pattern-0xbadc0ffee+compress-50-chunk-4096+same-20"; "random".
[[nodiscard]] std::string name_of(const Synthetic& what);

// Whole pages.
[[nodiscard]] std::vector<std::byte> make_bank(const Synthetic& what);

[[nodiscard]] Result<std::shared_ptr<const DataSet>> make_synthetic(const Synthetic& what);

}  // namespace uzram::bench
