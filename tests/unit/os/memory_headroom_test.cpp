#include "os/memory_headroom.hpp"

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <system_error>

#include <gtest/gtest.h>
#include <unistd.h>

namespace uzram::os {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
// What the header promises to keep below a limit.
constexpr std::uint64_t margin(std::uint64_t limit) { return 8 * kMiB + limit / 16; }

// Truncates and writes in place, as the kernel's files keep their inode.
void write_file(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::trunc) << text;
}

// A proc and control group trees in a folder of its own.
class MemoryHeadroomFake : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "uzram-headroom-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
    meminfo(64 * kGiB, 32 * kGiB);
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }

  void meminfo(std::uint64_t total, std::uint64_t available) const {
    write_file(root_ / "proc/meminfo", "MemTotal:       " + std::to_string(total / 1024) +
                                           " kB\nMemFree:        1 kB\nMemAvailable:   " +
                                           std::to_string(available / 1024) + " kB\n");
  }
  void membership(const std::string& text) const { write_file(root_ / "proc/self/cgroup", text); }
  // Lines of mountinfo for a version 1 memory mount and a version 2 mount of this tree.
  [[nodiscard]] std::string mount_v1(const std::string& shown_root = "/") const {
    return "35 31 0:32 " + shown_root + " " + (root_ / "memory").string() +
           " rw,relatime shared:9 - cgroup cgroup rw,hugetlb,memory\n";
  }
  [[nodiscard]] std::string mount_v2(const std::string& shown_root = "/") const {
    return "41 31 0:38 " + shown_root + " " + (root_ / "unified").string() +
           " rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n";
  }
  void mountinfo(const std::string& text) const {
    write_file(root_ / "proc/self/mountinfo",
               "23 1 8:1 / / rw,relatime - ext4 /dev/root rw\n" + text);
  }

  void group_v1(const std::string& group, const std::string& limit, std::uint64_t used,
                std::uint64_t cache = 0, std::uint64_t hierarchical = kUnlimitedV1) const {
    const fs::path folder = root_ / ("memory" + group);
    write_file(folder / "memory.limit_in_bytes", limit + "\n");
    write_file(folder / "memory.usage_in_bytes", std::to_string(used) + "\n");
    write_file(folder / "memory.stat", "inactive_file 77\nhierarchical_memory_limit " +
                                           std::to_string(hierarchical) + "\ntotal_inactive_file " +
                                           std::to_string(cache) + "\ntotal_active_file 0\n");
  }
  void group_v2(const std::string& group, const std::string& max, const std::string& high,
                std::uint64_t used, std::uint64_t cache = 0) const {
    const fs::path folder = root_ / ("unified" + group);
    write_file(folder / "memory.max", max + "\n");
    write_file(folder / "memory.high", high + "\n");
    write_file(folder / "memory.current", std::to_string(used) + "\n");
    write_file(folder / "memory.stat", "anon 123\ninactive_file " + std::to_string(cache / 2) +
                                           "\nactive_file " + std::to_string(cache - cache / 2) +
                                           "\n");
  }

  [[nodiscard]] std::unique_ptr<MemoryHeadroom> open() const {
    auto opened = MemoryHeadroom::open({(root_ / "proc").string()});
    EXPECT_TRUE(opened.has_value());
    return opened ? std::move(*opened) : nullptr;
  }

  static constexpr std::uint64_t kUnlimitedV1 = 9223372036854771712U;
  // 32 GiB available of 64 GiB: a 64th of the total is kept.
  static constexpr std::uint64_t kSystem = 31 * kGiB;
  fs::path root_;
};

TEST_F(MemoryHeadroomFake, without_control_groups_the_system_bounds) {
  const auto headroom = open();
  EXPECT_EQ(headroom->bytes(), kSystem);
  EXPECT_EQ(headroom->tightest(), "system memory: 64G");
}

TEST_F(MemoryHeadroomFake, system_margin_is_at_least_64_mib_and_at_most_1_gib) {
  const auto headroom = open();
  meminfo(1 * kGiB, 512 * kMiB);
  EXPECT_EQ(headroom->bytes(), 448 * kMiB);
  meminfo(1024 * kGiB, 512 * kGiB);
  EXPECT_EQ(headroom->bytes(), 511 * kGiB);
  meminfo(1 * kGiB, 63 * kMiB);
  EXPECT_EQ(headroom->bytes(), 0U);
}

