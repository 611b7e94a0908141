#include "frontend/ublk/features.hpp"

#include <gtest/gtest.h>

#include "frontend/ublk/abi.hpp"

namespace uzram::ublk {
namespace {

constexpr std::uint64_t kAll = ~std::uint64_t{0};

TEST(Features, of_a_new_driver_the_copies_by_system_call_are_chosen) {
  EXPECT_EQ(choose_flags(kAll, true, kAll), kUserCopy);
  EXPECT_EQ(choose_flags(kUserCopy, true, kAll), kUserCopy);
}

TEST(Features, a_driver_that_cannot_be_asked_is_asked_for_what_old_ones_have) {
  EXPECT_EQ(choose_flags(std::nullopt, true, kAll), kNeedGetData);
  EXPECT_EQ(choose_flags(std::nullopt, false, kAll), kNeedGetData | kUnprivileged);
}

TEST(Features, ordinary_users_get_what_the_driver_lets_them_have) {
  EXPECT_EQ(choose_flags(kAll, false, kAll), kNeedGetData | kUnprivileged);
}

TEST(Features, what_may_not_be_used_is_not_asked_for) {
  EXPECT_EQ(choose_flags(kAll, true, ~kUserCopy), kNeedGetData);
  EXPECT_EQ(choose_flags(std::nullopt, true, ~kNeedGetData), 0U);
}

TEST(Features, the_flags_of_a_device_say_how_data_comes) {
  ASSERT_TRUE(data_path_of(kUserCopy | kIoctlEncoding).has_value());
  EXPECT_EQ(*data_path_of(kUserCopy | kNeedGetData), DataPath::user_copy);
  EXPECT_EQ(*data_path_of(kNeedGetData | 2), DataPath::get_data);
}

TEST(Features, a_driver_without_either_is_refused_with_what_it_has) {
  const auto path = data_path_of(0x42);
  ASSERT_FALSE(path.has_value());
  EXPECT_EQ(path.error().code, Errc::unsupported);
  EXPECT_NE(path.error().message.find("0x42"), std::string::npos);
}

}  // namespace
}  // namespace uzram::ublk
