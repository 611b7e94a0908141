#include "os/cpu_quota.hpp"

#include <filesystem>
#include <fstream>
#include <string>

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
  void version_2(const std::string& group) const {
    write("proc/self/cgroup", "0::" + group + "\n");
    write("proc/self/mountinfo", "41 31 0:38 / " + (root_ / "unified").string() +
                                     " rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  void version_1(const std::string& group) const {
    write("proc/self/cgroup", "5:memory:/elsewhere\n4:cpu,cpuacct:" + group + "\n");
    write("proc/self/mountinfo", "35 31 0:32 / " + (root_ / "cpu").string() +
                                     " rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n");
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

TEST_F(CpuQuota, what_is_no_number_does_not_limit) {
  version_2("/a");
  for (const char* const text : {"", "\n", "x y\n", "1000\n", "0 100\n", "100 0\n", "-5 100\n"}) {
    write("unified/a/cpu.max", text);
    EXPECT_EQ(quota(), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace uzram::os
