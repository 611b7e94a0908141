#include "engine/room.hpp"

#include <gtest/gtest.h>

#include "support/scarce_room.hpp"

namespace uzram::engine {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

TEST(Room, without_limits_everything_may_be_taken) {
  Room room(nullptr);
  EXPECT_TRUE(room.may_take(~std::uint64_t{0}));
}

TEST(Room, no_more_than_the_machine_has_may_be_taken) {
  test::ScarceRoom scarce(10 * kMiB);
  ASSERT_TRUE(scarce.opened());
  EXPECT_FALSE(scarce.room().may_take(11 * kMiB));
  EXPECT_TRUE(scarce.room().may_take(10 * kMiB));
}

TEST(Room, a_limit_that_falls_is_noticed_once_the_credit_is_used_up) {
  test::ScarceRoom scarce(100 * kMiB);
  ASSERT_TRUE(scarce.opened());
  ASSERT_TRUE(scarce.room().may_take(4096));
  scarce.set_available(0);
  std::uint64_t taken = 0;
  while (scarce.room().may_take(4096)) {
    taken += 4096;
    ASSERT_LE(taken, kMiB);
  }
  scarce.set_available(kMiB);
  EXPECT_TRUE(scarce.room().may_take(4096));
}

}  // namespace
}  // namespace uzram::engine
