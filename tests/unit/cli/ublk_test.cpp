#include "cli/ublk.hpp"

#include <gtest/gtest.h>

#include "frontend/ublk/abi.hpp"

namespace uzram::cli {
namespace {

TEST(UblkCommand, lists_live_and_dead_devices) {
  ublk::DeviceInfo live;
  live.device_id = 0;
  live.state = ublk::DeviceState::live;
  live.queues = 2;
  live.depth = 128;
  live.max_io_bytes = 512U << 10;
  live.server_pid = 4321;
  live.flags = ublk::kUserCopy | ublk::kIoctlEncoding;
  ublk::DeviceInfo dead = live;
  dead.device_id = 12;
  dead.state = ublk::DeviceState::dead;
  dead.server_pid = -1;
  dead.owner_uid = 1000;
  EXPECT_EQ(format_ublk_devices({live, dead}),
            "ID NODE         STATE QUEUES DEPTH MAX-IO SERVER OWNER FLAGS MOUNTPOINT\n"
            " 0 /dev/ublkb0  live       2   128   512K   4321     0  0xc0\n"
            "12 /dev/ublkb12 dead       2   128   512K      -  1000  0xc0\n");
}

TEST(UblkCommand, no_devices_are_no_table) { EXPECT_EQ(format_ublk_devices({}), ""); }

TEST(UblkCommand, a_number_that_is_none_is_refused_as_wrong_use) {
  UblkArguments arguments;
  arguments.ids = {"/dev/ublkb0"};
  EXPECT_EQ(run_ublk("remove", arguments), 2);
}

}  // namespace
}  // namespace uzram::cli
