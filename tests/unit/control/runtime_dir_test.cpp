#include "control/runtime_dir.hpp"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/temporary_folder.hpp"

namespace uzram::control {
namespace {

constexpr uid_t kNobody = 65534;

mode_t mode_of(const std::string& path) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0 ? found.st_mode & 07777U : 0U;
}

TEST(RuntimeDir, is_below_run_for_root_whatever_the_environment) {
  EXPECT_EQ(runtime_dir_of(0, nullptr), "/run/uzram");
  EXPECT_EQ(runtime_dir_of(0, "/run/user/0"), "/run/uzram");
}

TEST(RuntimeDir, is_below_XDG_RUNTIME_DIR_for_users) {
  EXPECT_EQ(runtime_dir_of(1000, "/run/user/1000"), "/run/user/1000/uzram");
}

TEST(RuntimeDir, is_below_tmp_without_an_absolute_XDG_RUNTIME_DIR) {
  EXPECT_EQ(runtime_dir_of(1000, nullptr), "/tmp/uzram-1000");
  EXPECT_EQ(runtime_dir_of(1000, ""), "/tmp/uzram-1000");
  EXPECT_EQ(runtime_dir_of(1000, "relative"), "/tmp/uzram-1000");
}

TEST(RuntimeDir, is_made_for_its_owner_only) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "dir";
  const mode_t before = ::umask(0);
  const auto made = make_runtime_dir(path);
  ::umask(before);
  ASSERT_TRUE(made.has_value()) << made.error().message;
  EXPECT_EQ(mode_of(path), 0700U);
}

TEST(RuntimeDir, an_open_one_of_ours_is_closed_to_others) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "dir";
  ASSERT_EQ(::mkdir(path.c_str(), 0755), 0);
  const auto made = make_runtime_dir(path);
  ASSERT_TRUE(made.has_value()) << made.error().message;
  EXPECT_EQ(mode_of(path), 0700U);
}

TEST(RuntimeDir, of_someone_else_is_refused) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can give a directory away";
  }
  const test::TemporaryFolder folder;
  const std::string path = folder / "dir";
  ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
  ASSERT_EQ(::chown(path.c_str(), kNobody, kNobody), 0);
  for (const auto& result : {make_runtime_dir(path), check_runtime_dir(path)}) {
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, Errc::read_only);
    EXPECT_NE(result.error().message.find(path), std::string::npos);
    EXPECT_NE(result.error().message.find("65534"), std::string::npos);
  }
}

TEST(RuntimeDir, a_symbolic_link_is_refused) {
  const test::TemporaryFolder folder;
  const std::string target = folder / "target";
  const std::string link = folder / "link";
  ASSERT_EQ(::mkdir(target.c_str(), 0755), 0);
  std::filesystem::create_symlink(target, link);
  for (const auto& result : {make_runtime_dir(link), check_runtime_dir(link)}) {
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, Errc::exists);
  }
  EXPECT_EQ(mode_of(target), 0755U);
}

TEST(RuntimeDir, a_file_is_refused) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "file";
  std::ofstream(path) << "x";
  const auto made = make_runtime_dir(path);
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code, Errc::exists);
}

TEST(RuntimeDir, a_missing_parent_is_told) {
  const test::TemporaryFolder folder;
  const auto made = make_runtime_dir(folder / "missing/dir");
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().saved_errno, ENOENT);
  EXPECT_NE(made.error().message.find("missing/dir"), std::string::npos);
}

TEST(RuntimeDir, clients_do_not_mind_an_absent_one) {
  const test::TemporaryFolder folder;
  EXPECT_TRUE(check_runtime_dir(folder / "absent").has_value());
}

}  // namespace
}  // namespace uzram::control
