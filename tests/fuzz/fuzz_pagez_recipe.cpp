// pagez: any bytes are refused as a recipe, or are one that every kernel codes pages with.
//
// Input: 8 bytes that choose page size, level and content of a page, then the recipe. Its checksum
// is set right, and its size, unless the lowest bit of byte 0 is set, so that there is something
// behind them to find.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "base/crc32c.hpp"
#include "base/random.hpp"
#include "codec/pagez/kernel.hpp"
#include "codec/pagez/recipe_bytes.hpp"
#include "fuzz/require.hpp"

namespace {

using uzram::Errc;
using uzram::Random;
using uzram::fuzz::require;
using namespace uzram::codec::pagez;

using Bytes = std::vector<std::byte>;

constexpr std::size_t kChoiceBytes = 8;
constexpr std::size_t kSizeAt = 8;
constexpr std::size_t kChecksumBytes = 4;

void put_number(Bytes& bytes, std::size_t at, std::uint32_t value) {
  for (std::size_t byte = 0; byte < 4; ++byte) {
    bytes[at + byte] = static_cast<std::byte>(value >> 8 * byte);
  }
}

void make_whole(Bytes& bytes) {
  if (bytes.size() >= kSizeAt + 4 + kChecksumBytes) {
    const std::size_t content = bytes.size() - kChecksumBytes;
    put_number(bytes, kSizeAt, static_cast<std::uint32_t>(bytes.size()));
    put_number(bytes, content, uzram::crc32c(std::span(bytes).first(content)));
  }
}

// Pieces of itself between bytes of a few kinds.
std::vector<std::uint8_t> made_up_page(std::size_t size, Random& random) {
  std::vector<std::uint8_t> page;
  while (page.size() < size) {
    const std::uint64_t length = 1 + random.below(random.below(8) == 0 ? 2000 : 40);
    const bool repeats = !page.empty() && random.below(2) == 0;
    const std::uint64_t mask = random.below(3) == 0 ? 0 : random.below(256);
    std::size_t from = repeats ? random.below(page.size()) : 0;
    for (std::uint64_t at = 0; at < length && page.size() < size; ++at) {
      page.push_back(repeats ? page[from++] : static_cast<std::uint8_t>(random.next() & mask));
    }
  }
  return page;
}

void check_pages(const Tables& tables, Level level, Random random) {
  const std::uint32_t page_bytes = 1U << tables.page_bits();
  EncodeRoom room(page_bytes);
  const DecodeRoomMemory decode_room = make_decode_room(tables.page_bits());
  const std::vector<std::uint8_t> page = made_up_page(page_bytes, random);
  std::vector<std::uint8_t> first;
  for (const Kernel* const kernel : kernels()) {
    if (!kernel->is_usable()) {
      continue;
    }
    const std::uint32_t size = kernel->compress(tables, 5, level, room, page.data(), page_bytes);
    std::vector<std::uint8_t> object(room.pack.object.begin(), room.pack.object.begin() + size);
    if (first.empty()) {
      first = object;
    }
    require(object == first, "all kernels make the same object");
    if (size != 0) {
      std::vector<std::uint8_t> back(page_bytes);
      require(kernel->decompress(tables, decode_room.get(), object.data(), size, back.data()) ==
                  Errc::ok,
              "what was made is accepted");
      require(back == page, "the page comes back unchanged");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(  // NOLINT(readability-identifier-naming)
    const std::uint8_t* input, std::size_t size) {
  if (size < kChoiceBytes) {
    return 0;
  }
  std::uint64_t choice = 0;
  std::memcpy(&choice, input, sizeof choice);
  const auto* const begin = reinterpret_cast<const std::byte*>(input);
  Bytes bytes(begin + kChoiceBytes, begin + size);
  if ((choice & 1) == 0) {
    make_whole(bytes);
  }
  // In memory of just its size.
  const std::unique_ptr<std::byte[]> exact(new std::byte[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), exact.get());
  const auto parsed = parse_recipe({exact.get(), bytes.size()});
  if (!parsed) {
    require(parsed.error().code == Errc::corrupt, "what is no recipe is corrupt");
    return 0;
  }
  require(check(*parsed).has_value(), "a parsed recipe is sound");
  const Bytes again = recipe_bytes(*parsed);
  require(again.size() <= bytes.size() && std::equal(again.begin(), again.end(), bytes.begin()),
          "a recipe has one form");
  constexpr unsigned kPageSizes = kMaxPageBits - kMinPageBits + 1;
  const auto page_bits = kMinPageBits + static_cast<unsigned>((choice >> 1) % kPageSizes);
  const auto tables = Tables::make(*parsed, page_bits);
  require(tables.has_value(), "a sound recipe makes tables");
  check_pages(**tables, static_cast<Level>(1 + (choice >> 8) % 3), Random(choice >> 16));
  return 0;
}