TEST_F(MemoryHeadroomFake, v1_limit_counts_against_usage) {
  mountinfo(mount_v1());
  membership("9:name=systemd:/\n4:hugetlb,memory:/box\n3:cpuset:/other\n");
  group_v1("", std::to_string(kUnlimitedV1), 5 * kGiB);
  group_v1("/box", std::to_string(256 * kMiB), 100 * kMiB);
  const auto headroom = open();
  EXPECT_EQ(headroom->bytes(), 156 * kMiB - margin(256 * kMiB));
  EXPECT_EQ(margin(256 * kMiB), 24 * kMiB);
  EXPECT_EQ(headroom->tightest(), "control group /box: 256M");
}

TEST_F(MemoryHeadroomFake, page_cache_counts_as_free) {
  mountinfo(mount_v1());
  membership("4:memory:/box\n");
  group_v1("/box", std::to_string(256 * kMiB), 250 * kMiB, 50 * kMiB);
  EXPECT_EQ(open()->bytes(), 56 * kMiB - margin(256 * kMiB));
}

TEST_F(MemoryHeadroomFake, v2_takes_the_lesser_of_max_and_high) {
  mountinfo(mount_v2());
  membership("0::/app\n");
  group_v2("/app", std::to_string(512 * kMiB), std::to_string(256 * kMiB), 64 * kMiB, 10 * kMiB);
  const auto headroom = open();
  EXPECT_EQ(headroom->bytes(), 202 * kMiB - margin(256 * kMiB));
  group_v2("/app", std::to_string(128 * kMiB), std::to_string(256 * kMiB), 64 * kMiB, 10 * kMiB);
  EXPECT_EQ(headroom->bytes(), 74 * kMiB - margin(128 * kMiB));
}

TEST_F(MemoryHeadroomFake, a_tighter_ancestor_bounds) {
  mountinfo(mount_v2());
  membership("0::/slice/inner/app\n");
  group_v2("/slice", std::to_string(200 * kMiB), "max", 150 * kMiB);
  group_v2("/slice/inner", "max", "max", 100 * kMiB);
  group_v2("/slice/inner/app", std::to_string(512 * kMiB), "max", 10 * kMiB);
  const auto headroom = open();
  EXPECT_EQ(headroom->bytes(), 50 * kMiB - margin(200 * kMiB));
  EXPECT_EQ(headroom->tightest(), "control group /slice: 200M");
}

TEST_F(MemoryHeadroomFake, max_bounds_nothing) {
  mountinfo(mount_v2());
  membership("0::/app\n");
  group_v2("/app", "max", "max", 40 * kGiB);
  EXPECT_EQ(open()->bytes(), kSystem);
}

TEST_F(MemoryHeadroomFake, groups_alone_bound_those_who_ask_so) {
  mountinfo(mount_v2());
  membership("0::/app\n");
  group_v2("/app", std::to_string(64 * kGiB), "max", 0);
  const auto headroom = open();
  EXPECT_EQ(headroom->bytes(), kSystem);
  // The margin is a GiB at most.
  EXPECT_EQ(headroom->bytes(MemoryHeadroom::Scope::groups), 63 * kGiB);
  group_v2("/app", "max", "max", 0);
  EXPECT_GE(headroom->bytes(MemoryHeadroom::Scope::groups), std::uint64_t{1} << 60);
}

TEST_F(MemoryHeadroomFake, hybrid_follows_the_hierarchy_that_has_the_memory_controller) {
  mountinfo(mount_v1() + mount_v2());
  membership("4:memory:/box\n0::/user.slice\n");
  fs::create_directories(root_ / "unified/user.slice");
  group_v1("/box", std::to_string(kGiB), 0);
  const auto headroom = open();
  EXPECT_EQ(headroom->bytes(), kGiB - margin(kGiB));
  EXPECT_EQ(headroom->tightest(), "control group /box: 1G");
}

TEST_F(MemoryHeadroomFake, changed_limits_and_use_are_followed) {
  mountinfo(mount_v2());
  membership("0::/app\n");
  group_v2("/app", std::to_string(256 * kMiB), "max", 0);
  const auto headroom = open();
  EXPECT_EQ(headroom->bytes(), 256 * kMiB - margin(256 * kMiB));
  group_v2("/app", std::to_string(64 * kMiB), "max", 0);
  EXPECT_EQ(headroom->bytes(), 64 * kMiB - margin(64 * kMiB));
  group_v2("/app", std::to_string(64 * kMiB), "max", 60 * kMiB);
  EXPECT_EQ(headroom->bytes(), 0U);
  group_v2("/app", "max", "max", 60 * kMiB);
  EXPECT_EQ(headroom->bytes(), kSystem);
}

