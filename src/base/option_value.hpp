// Values of options: numbers out of them, and the one form in which they are refused.
//
// Threads: pure functions.
#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "uzram/error.hpp"

namespace uzram {

// Whether all of `text` is a decimal number that a Number can hold; then it is in `number`.
template <typename Number>
[[nodiscard]] bool take_number(std::string_view text, Number& number) noexcept {
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, number);
  return problem == std::errc{} && rest == end;
}

// `--jobs "x": expected a number`.
[[nodiscard]] inline Error refuse_option(std::string_view option, std::string_view value,
                                         std::string_view expected) {
  std::string message(option);
  message.append(" \"").append(value).append("\": expected ").append(expected);
  return {Errc::invalid_argument, 0, std::move(message)};
}

}  // namespace uzram
