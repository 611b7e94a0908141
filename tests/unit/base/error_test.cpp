#include "uzram/error.hpp"

#include <array>
#include <cerrno>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace uzram {
namespace {

constexpr std::array kAllCodes = {
    Errc::ok,      Errc::invalid_argument, Errc::out_of_range,   Errc::no_space,
    Errc::corrupt, Errc::read_only,        Errc::unsupported,    Errc::busy,
    Errc::exists,  Errc::not_found,        Errc::incompressible, Errc::system,
};

TEST(Errc, has_a_description_of_its_own_for_every_code) {
  std::set<std::string_view> seen;
  for (const Errc code : kAllCodes) {
    EXPECT_FALSE(describe(code).empty());
    EXPECT_NE(describe(code), "unknown error");
    EXPECT_TRUE(seen.insert(describe(code)).second) << describe(code);
  }
  EXPECT_EQ(describe(static_cast<Errc>(kAllCodes.size())), "unknown error")
      << "a code is missing in kAllCodes";
}

TEST(Errc, maps_to_the_errno_a_block_device_reports) {
  EXPECT_EQ(errno_name(Errc::ok), "OK");
  EXPECT_EQ(errno_name(Errc::invalid_argument), "EINVAL");
  EXPECT_EQ(errno_name(Errc::out_of_range), "EINVAL");
  EXPECT_EQ(errno_name(Errc::no_space), "ENOSPC");
  EXPECT_EQ(errno_name(Errc::corrupt), "EIO");
  EXPECT_EQ(errno_name(Errc::read_only), "EPERM");
  EXPECT_EQ(errno_name(Errc::unsupported), "ENOTSUP");
  EXPECT_EQ(errno_name(Errc::busy), "EBUSY");
  EXPECT_EQ(errno_name(Errc::exists), "EEXIST");
  EXPECT_EQ(errno_name(Errc::not_found), "ENOENT");
  EXPECT_EQ(errno_name(Errc::system), "EIO");
}

TEST(SystemError, names_the_context_and_the_reason_and_keeps_errno) {
  const Error error = system_error("open \"x\"", ENOENT);
  EXPECT_EQ(error.code, Errc::system);
  EXPECT_EQ(error.saved_errno, ENOENT);
  EXPECT_EQ(error.message, "open \"x\": No such file or directory");
}

TEST(Result, holds_a_value) {
  Result<int> result(7);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result.has_value());
  EXPECT_EQ(*result, 7);
  *result = 8;
  EXPECT_EQ(result.value(), 8);
}

TEST(Result, holds_an_error) {
  const Result<int> result(Error{Errc::busy, EBUSY, "in use"});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::busy);
  EXPECT_EQ(result.error().saved_errno, EBUSY);
  EXPECT_EQ(result.error().message, "in use");
}

TEST(Result, gives_up_a_value_that_can_only_be_moved) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(5));
  const std::unique_ptr<int> taken = *std::move(result);
  ASSERT_NE(taken, nullptr);
  EXPECT_EQ(*taken, 5);
}

TEST(Result, reaches_the_members_of_its_value) {
  Result<std::string> result(std::string("page"));
  EXPECT_EQ(result->size(), 4U);
  const Result<std::string>& constant = result;
  EXPECT_EQ(constant->size(), 4U);
}

TEST(Result, without_a_value_succeeds_unless_given_an_error) {
  const Result<void> good;
  EXPECT_TRUE(good);
  const Result<void> bad(Error{Errc::no_space, 0, "full"});
  ASSERT_FALSE(bad.has_value());
  EXPECT_EQ(bad.error().code, Errc::no_space);
  EXPECT_EQ(bad.error().message, "full");
}

}  // namespace
}  // namespace uzram
