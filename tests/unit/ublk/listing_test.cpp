#include "frontend/ublk/listing.hpp"

#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/temporary_folder.hpp"

namespace uzram::ublk {
namespace {

TEST(Listing, finds_character_devices_by_their_numbers) {
  const test::TemporaryFolder folder;
  for (const char* const name :
       {"ublkc10", "ublkc2", "ublkb2", "ublkc", "ublkc3x", "ublk-control"}) {
    std::ofstream(folder / name) << "";
  }
  EXPECT_EQ(device_ids(folder / ""), (std::vector<std::uint32_t>{2, 10}));
}

TEST(Listing, a_folder_that_is_not_there_has_none) {
  EXPECT_TRUE(device_ids("/nowhere/at/all").empty());
}

TEST(Listing, states_have_names) {
  EXPECT_EQ(state_name(DeviceState::dead), "dead");
  EXPECT_EQ(state_name(DeviceState::live), "live");
  EXPECT_EQ(state_name(DeviceState::quiesced), "quiesced");
  EXPECT_EQ(state_name(DeviceState::fail_io), "fail-io");
  EXPECT_EQ(state_name(static_cast<DeviceState>(77)), "unknown");
}

}  // namespace
}  // namespace uzram::ublk
