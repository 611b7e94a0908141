#include "base/option_value.hpp"

#include <cstdint>

#include <gtest/gtest.h>

namespace uzram {
namespace {

TEST(OptionValue, a_number_is_all_of_the_text_and_fits) {
  std::uint16_t number = 7;
  EXPECT_TRUE(take_number("65535", number));
  EXPECT_EQ(number, 65535);
  for (const char* const text : {"", "x", "1x", " 1", "+1", "-1", "65536", "0x10", "1.5"}) {
    EXPECT_FALSE(take_number(text, number)) << text;
  }
  double fraction = 0;
  EXPECT_TRUE(take_number("2.5", fraction));
  EXPECT_EQ(fraction, 2.5);
}

TEST(OptionValue, a_refusal_names_option_value_and_expectation) {
  const Error error = refuse_option("--jobs", "4X", "a number");
  EXPECT_EQ(error.code, Errc::invalid_argument);
  EXPECT_EQ(error.message, "--jobs \"4X\": expected a number");
}

}  // namespace
}  // namespace uzram
