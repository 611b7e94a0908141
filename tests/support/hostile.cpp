#include "support/hostile.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "base/random.hpp"

namespace uzram::test {
namespace {

using Bytes = std::vector<std::byte>;

Bytes random_page(std::size_t size, Random& random) {
  Bytes bytes(size);
  random.fill(bytes);
  return bytes;
}

// Random bytes in which every `gap` bytes a string of `length` comes again from `distance` before:
// a compressor finds matches that save next to nothing.
Bytes with_matches(std::size_t size, Random& random, std::size_t gap, std::size_t length,
                   std::size_t distance) {
  Bytes bytes = random_page(size, random);
  for (std::size_t at = distance; at + length <= size; at += gap) {
    std::memmove(bytes.data() + at, bytes.data() + at - distance, length);
  }
  return bytes;
}

// Runs of one byte whose lengths double, so that every length code is used.
Bytes growing_runs(std::size_t size, Random& random) {
  Bytes bytes(size);
  std::size_t at = 0;
  for (std::size_t run = 1; at<size; run = run * 2> size ? 1 : run * 2) {
    const std::size_t count = std::min(run, size - at);
    std::memset(bytes.data() + at, static_cast<int>(random.below(256)), count);
    at += count;
  }
  return bytes;
}

Bytes few_symbols(std::size_t size, Random& random, std::uint64_t symbols) {
  Bytes bytes(size);
  for (std::byte& byte : bytes) {
    byte = static_cast<std::byte>(random.below(symbols));
  }
  return bytes;
}

Bytes counters(std::size_t size) {
  Bytes bytes(size);
  for (std::uint32_t at = 0; at + sizeof at <= size; at += sizeof at) {
    std::memcpy(bytes.data() + at, &at, sizeof at);
  }
  return bytes;
}

}  // namespace

std::vector<HostilePage> hostile_pages(std::size_t page_size_bytes, std::uint64_t seed) {
  const std::size_t size = page_size_bytes;
  Random random(seed);
  std::vector<HostilePage> pages;
  pages.push_back({"zeroes", Bytes(size)});
  pages.push_back({"all ones", Bytes(size, std::byte{0xff})});
  for (const std::size_t at : {std::size_t{0}, size / 2, size - 1}) {
    Bytes bytes(size);
    bytes[at] = std::byte{0x10};
    pages.push_back({"single bit at " + std::to_string(at), std::move(bytes)});
  }
  pages.push_back({"random", random_page(size, random)});
  pages.push_back({"growing runs", growing_runs(size, random)});
  pages.push_back({"counters", counters(size)});
  for (const std::uint64_t symbols : {2U, 3U, 16U, 128U, 250U}) {
    pages.push_back({std::to_string(symbols) + " symbols", few_symbols(size, random, symbols)});
  }
  for (const std::size_t length : {std::size_t{3}, std::size_t{4}, std::size_t{5}}) {
    pages.push_back({"random with matches of " + std::to_string(length),
                     with_matches(size, random, 32, length, 256)});
    pages.push_back({"random with far matches of " + std::to_string(length),
                     with_matches(size, random, 16, length, size / 2 + 1)});
  }
  pages.push_back({"random twice", with_matches(size, random, size, size / 2, size / 2)});
  Bytes tail = random_page(size, random);
  std::fill(tail.end() - 64, tail.end(), std::byte{0});
  pages.push_back({"random with 64 zeroes at the end", std::move(tail)});
  Bytes head = random_page(size, random);
  std::fill_n(head.begin(), size / 2, std::byte{0x20});
  pages.push_back({"half a run, half random", std::move(head)});
  return pages;
}

}  // namespace uzram::test
