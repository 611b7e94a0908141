#include "engine/room.hpp"

#include <gtest/gtest.h>

#include "support/scarce_room.hpp"

namespace uzram::engine {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

TEST(Room, without_limits_everything_may_be_taken) {
  Room room(nullptr);
  EXPECT_TRUE(room.ask(std::uint64_t{1} << 60));
}

TEST(Room, no_more_than_the_machine_has_may_be_taken) {
  test::ScarceRoom scarce(10 * kMiB);
  ASSERT_TRUE(scarce.opened());
  EXPECT_FALSE(scarce.room().ask(11 * kMiB));
  EXPECT_TRUE(scarce.room().ask(10 * kMiB));
}

TEST(Room, a_limit_that_falls_is_noticed_once_the_credit_is_used_up) {
  test::ScarceRoom scarce(100 * kMiB);
  ASSERT_TRUE(scarce.opened());
  ASSERT_TRUE(scarce.room().ask(4096));
  scarce.set_available(0);
  std::uint64_t taken = 0;
  while (scarce.room().ask(4096)) {
    taken += 4096;
    ASSERT_LE(taken, kMiB);
  }
  scarce.set_available(kMiB);
  EXPECT_TRUE(scarce.room().ask(4096));
}

TEST(Room, what_is_granted_and_not_yet_taken_is_not_granted_again) {
  test::ScarceRoom scarce(10 * kMiB);
  ASSERT_TRUE(scarce.opened());
  {
    const Room::Grant first = scarce.room().ask(6 * kMiB);
    ASSERT_TRUE(first);
    EXPECT_FALSE(scarce.room().ask(6 * kMiB));
    EXPECT_TRUE(scarce.room().ask(4 * kMiB));
  }
  EXPECT_TRUE(scarce.room().ask(10 * kMiB));
}

}  // namespace
}  // namespace uzram::engine
