#include "os/mounts.hpp"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>

namespace uzram::os {
namespace {

TEST(Mounts, are_taken_from_mountinfo) {
  const auto mounts = parse_mounts(
      "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
      "36 27 8:17 /sub /mnt/a\\040b\\134 rw,noatime master:1 shared:2 - ext3 /dev/sda1 "
      "rw,errors=c\n"
      "22 27 0:21 / /proc rw - proc proc rw\n");
  ASSERT_EQ(mounts.size(), 3U);
  EXPECT_EQ(mounts[0].point, "/");
  EXPECT_EQ(mounts[1].id, 36U);
  EXPECT_EQ(mounts[1].parent, 27U);
  EXPECT_EQ(mounts[1].device, makedev(8, 17));
  EXPECT_EQ(mounts[1].point, "/mnt/a b\\");
  EXPECT_EQ(mounts[1].source, "/dev/sda1");
  EXPECT_EQ(major(mounts[2].device), 0U);
}

TEST(Mounts, lines_of_another_form_are_left_out) {
  EXPECT_TRUE(parse_mounts("").empty());
  EXPECT_TRUE(parse_mounts("\n\nx\n1 2 3\n1 2 8:1 / /mnt rw\n").empty());
}

TEST(Mounts, a_file_that_is_not_there_counts_with_its_nearest_folder) {
  const auto root = mount_id_of("/");
  if (!root) {
    GTEST_SKIP() << "this kernel does not tell which mount holds a file";
  }
  EXPECT_EQ(mount_id_of("/no-such-folder/file"), root);
  EXPECT_EQ(mount_id_of("no-such-folder/file"), mount_id_of("."));
  EXPECT_EQ(mount_id_of(""), mount_id_of("."));
  EXPECT_EQ(mount_id_of("/proc/no-such-file"), mount_id_of("/proc"));
  EXPECT_NE(mount_id_of("/proc"), root);
}

}  // namespace
}  // namespace uzram::os
