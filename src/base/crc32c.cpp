#include "base/crc32c.hpp"

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

namespace uzram {
namespace {

// Reflected.
constexpr std::uint32_t kPolynomial = 0x82f63b78;

using ByteTable = std::array<std::uint32_t, 256>;

// [n][b]: the sum of byte b followed by n zero bytes.
constexpr std::array<ByteTable, 8> make_slices() {
  std::array<ByteTable, 8> slices{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) {
      sum = (sum >> 1) ^ ((sum & 1) != 0 ? kPolynomial : 0);
    }
    slices[0][byte] = sum;
  }
  for (std::size_t slice = 1; slice < slices.size(); ++slice) {
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t sum = slices[slice - 1][byte];
      slices[slice][byte] = (sum >> 8) ^ slices[0][sum & 0xff];
    }
  }
  return slices;
}

constexpr std::array<ByteTable, 8> kSlices = make_slices();

std::uint32_t add_byte(std::uint32_t sum, std::byte byte) noexcept {
  return (sum >> 8) ^ kSlices[0][(sum ^ std::to_integer<std::uint32_t>(byte)) & 0xff];
}

std::uint64_t load_word(const std::byte* at) noexcept {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

#if defined(__x86_64__) || (defined(__aarch64__) && defined(__ARM_FEATURE_CRC32))

// Three streams and a rest of 16 bytes make a page: the instruction takes three cycles, but one can
// begin in each.
constexpr std::size_t kStream = 1360;
static_assert(kStream % sizeof(std::uint64_t) == 0);

// [k][b]: what byte k of a sum, when it is b, adds to the sum after kStream zero bytes.
constexpr std::array<ByteTable, 4> make_shift() {
  std::array<std::uint32_t, 32> of_bit{};
  for (std::uint32_t bit = 0; bit < 32; ++bit) {
    std::uint32_t sum = std::uint32_t{1} << bit;
    for (std::size_t count = 0; count < kStream; ++count) {
      sum = (sum >> 8) ^ kSlices[0][sum & 0xff];
    }
    of_bit[bit] = sum;
  }
  std::array<ByteTable, 4> shift{};
  for (std::uint32_t place = 0; place < 4; ++place) {
    for (std::uint32_t byte = 1; byte < 256; ++byte) {
      const auto lowest = static_cast<std::uint32_t>(std::countr_zero(byte));
      shift[place][byte] = shift[place][byte & (byte - 1)] ^ of_bit[place * 8 + lowest];
    }
  }
  return shift;
}

constexpr std::array<ByteTable, 4> kShift = make_shift();

std::uint32_t after_stream(std::uint32_t sum) noexcept {
  return kShift[0][sum & 0xff] ^ kShift[1][(sum >> 8) & 0xff] ^ kShift[2][(sum >> 16) & 0xff] ^
         kShift[3][sum >> 24];
}

#if defined(__x86_64__)
bool has_instruction() noexcept { return __builtin_cpu_supports("sse4.2") != 0; }

[[gnu::target("sse4.2")]] inline std::uint32_t add_word(std::uint32_t sum,
                                                        std::uint64_t word) noexcept {
  return static_cast<std::uint32_t>(_mm_crc32_u64(sum, word));
}
#else
bool has_instruction() noexcept { return true; }

inline std::uint32_t add_word(std::uint32_t sum, std::uint64_t word) noexcept {
  return __crc32cd(sum, word);
}
#endif

#if defined(__x86_64__)
[[gnu::target("sse4.2")]]
#endif
std::uint32_t
crc32c_by_instruction(std::span<const std::byte> bytes) noexcept {
  std::uint32_t sum = ~std::uint32_t{0};
  while (bytes.size() >= 3 * kStream) {
    std::uint32_t second = 0;
    std::uint32_t third = 0;
    for (std::size_t at = 0; at < kStream; at += sizeof(std::uint64_t)) {
      sum = add_word(sum, load_word(bytes.data() + at));
      second = add_word(second, load_word(bytes.data() + kStream + at));
      third = add_word(third, load_word(bytes.data() + 2 * kStream + at));
    }
    sum = after_stream(after_stream(sum) ^ second) ^ third;
    bytes = bytes.subspan(3 * kStream);
  }
  for (; bytes.size() >= sizeof(std::uint64_t); bytes = bytes.subspan(sizeof(std::uint64_t))) {
    sum = add_word(sum, load_word(bytes.data()));
  }
  for (const std::byte byte : bytes) {
    sum = add_byte(sum, byte);
  }
  return ~sum;
}

#else

bool has_instruction() noexcept { return false; }

std::uint32_t crc32c_by_instruction(std::span<const std::byte> bytes) noexcept {
  return crc32c_by_table(bytes);
}

#endif

}  // namespace

std::uint32_t crc32c_by_table(std::span<const std::byte> bytes) noexcept {
  std::uint32_t sum = ~std::uint32_t{0};
  for (; bytes.size() >= sizeof(std::uint64_t); bytes = bytes.subspan(sizeof(std::uint64_t))) {
    const std::uint64_t word = load_word(bytes.data()) ^ sum;
    sum = 0;
    for (std::uint32_t place = 0; place < 8; ++place) {
      sum ^= kSlices[7 - place][(word >> (8 * place)) & 0xff];
    }
  }
  for (const std::byte byte : bytes) {
    sum = add_byte(sum, byte);
  }
  return ~sum;
}

std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept {
  static const bool by_instruction = has_instruction();
  return by_instruction ? crc32c_by_instruction(bytes) : crc32c_by_table(bytes);
}

}  // namespace uzram
