#include "base/crc32c.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
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

// Three streams at once: the instruction takes three cycles, but one can begin in each. Their sums are
// brought together by what the first two would be after the bytes that follow them.

#if defined(__x86_64__)

constexpr std::size_t kWord = sizeof(std::uint64_t);
// Enough for a page in one go, but for its last 16 bytes.
constexpr std::size_t kLongestStream = 170;

// [n]: x^(64 n - 33) modulo the polynomial, reflected. The carry-less product of a sum and that, taken
// as a word into the sum of nothing, is the sum after n words of zeroes: the instruction multiplies by
// x^32, and the product of two reflected words of 32 bits lacks a factor of x.
constexpr std::array<std::uint32_t, 2 * kLongestStream + 1> make_powers() {
  std::array<std::uint32_t, 2 * kLongestStream + 1> powers{};
  std::uint32_t power = 1;  // x^31
  for (std::size_t words = 1; words < powers.size(); ++words) {
    powers[words] = power;
    for (int bit = 0; bit < 64; ++bit) {
      power = (power >> 1) ^ ((power & 1) != 0 ? kPolynomial : 0);
    }
  }
  return powers;
}

constexpr std::array<std::uint32_t, 2 * kLongestStream + 1> kPowers = make_powers();

bool has_instruction() noexcept {
  return __builtin_cpu_supports("sse4.2") != 0 && __builtin_cpu_supports("pclmul") != 0;
}

[[gnu::target("sse4.2,pclmul")]] std::uint64_t product(std::uint32_t sum,
                                                       std::uint32_t power) noexcept {
  return static_cast<std::uint64_t>(_mm_cvtsi128_si64(
      _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<std::int64_t>(sum)),
                           _mm_cvtsi64_si128(static_cast<std::int64_t>(power)), 0)));
}

[[gnu::target("sse4.2,pclmul")]] std::uint32_t crc32c_by_instruction(
    std::span<const std::byte> bytes) noexcept {
  std::uint64_t sum = ~std::uint32_t{0};
  while (bytes.size() >= 3 * kWord) {
    const std::size_t words = std::min(bytes.size() / (3 * kWord), kLongestStream);
    const std::byte* const first = bytes.data();
    const std::byte* const second = first + words * kWord;
    const std::byte* const third = second + words * kWord;
    std::uint64_t second_sum = 0;
    std::uint64_t third_sum = 0;
    for (std::size_t at = 0; at < words * kWord; at += kWord) {
      sum = _mm_crc32_u64(sum, load_word(first + at));
      second_sum = _mm_crc32_u64(second_sum, load_word(second + at));
      third_sum = _mm_crc32_u64(third_sum, load_word(third + at));
    }
    const std::uint64_t before = product(static_cast<std::uint32_t>(sum), kPowers[2 * words]) ^
                                 product(static_cast<std::uint32_t>(second_sum), kPowers[words]);
    sum = _mm_crc32_u64(0, before) ^ third_sum;
    bytes = bytes.subspan(3 * words * kWord);
  }
  for (; bytes.size() >= kWord; bytes = bytes.subspan(kWord)) {
    sum = _mm_crc32_u64(sum, load_word(bytes.data()));
  }
  for (const std::byte byte : bytes) {
    sum = _mm_crc32_u8(static_cast<std::uint32_t>(sum), std::to_integer<std::uint8_t>(byte));
  }
  return ~static_cast<std::uint32_t>(sum);
}

#elif defined(__aarch64__)

// With a rest of 16 bytes they make a page. What is shorter is summed by one stream: carry-less products
// are an extension of their own here, and a table for each length would be too large.
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

bool has_instruction() noexcept { return (::getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }

// The intrinsics are there only when the whole file is compiled for CPUs that have it.
inline std::uint32_t add_word(std::uint32_t sum, std::uint64_t word) noexcept {
  asm(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(sum) : "r"(word));
  return sum;
}

std::uint32_t crc32c_by_instruction(std::span<const std::byte> bytes) noexcept {
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