TEST_F(MemoryHeadroomFake, a_move_to_another_group_is_followed) {
  mountinfo(mount_v2());
  membership("0::/a\n");
  group_v2("/a", "max", "max", 0);
  group_v2("/b", std::to_string(256 * kMiB), "max", 0);
  const auto headroom = open();
  EXPECT_EQ(headroom->bytes(), kSystem);
  membership("0::/b\n");
  EXPECT_EQ(headroom->bytes(), 256 * kMiB - margin(256 * kMiB));
  EXPECT_EQ(headroom->tightest(), "control group /b: 256M");
}

TEST_F(MemoryHeadroomFake, a_controller_enabled_later_is_noticed) {
  mountinfo(mount_v2());
  membership("0::/app\n");
  fs::create_directories(root_ / "unified/app");
  const auto headroom = open();
  EXPECT_EQ(headroom->bytes(), kSystem);
  group_v2("/app", std::to_string(256 * kMiB), "max", 0);
  EXPECT_EQ(headroom->bytes(), 256 * kMiB - margin(256 * kMiB));
}

TEST_F(MemoryHeadroomFake, a_mount_of_the_own_group_only_is_understood) {
  mountinfo(mount_v1("/docker/box"));
  membership("4:memory:/docker/box\n");
  group_v1("", std::to_string(256 * kMiB), 0, 0, 256 * kMiB);
  const auto headroom = open();
  EXPECT_EQ(headroom->bytes(), 256 * kMiB - margin(256 * kMiB));
  EXPECT_EQ(headroom->tightest(), "control group /docker/box: 256M");
}

TEST_F(MemoryHeadroomFake, v1_limit_of_hidden_ancestors_bounds) {
  mountinfo(mount_v1("/pod/box"));
  membership("4:memory:/pod/box\n");
  group_v1("", std::to_string(kUnlimitedV1), 0, 0, 128 * kMiB);
  EXPECT_EQ(open()->bytes(), 128 * kMiB - margin(128 * kMiB));
}

TEST_F(MemoryHeadroomFake, a_group_outside_every_mount_falls_back_to_the_top_of_the_mount) {
  mountinfo(mount_v2("/"));
  membership("0::/../elsewhere\n");
  group_v2("", std::to_string(256 * kMiB), "max", 0);
  EXPECT_EQ(open()->bytes(), 256 * kMiB - margin(256 * kMiB));
}

TEST_F(MemoryHeadroomFake, the_mount_that_shows_most_ancestors_is_taken) {
  const std::string own =
      "50 31 0:38 /slice/app " + (root_ / "own").string() + " rw - cgroup2 cgroup2 rw\n";
  membership("0::/slice/app\n");
  group_v2("/slice", std::to_string(128 * kMiB), "max", 0);
  group_v2("/slice/app", std::to_string(256 * kMiB), "max", 0);
  fs::create_directories(root_ / "own");
  mountinfo(own + mount_v2());
  EXPECT_EQ(open()->tightest(), "control group /slice: 128M");
  mountinfo(mount_v2() + own);
  EXPECT_EQ(open()->tightest(), "control group /slice: 128M");
}

TEST_F(MemoryHeadroomFake, mount_points_with_blanks_are_found) {
  mountinfo("41 31 0:38 / " + root_.string() + "/a\\040b rw - cgroup2 cgroup2 rw\n");
  membership("0::/app\n");
  write_file(root_ / "a b/app/memory.max", "268435456\n");
  write_file(root_ / "a b/app/memory.current", "0\n");
  EXPECT_EQ(open()->bytes(), 256 * kMiB - margin(256 * kMiB));
}

TEST_F(MemoryHeadroomFake, missing_group_files_bound_nothing) {
  mountinfo(mount_v1() + mount_v2());
  membership("4:memory:/gone\n0::/gone\n");
  EXPECT_EQ(open()->bytes(), kSystem);
}

TEST_F(MemoryHeadroomFake, a_missing_meminfo_is_refused_by_name) {
  fs::remove(root_ / "proc/meminfo");
  const auto opened = MemoryHeadroom::open({(root_ / "proc").string()});
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, Errc::system);
  EXPECT_EQ(opened.error().saved_errno, ENOENT);
  EXPECT_NE(opened.error().message.find("proc/meminfo"), std::string::npos);
}

TEST_F(MemoryHeadroomFake, a_meminfo_without_MemAvailable_is_refused) {
  write_file(root_ / "proc/meminfo", "MemTotal:       1024 kB\n");
  const auto opened = MemoryHeadroom::open({(root_ / "proc").string()});
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, Errc::unsupported);
}

TEST_F(MemoryHeadroomFake, a_meminfo_that_becomes_unreadable_leaves_nothing) {
  const auto headroom = open();
  write_file(root_ / "proc/meminfo", "");
  EXPECT_EQ(headroom->bytes(), 0U);
}

