#include "bench/synthetic.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>

#include "base/random.hpp"
#include "base/size.hpp"

namespace uzram::bench {
namespace {

constexpr std::uint64_t kSeed = 20240301;
constexpr std::size_t kRandomPages = 4096;
constexpr std::size_t kLongestName = 40;

using Bytes = std::vector<std::byte>;

Error bad_pattern(std::string_view text, std::string_view problem) {
  return {Errc::invalid_argument, 0,
          "pattern \"" + std::string(text) + "\": " + std::string(problem)};
}

int digit_of(char letter) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const char lower =
      letter >= 'A' && letter <= 'F' ? static_cast<char>(letter - 'A' + 'a') : letter;
  const std::size_t at = kDigits.find(lower);
  return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

bool begins_hex(std::string_view text) {
  return text.size() >= 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
}

// Takes the pieces of a pattern off the front of its text, and adds their bytes.
class PatternParser {
 public:
  explicit PatternParser(std::string_view text) : left_(text) {}

  // What is wrong, for people; empty at the end of a good pattern.
  std::string_view parse() {
    std::string_view problem;
    while (problem.empty() && !left_.empty() && bytes_.size() <= kLongestPattern) {
      problem = left_.front() == '"' ? take_text()
                : begins_hex(left_)  ? take_hex()
                                     : take_decimal();
    }
    if (problem.empty() && bytes_.empty()) {
      return "empty, expected 0xHEX, \"TEXT\" in double quotes or a decimal number";
    }
    if (problem.empty() && bytes_.size() > kLongestPattern) {
      return "expected at most 512 bytes";
    }
    return problem;
  }
  [[nodiscard]] Bytes take() { return std::move(bytes_); }

 private:
  std::string_view take_text() {
    const std::size_t end = left_.find('"', 1);
    if (end == std::string_view::npos || end == 1) {
      return "expected a text and a double quote at its end";
    }
    for (const char letter : left_.substr(1, end - 1)) {
      bytes_.push_back(static_cast<std::byte>(letter));
    }
    left_.remove_prefix(end + 1);
    return "";
  }
  std::string_view take_hex() {
    left_.remove_prefix(2);
    std::size_t count = 0;
    // A 0 before an x begins the next number.
    while (count < left_.size() && digit_of(left_[count]) >= 0 &&
           !begins_hex(left_.substr(count))) {
      ++count;
    }
    if (count == 0) {
      return "expected hexadecimal digits after 0x";
    }
    for (std::size_t at = 0; at < count;) {
      int value = digit_of(left_[at]);
      if (++at % 2 == count % 2) {
        bytes_.push_back(static_cast<std::byte>(value));
        continue;
      }
      value = value * 16 + digit_of(left_[at++]);
      bytes_.push_back(static_cast<std::byte>(value));
    }
    left_.remove_prefix(count);
    return "";
  }
  std::string_view take_decimal() {
    std::size_t count = left_.front() == '-' ? 1 : 0;
    while (count < left_.size() && left_[count] >= '0' && left_[count] <= '9' &&
           !begins_hex(left_.substr(count))) {
      ++count;
    }
    std::int32_t value = 0;
    const auto [end, problem] = std::from_chars(left_.data(), left_.data() + count, value);
    if (problem != std::errc() || end != left_.data() + count) {
      return "expected 0xHEX, \"TEXT\" in double quotes or a decimal number of 32 bits";
    }
    auto rest = static_cast<std::uint32_t>(value);
    do {
      bytes_.push_back(static_cast<std::byte>(rest & 0xff));
      rest >>= 8;
    } while (rest != 0);
    left_.remove_prefix(count);
    return "";
  }

  std::string_view left_;
  Bytes bytes_;
};

// Repeats the pattern over `into`; zeroes without one.
void fill_with_pattern(const Bytes& pattern, std::span<std::byte> into) {
  if (pattern.empty()) {
    std::fill(into.begin(), into.end(), std::byte{0});
    return;
  }
  for (std::size_t at = 0; at < into.size(); at += pattern.size()) {
    std::copy_n(pattern.begin(), std::min(pattern.size(), into.size() - at),
                into.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

bool is_random(const Synthetic& what) {
  return what.compress_percentage.value_or(what.pattern.empty() ? 0 : 100) < 100;
}

// One block as fio fills it: what is left at its end is a shorter chunk.
void fill_with_chunks(const Synthetic& what, Random& random, std::span<std::byte> block) {
  while (!block.empty()) {
    const std::size_t chunk = std::min<std::size_t>(what.compress_chunk, block.size());
    const std::size_t noise = chunk * (100 - what.compress_percentage.value_or(0)) / 100;
    random.fill(block.first(noise));
    fill_with_pattern(what.pattern, block.subspan(noise, chunk - noise));
    block = block.subspan(chunk);
  }
}

void fill_same(Random& random, std::span<std::byte> page) {
  const std::uint64_t word = random.next();
  for (std::size_t at = 0; at < page.size(); at += sizeof word) {
    std::memcpy(page.data() + at, &word, sizeof word);
  }
}

// Bytes after which the content may begin anew.
std::size_t period_of(const Synthetic& what) {
  if (is_random(what)) {
    return std::max<std::size_t>(kDataPage, what.compress_chunk);
  }
  return std::lcm(std::max<std::size_t>(what.pattern.size(), 1), kDataPage);
}

}  // namespace

Result<Bytes> parse_pattern(std::string_view text) {
  PatternParser parser(text);
  if (const std::string_view problem = parser.parse(); !problem.empty()) {
    return bad_pattern(text, problem);
  }
  return parser.take();
}

std::string name_of(const Synthetic& what) {
  std::string name;
  const auto add = [&](const std::string& part) { name += (name.empty() ? "" : "+") + part; };
  if (!what.pattern.empty()) {
    add("pattern-" + (what.pattern_text.size() <= kLongestName
                          ? what.pattern_text
                          : what.pattern_text.substr(0, kLongestName - 3) + "..."));
  }
  if (what.compress_percentage) {
    add("compress-" + std::to_string(*what.compress_percentage));
    if (what.compress_chunk != kDefaultChunk) {
      name += "-chunk-" + std::to_string(what.compress_chunk);
    }
  }
  if (what.same_percentage != 0) {
    add("same-" + std::to_string(what.same_percentage));
  }
  return name.empty() ? "random" : name;
}

Bytes make_bank(const Synthetic& what) {
  const std::size_t period = period_of(what);
  const bool varies = is_random(what) || what.same_percentage != 0;
  Bytes bank(varies ? round_up(kRandomPages * kDataPage, period) : period);
  Random random(kSeed);
  if (!is_random(what)) {
    fill_with_pattern(what.pattern, bank);
  } else {
    for (std::size_t at = 0; at < bank.size(); at += period) {
      fill_with_chunks(what, random, std::span(bank).subspan(at, period));
    }
  }
  for (std::size_t page = 0; page < bank.size() / kDataPage; ++page) {
    if ((page + 1) * what.same_percentage / 100 > page * what.same_percentage / 100) {
      fill_same(random, std::span(bank).subspan(page * kDataPage, kDataPage));
    }
  }
  return bank;
}

Result<std::shared_ptr<const DataSet>> make_synthetic(const Synthetic& what) {
  return DataSet::make(name_of(what), make_bank(what));
}

}  // namespace uzram::bench
