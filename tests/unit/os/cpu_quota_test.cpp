#include "os/cpu_quota.hpp"

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>

#include <gtest/gtest.h>
#include <unistd.h>

namespace uzram::os {
namespace {

namespace fs = std::filesystem;

// A proc and control group trees in a folder of its own.
class CpuQuota : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "uzram-quota-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::trunc) << text;
  }
  // Lines of mountinfo for a version 1 CPU mount and a version 2 mount of this tree.
  [[nodiscard]] std::string mount_v1(const std::string& shown_root = "/") const {
    return "35 31 0:32 " + shown_root + " " + (root_ / "cpu").string() +
           " rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n";
  }
  [[nodiscard]] std::string mount_v2(const std::string& shown_root = "/") const {
    return "41 31 0:38 " + shown_root + " " + (root_ / "unified").string() +
           " rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n";
  }
  void version_2(const std::string& group) const {
    write("proc/self/cgroup", "0::" + group + "\n");
    write("proc/self/mountinfo", mount_v2());
  }
  void version_1(const std::string& group) const {
    write("proc/self/cgroup", "5:memory:/elsewhere\n4:cpu,cpuacct:" + group + "\n");
    write("proc/self/mountinfo", mount_v1());
  }
  [[nodiscard]] std::optional<double> quota() const { return cpu_quota((root_ / "proc").string()); }

  fs::path root_;
};

TEST_F(CpuQuota, none_without_control_groups_or_files) {
  EXPECT_EQ(quota(), std::nullopt);
  version_2("/a/b");
  EXPECT_EQ(quota(), std::nullopt);
  version_1("/a/b");
  EXPECT_EQ(quota(), std::nullopt);
}