// A group of this machine, made for one test. The process moves in and back out.
class RealGroup {
 public:
  RealGroup() {
    for (const char* const candidate : {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"}) {
      const fs::path top = candidate;
      v1_ = fs::exists(top / "memory.limit_in_bytes");
      std::ifstream subtree(top / "cgroup.subtree_control");
      const std::string enabled((std::istreambuf_iterator<char>(subtree)), {});
      if (v1_ || enabled.find("memory") != std::string::npos) {
        top_ = top;
        break;
      }
    }
    if (top_.empty()) {
      return;
    }
    home_ = top_ / current_group();
    group_ = top_ / ("uzram-test-" + std::to_string(::getpid()));
    std::error_code failure;
    usable_ = fs::create_directory(group_, failure) &&
              put(group_ / limit_file(), std::to_string(256 * kMiB));
  }
  ~RealGroup() {
    if (!group_.empty()) {
      leave();
      ::rmdir(group_.c_str());
    }
  }
  RealGroup(const RealGroup&) = delete;
  RealGroup& operator=(const RealGroup&) = delete;

  [[nodiscard]] bool usable() const { return usable_; }
  [[nodiscard]] bool enter() const { return put(group_ / "cgroup.procs", "0"); }
  void leave() const { (void)put(home_ / "cgroup.procs", "0"); }
  [[nodiscard]] bool limit(std::uint64_t bytes) const {
    return put(group_ / limit_file(), std::to_string(bytes));
  }
  [[nodiscard]] std::string name() const { return "/" + group_.filename().string(); }

 private:
  [[nodiscard]] const char* limit_file() const {
    return v1_ ? "memory.limit_in_bytes" : "memory.max";
  }
  // Without the leading slash, as it is appended to a path.
  [[nodiscard]] std::string current_group() const {
    std::ifstream membership("/proc/self/cgroup");
    const std::string key = v1_ ? ":memory:/" : "0::/";
    for (std::string line; std::getline(membership, line);) {
      if (const auto at = line.find(key); at != std::string::npos) {
        return line.substr(at + key.size());
      }
    }
    return "";
  }
  static bool put(const fs::path& path, const std::string& text) {
    std::ofstream file(path);
    file << text << std::flush;
    return file.good();
  }

  bool v1_ = false;
  bool usable_ = false;
  fs::path top_;
  fs::path home_;
  fs::path group_;
};

TEST(MemoryHeadroom, follows_this_process_into_a_real_control_group) {
  const RealGroup group;
  if (!group.usable()) {
    GTEST_SKIP() << "no memory controller below /sys/fs/cgroup, or no right to make a group";
  }
  auto opened = MemoryHeadroom::open();
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  MemoryHeadroom& headroom = **opened;
  if (headroom.bytes() < 256 * kMiB) {
    GTEST_SKIP() << "bounded by " << headroom.tightest() << " already";
  }
  ASSERT_TRUE(group.enter());
  const std::uint64_t inside = headroom.bytes();
  EXPECT_LE(inside, 256 * kMiB - margin(256 * kMiB));
  EXPECT_GT(inside, 0U);
  EXPECT_EQ(headroom.tightest(), "control group " + group.name() + ": 256M");
  ASSERT_TRUE(group.limit(64 * kMiB));
  EXPECT_LE(headroom.bytes(), 64 * kMiB - margin(64 * kMiB));
  group.leave();
  EXPECT_GT(headroom.bytes(), inside);
}

TEST(MemoryHeadroom, real_memory_taken_lowers_it) {
  const RealGroup group;
  if (!group.usable()) {
    GTEST_SKIP() << "no memory controller below /sys/fs/cgroup, or no right to make a group";
  }
  auto opened = MemoryHeadroom::open();
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  MemoryHeadroom& headroom = **opened;
  // ThreadSanitizer takes several times as much beside what is taken here.
  constexpr std::uint64_t kLimit = 1024 * kMiB;
  if (headroom.bytes() < kLimit) {
    GTEST_SKIP() << "bounded by " << headroom.tightest() << " already";
  }
  ASSERT_TRUE(group.limit(kLimit));
  ASSERT_TRUE(group.enter());
  const std::uint64_t before = headroom.bytes();
  {
    const std::string taken(64 * kMiB, 'x');
    EXPECT_EQ(taken.back(), 'x');
    // The kernel charges in batches of some hundred KiB a CPU; half is far outside of them.
    EXPECT_LT(headroom.bytes(), before - 32 * kMiB);
  }
  group.leave();
}

}  // namespace
}  // namespace uzram::os
