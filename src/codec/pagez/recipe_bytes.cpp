#include "codec/pagez/recipe_bytes.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/crc32c.hpp"

namespace uzram::codec::pagez {
namespace {

constexpr std::array<std::uint8_t, 4> kMagic = {'p', 'g', 'z', 'r'};
constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kHeadBytes = 12;
constexpr std::size_t kSizeAt = 8;
constexpr std::size_t kChecksumBytes = 4;
constexpr std::size_t kWidthBytes = kTokenClasses / 2;
static_assert(kTokenClasses == kMaxLiteralClasses);
constexpr std::size_t kTokenCodeBytes = kWidthBytes + 2;
constexpr std::size_t kLiteralCodeBytes = 1 + kWidthBytes + 256;

using Widths = std::array<std::uint8_t, kTokenClasses>;

class Writer {
 public:
  explicit Writer(std::size_t size) { bytes_.reserve(size); }
  void number(std::uint32_t value, unsigned size) {
    for (; size != 0; --size, value >>= 8) {
      bytes_.push_back(static_cast<std::byte>(value));
    }
  }
  void widths(const Widths& widths) {
    for (std::size_t at = 0; at < widths.size(); at += 2) {
      number(static_cast<std::uint32_t>(widths[at] | widths[at + 1] << 4), 1);
    }
  }
  std::vector<std::byte>& bytes() noexcept { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// REQUIRES of all members: so much is left().
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}
  [[nodiscard]] std::size_t left() const noexcept { return bytes_.size(); }
  std::uint32_t number(unsigned size) noexcept {
    std::uint32_t value = 0;
    for (unsigned at = 0; at < size; ++at) {
      value |= std::to_integer<std::uint32_t>(bytes_[at]) << 8 * at;
    }
    bytes_ = bytes_.subspan(size);
    return value;
  }
  void widths(Widths& into) noexcept {
    for (std::size_t at = 0; at < into.size(); at += 2) {
      const std::uint32_t two = number(1);
      into[at] = two & 15;
      into[at + 1] = static_cast<std::uint8_t>(two >> 4);
    }
  }

 private:
  std::span<const std::byte> bytes_;
};

Error damaged(const std::string& what) {
  return {Errc::corrupt, 0, "recipe of pagez: " + what + "; pages that need it are lost"};
}

bool read_token_code(Reader& reader, TokenCode& code) {
  if (reader.left() < kTokenCodeBytes) {
    return false;
  }
  reader.widths(code.width);
  const std::uint32_t count = reader.number(2);
  if (reader.left() < count * sizeof(TokenId)) {
    return false;
  }
  code.symbols.reserve(count);
  for (std::uint32_t at = 0; at < count; ++at) {
    code.symbols.push_back(static_cast<TokenId>(reader.number(2)));
  }
  return true;
}

bool read_literal_code(Reader& reader, LiteralCode& code) {
  if (reader.left() < kLiteralCodeBytes) {
    return false;
  }
  code.class_bits = static_cast<std::uint8_t>(reader.number(1));
  reader.widths(code.width);
  for (std::uint8_t& symbol : code.symbols) {
    symbol = static_cast<std::uint8_t>(reader.number(1));
  }
  // One form only: classes that are not there are 0 wide. check() looks at the bits themselves.
  return code.class_bits > kMaxLiteralClassBits ||
         std::all_of(code.width.begin() + (1 << code.class_bits), code.width.end(),
                     [](std::uint8_t width) { return width == 0; });
}

}  // namespace

std::size_t recipe_size_bytes(std::size_t token_codes, std::size_t literal_codes,
                              std::size_t symbols) noexcept {
  return kHeadBytes + token_codes * (kTokenCodeBytes + symbols * sizeof(TokenId)) +
         literal_codes * kLiteralCodeBytes + kChecksumBytes;
}

std::vector<std::byte> recipe_bytes(const Recipe& recipe) {
  std::size_t size = recipe_size_bytes(recipe.tokens.size(), recipe.literals.size(), 0);
  for (const TokenCode& code : recipe.tokens) {
    size += code.symbols.size() * sizeof(TokenId);
  }
  Writer writer(size);
  for (const std::uint8_t byte : kMagic) {
    writer.number(byte, 1);
  }
  writer.number(kVersion, 1);
  writer.number(static_cast<std::uint32_t>(recipe.tokens.size()), 1);
  writer.number(static_cast<std::uint32_t>(recipe.literals.size()), 1);
  writer.number(0, 1);
  writer.number(static_cast<std::uint32_t>(size), 4);
  for (const TokenCode& code : recipe.tokens) {
    writer.widths(code.width);
    writer.number(static_cast<std::uint32_t>(code.symbols.size()), 2);
    for (const TokenId id : code.symbols) {
      writer.number(id, 2);
    }
  }
  for (const LiteralCode& code : recipe.literals) {
    writer.number(code.class_bits, 1);
    writer.widths(code.width);
    for (const std::uint8_t symbol : code.symbols) {
      writer.number(symbol, 1);
    }
  }
  writer.number(crc32c(writer.bytes()), 4);
  return std::move(writer.bytes());
}

Result<Recipe> parse_recipe(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeadBytes + kChecksumBytes ||
      std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    return damaged("it does not begin as one");
  }
  const std::size_t size = Reader(bytes.subspan(kSizeAt)).number(4);
  if (size < kHeadBytes + kChecksumBytes || size > bytes.size()) {
    return damaged("it says that it has " + std::to_string(size) + " bytes, of " +
                   std::to_string(bytes.size()) + " there are");
  }
  const std::span<const std::byte> content = bytes.first(size - kChecksumBytes);
  if (Reader(bytes.subspan(content.size())).number(4) != crc32c(content)) {
    return damaged("its checksum is not that of its bytes");
  }
  Reader reader(content.subspan(kMagic.size()));
  if (const std::uint32_t version = reader.number(1); version != kVersion) {
    return damaged("it is of version " + std::to_string(version) + ", expected 1");
  }
  Recipe recipe;
  recipe.tokens.resize(reader.number(1));
  recipe.literals.resize(reader.number(1));
  if (reader.number(1) != 0) {
    return damaged("a byte that is to be 0 is not");
  }
  reader.number(4);
  const bool whole =
      std::all_of(recipe.tokens.begin(), recipe.tokens.end(),
                  [&](TokenCode& code) { return read_token_code(reader, code); }) &&
      std::all_of(recipe.literals.begin(), recipe.literals.end(),
                  [&](LiteralCode& code) { return read_literal_code(reader, code); });
  if (!whole || reader.left() != 0) {
    return damaged("its codes do not fill it");
  }
  if (const Result<void> right = check(recipe); !right) {
    return damaged(right.error().message);
  }
  return recipe;
}

}  // namespace uzram::codec::pagez