TEST_F(CpuQuota, version_2_is_quota_over_period) {
  version_2("/a");
  write("unified/a/cpu.max", "150000 100000\n");
  EXPECT_EQ(quota(), 1.5);
  write("unified/a/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), std::nullopt);
}

TEST_F(CpuQuota, the_tightest_of_a_group_and_its_ancestors_counts) {
  version_2("/a/b/c");
  write("unified/a/b/c/cpu.max", "400000 100000\n");
  write("unified/a/b/cpu.max", "max 100000\n");
  write("unified/a/cpu.max", "20000 10000\n");
  EXPECT_EQ(quota(), 2.0);
}

TEST_F(CpuQuota, version_1_has_a_file_each) {
  version_1("/a/b");
  write("cpu/a/b/cpu.cfs_period_us", "100000\n");
  write("cpu/a/b/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(quota(), std::nullopt);
  write("cpu/a/b/cpu.cfs_quota_us", "50000\n");
  EXPECT_EQ(quota(), 0.5);
}

TEST_F(CpuQuota, version_1_ancestors_count_too) {
  version_1("/a/b");
  write("cpu/a/b/cpu.cfs_quota_us", "-1\n");
  write("cpu/a/b/cpu.cfs_period_us", "100000\n");
  write("cpu/a/cpu.cfs_quota_us", "75000\n");
  write("cpu/a/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(quota(), 1.5);
}

TEST_F(CpuQuota, the_root_group_has_no_file_and_does_not_limit) {
  version_2("/");
  write("unified/cgroup.procs", "1\n");
  EXPECT_EQ(quota(), std::nullopt);
}

// The kernel's root group has no quota; what a container sees as its root may have one.
TEST_F(CpuQuota, the_root_of_a_namespace_limits) {
  version_2("/");
  write("unified/cpu.max", "250000 100000\n");
  EXPECT_EQ(quota(), 2.5);
}

TEST_F(CpuQuota, a_mount_of_the_own_group_only_is_understood) {
  version_2("/docker/box");
  write("proc/self/mountinfo", mount_v2("/docker/box"));
  write("unified/cpu.max", "50000 100000\n");
  EXPECT_EQ(quota(), 0.5);
}

TEST_F(CpuQuota, hybrid_follows_the_hierarchy_that_has_the_cpu_controller) {
  write("proc/self/cgroup", "4:cpu,cpuacct:/box\n3:cpuset:/other\n0::/user.slice\n");
  write("proc/self/mountinfo", mount_v1() + mount_v2());
  write("unified/user.slice/cgroup.procs", "1\n");
  write("cpu/box/cpu.cfs_quota_us", "300000\n");
  write("cpu/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 3.0);
}

TEST_F(CpuQuota, hybrid_with_the_cpu_controller_in_version_2) {
  write("proc/self/cgroup", "4:memory:/box\n3:cpuset:/other\n0::/user.slice\n");
  write("proc/self/mountinfo", "36 31 0:33 / " + (root_ / "cpuset").string() +
                                   " rw - cgroup cgroup rw,cpuset\n" + mount_v2());
  write("cpuset/other/cpu.cfs_quota_us", "100\n");
  write("cpuset/other/cpu.cfs_period_us", "100\n");
  write("unified/user.slice/cpu.max", "300000 100000\n");
  EXPECT_EQ(quota(), 3.0);
}

TEST_F(CpuQuota, what_is_no_number_does_not_limit) {
  version_2("/a");
  for (const char* const text :
       {"", "\n", "x y\n", "1000\n", "0 100\n", "100 0\n", "-5 100\n", "150000x 100000\n",
        "150000 100000x\n", "150000 100000 7\n", "150000  100000\n", " 150000 100000\n",
        "150000 100000\n1\n", "1.5 100000\n", "99999999999999999999 100000\n"}) {
    write("unified/a/cpu.max", text);
    EXPECT_EQ(quota(), std::nullopt) << text;
  }
}

TEST_F(CpuQuota, what_is_no_number_in_version_1_does_not_limit) {
  version_1("/a");
  for (const char* const text : {"", "\n", "x\n", "0\n", "-5\n", "50000x\n", "50000 1\n"}) {
    write("cpu/a/cpu.cfs_quota_us", text);
    write("cpu/a/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(quota(), std::nullopt) << "quota " << text;
    write("cpu/a/cpu.cfs_quota_us", "50000\n");
    write("cpu/a/cpu.cfs_period_us", text);
    EXPECT_EQ(quota(), std::nullopt) << "period " << text;
  }
}

TEST_F(CpuQuota, a_missing_or_unreadable_file_does_not_limit) {
  version_1("/a");
  write("cpu/a/cpu.cfs_quota_us", "50000\n");
  EXPECT_EQ(quota(), std::nullopt);
  version_2("/a");
  fs::create_directories(root_ / "unified/a/cpu.max");
  EXPECT_EQ(quota(), std::nullopt);
}

TEST_F(CpuQuota, garbage_in_one_group_leaves_the_limit_of_another) {
  version_2("/a/b");
  write("unified/a/b/cpu.max", "1x 100000\n");
  write("unified/a/cpu.max", "200000 100000\n");
  EXPECT_EQ(quota(), 2.0);
}

TEST_F(CpuQuota, garbage_in_proc_does_not_limit) {
  version_2("/a");
  write("unified/a/cpu.max", "150000 100000\n");
  write("proc/self/cgroup", "nonsense\n:\n0:\n");
  EXPECT_EQ(quota(), std::nullopt);
  version_2("/a");
  write("proc/self/mountinfo", "nonsense\n41 31 0:38 / - cgroup2\n");
  EXPECT_EQ(quota(), std::nullopt);
}

TEST_F(CpuQuota, a_changed_limit_is_read_anew) {
  version_2("/a");
  write("unified/a/cpu.max", "150000 100000");
  EXPECT_EQ(quota(), 1.5);
  write("unified/a/cpu.max", "50000 100000");
  EXPECT_EQ(quota(), 0.5);
}

}  // namespace
}  // namespace uzram::os
