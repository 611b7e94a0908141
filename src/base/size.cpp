#include "base/size.hpp"

#include <array>
#include <charconv>
#include <cstddef>
#include <limits>
#include <system_error>

namespace uzram {
namespace {

constexpr std::string_view kUnits = "KMGTP";

Error bad_size(std::string_view what, std::string_view text) {
  return {
      Errc::invalid_argument, 0,
      std::string(what) + " \"" + std::string(text) + "\": expected a number and K, M, G, T or P"};
}

Error too_large(std::string_view what, std::string_view text) {
  return {Errc::invalid_argument, 0,
          std::string(what) + " \"" + std::string(text) + "\": does not fit 64 bits"};
}

}  // namespace

Result<std::uint64_t> parse_size(std::string_view what, std::string_view text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, number);
  if (problem == std::errc::result_out_of_range) {
    return too_large(what, text);
  }
  if (problem != std::errc{}) {
    return bad_size(what, text);
  }
  std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
  unsigned shift = 0;
  if (!suffix.empty() && suffix != "B") {
    const char letter = suffix[0] >= 'a' ? static_cast<char>(suffix[0] - 'a' + 'A') : suffix[0];
    const std::size_t unit = kUnits.find(letter);
    suffix.remove_prefix(1);
    if (unit == std::string_view::npos || !(suffix.empty() || suffix == "B" || suffix == "iB")) {
      return bad_size(what, text);
    }
    shift = static_cast<unsigned>(10 * (unit + 1));
  }
  if (number > (std::numeric_limits<std::uint64_t>::max() >> shift)) {
    return too_large(what, text);
  }
  return number << shift;
}

std::string format_size(std::uint64_t bytes) {
  constexpr std::array<char, 7> kLetters = {'B', 'K', 'M', 'G', 'T', 'P', 'E'};
  std::size_t unit = 0;
  while (unit + 1 < kLetters.size() && (bytes >> (10 * (unit + 1))) != 0) {
    ++unit;
  }
  const unsigned shift = static_cast<unsigned>(10 * unit);
  std::uint64_t whole = bytes >> shift;
  std::uint64_t tenths = 0;
  if (unit != 0) {
    const std::uint64_t rest = bytes - (whole << shift);
    // Round half up in tenths; the remainder is below 2^60, so ten times it fits.
    tenths = ((rest >> (shift - 10)) * 10 + 512) >> 10;
    if (tenths == 10) {
      ++whole;
      tenths = 0;
    }
  }
  std::string text = std::to_string(whole);
  if (tenths != 0) {
    text += '.';
    text += std::to_string(tenths);
  }
  text += kLetters.at(unit);
  return text;
}

}  // namespace uzram
