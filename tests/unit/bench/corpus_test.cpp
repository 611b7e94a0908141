#include "bench/corpus.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.hpp"
#include "support/temporary_folder.hpp"

namespace uzram::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

std::vector<std::byte> half_random(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> bytes(size);
  Random(seed).fill(std::span(bytes).first(size / 2));
  return bytes;
}

class CorpusFiles : public testing::Test {
 protected:
  // A page file made by this code.
  PageFile make(const char* name, const std::vector<std::byte>& bytes) const {
    const auto file = page_file(folder_ / name);
    EXPECT_TRUE(file.has_value());
    const auto written = write_page_file(*file, bytes, true);
    EXPECT_TRUE(written.has_value());
    return *file;
  }
  [[nodiscard]] std::string contents(const char* name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void put(const char* name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  // The error of loading `name`, which must name it.
  [[nodiscard]] Error refusal(const char* name) const {
    const auto sets = load_data_sets(folder_ / name);
    if (sets) {
      return {Errc::ok, 0, "loaded"};
    }
    EXPECT_NE(sets.error().message.find(folder_ / name), std::string::npos) << sets.error().message;
    return sets.error();
  }
  [[nodiscard]] std::vector<std::string> names_in_folder() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_ / "")) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  const test::TemporaryFolder folder_;
};

TEST_F(CorpusFiles, plain_and_packed_ones_read_back_what_was_written) {
  for (const std::size_t pages : {1, 33, 500}) {
    const std::vector<std::byte> bytes = half_random(pages * kDataPage, pages);
    for (const char* const name : {"a.pages", "a.pages.zst"}) {
      const auto read = read_page_file(make(name, bytes), kNoLimit);
      ASSERT_TRUE(read.has_value()) << read.error().message;
      EXPECT_TRUE(*read == bytes) << name << " of " << pages;
    }
  }
  EXPECT_LT(fs::file_size(folder_ / "a.pages.zst"), fs::file_size(folder_ / "a.pages"));
}

TEST_F(CorpusFiles, a_folder_gives_its_page_files_sorted_by_name_and_nothing_else) {
  make("zebra.pages", half_random(kDataPage, 1));
  make("ant.pages.zst", half_random(2 * kDataPage, 2));
  make("bee.v1.pages", half_random(3 * kDataPage, 3));
  put("README.md", "no pages");
  put(".pages", "no name");
  const auto sets = load_data_sets(folder_ / "");
  ASSERT_TRUE(sets.has_value()) << sets.error().message;
  std::vector<std::string> names;
  for (const auto& set : *sets) {
    names.push_back(set->name() + " " + std::to_string(set->pages()));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"ant 2", "bee.v1 3", "zebra 1"}));
}

TEST_F(CorpusFiles, one_file_alone_is_a_corpus) {
  make("ant.pages.zst", half_random(2 * kDataPage, 2));
  make("bee.pages", half_random(kDataPage, 3));
  const auto sets = load_data_sets(folder_ / "bee.pages");
  ASSERT_TRUE(sets.has_value()) << sets.error().message;
  ASSERT_EQ(sets->size(), 1U);
  EXPECT_EQ(sets->front()->name(), "bee");
}

TEST_F(CorpusFiles, of_several_zstd_frames_all_are_read) {
  const std::vector<std::byte> first = half_random(5 * kDataPage, 1);
  const std::vector<std::byte> second = half_random(7 * kDataPage, 2);
  make("a.pages.zst", first);
  make("b.pages.zst", second);
  put("c.pages.zst", contents("a.pages.zst") + contents("b.pages.zst"));
  const auto read = read_page_file(*page_file(folder_ / "c.pages.zst"), kNoLimit);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_EQ(read->size(), first.size() + second.size());
  EXPECT_TRUE(std::equal(first.begin(), first.end(), read->begin()));
  EXPECT_TRUE(std::equal(second.rbegin(), second.rend(), read->rbegin()));
}

TEST_F(CorpusFiles, a_packed_file_cut_anywhere_is_refused) {
  make("whole.pages.zst", half_random(40 * kDataPage, 4));
  const std::string whole = contents("whole.pages.zst");
  for (const std::size_t size : {std::size_t{1}, std::size_t{3}, std::size_t{5}, std::size_t{12},
                                 whole.size() / 2, whole.size() - 4, whole.size() - 1}) {
    put("cut.pages.zst", whole.substr(0, size));
    const Error error = refusal("cut.pages.zst");
    EXPECT_EQ(error.code, Errc::corrupt) << size << ": " << error.message;
  }
}

TEST_F(CorpusFiles, a_packed_file_with_a_changed_byte_is_refused) {
  make("whole.pages.zst", half_random(40 * kDataPage, 4));
  const std::string whole = contents("whole.pages.zst");
  for (std::size_t at = 0; at < whole.size(); at += whole.size() / 50) {
    std::string broken = whole;
    broken[at] = static_cast<char>(broken[at] ^ 0x55);
    put("broken.pages.zst", broken);
    const Error error = refusal("broken.pages.zst");
    EXPECT_NE(error.code, Errc::ok) << at << ": " << error.message;
  }
}

TEST_F(CorpusFiles, garbage_behind_the_frame_is_refused) {
  make("whole.pages.zst", half_random(2 * kDataPage, 4));
  put("more.pages.zst", contents("whole.pages.zst") + "more");
  EXPECT_EQ(refusal("more.pages.zst").code, Errc::corrupt);
}

TEST_F(CorpusFiles, not_whole_pages_are_refused_and_the_size_is_told) {
  put("odd.pages", std::string(kDataPage + 1, 'x'));
  const Error error = refusal("odd.pages");
  EXPECT_EQ(error.code, Errc::invalid_argument);
  EXPECT_NE(error.message.find("4097"), std::string::npos) << error.message;
  make("odd.pages.zst", std::vector<std::byte>(100));
  EXPECT_NE(refusal("odd.pages.zst").message.find("100"), std::string::npos);
}

TEST_F(CorpusFiles, empty_ones_are_refused) {
  put("empty.pages", "");
  put("empty.pages.zst", "");
  EXPECT_EQ(refusal("empty.pages").code, Errc::invalid_argument);
  EXPECT_EQ(refusal("empty.pages.zst").code, Errc::invalid_argument);
}

TEST_F(CorpusFiles, one_bad_file_of_a_folder_is_named) {
  make("a.pages", half_random(kDataPage, 1));
  put("b.pages", "short");
  const auto sets = load_data_sets(folder_ / "");
  ASSERT_FALSE(sets.has_value());
  EXPECT_NE(sets.error().message.find("b.pages"), std::string::npos) << sets.error().message;
}

TEST_F(CorpusFiles, missing_and_empty_folders_and_strange_names_are_refused) {
  EXPECT_EQ(refusal("nowhere").saved_errno, ENOENT);
  fs::create_directory(folder_ / "empty");
  const Error error = refusal("empty");
  EXPECT_EQ(error.code, Errc::not_found);
  EXPECT_NE(error.message.find("*.pages.zst"), std::string::npos) << error.message;
  put("pages.tar", "x");
  EXPECT_EQ(refusal("pages.tar").code, Errc::invalid_argument);
  fs::create_directory(folder_ / "empty/folder.pages");
  EXPECT_EQ(refusal("empty/folder.pages").code, Errc::not_found);
  const auto sets = load_data_sets(folder_ / "empty");
  ASSERT_FALSE(sets.has_value());
  EXPECT_NE(sets.error().message.find("folder.pages"), std::string::npos);
}

TEST_F(CorpusFiles, a_pipe_is_refused_and_not_waited_for) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe.pages").c_str(), 0600), 0);
  EXPECT_EQ(refusal("pipe.pages").code, Errc::invalid_argument);
}

TEST_F(CorpusFiles, a_name_with_and_without_zst_in_one_folder_is_refused) {
  make("a.pages", half_random(kDataPage, 1));
  make("a.pages.zst", half_random(kDataPage, 1));
  const auto sets = load_data_sets(folder_ / "");
  ASSERT_FALSE(sets.has_value());
  EXPECT_NE(sets.error().message.find("a.pages"), std::string::npos) << sets.error().message;
}

TEST_F(CorpusFiles, more_than_there_is_room_for_is_refused) {
  const std::vector<std::byte> bytes(100 * kDataPage);
  for (const char* const name : {"a.pages", "a.pages.zst"}) {
    const PageFile file = make(name, bytes);
    EXPECT_TRUE(read_page_file(file, bytes.size()).has_value());
    const auto read = read_page_file(file, bytes.size() - 1);
    ASSERT_FALSE(read.has_value());
    EXPECT_EQ(read.error().code, Errc::no_space);
    EXPECT_NE(read.error().message.find(name), std::string::npos) << read.error().message;
  }
  // Larger than any memory: refused before any of it is read.
  fs::resize_file(folder_ / "a.pages", std::uintmax_t{1} << 43);
  EXPECT_EQ(refusal("a.pages").code, Errc::no_space);
}

TEST_F(CorpusFiles, what_the_user_may_not_read_is_named) {
  make("secret.pages", half_random(kDataPage, 1));
  fs::permissions(folder_ / "",
                  fs::perms::owner_all | fs::perms::others_exec | fs::perms::others_read);
  fs::permissions(folder_ / "secret.pages", fs::perms::none);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) {
      ::_exit(2);
    }
    ::_exit(refusal("secret.pages").saved_errno == EACCES ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(CorpusFiles, are_written_for_their_owner_alone_and_leave_nothing_beside_them) {
  make("a.pages", half_random(kDataPage, 1));
  struct stat status {};
  ASSERT_EQ(::stat((folder_ / "a.pages").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
  EXPECT_EQ(names_in_folder(), std::vector<std::string>{"a.pages"});
}

TEST_F(CorpusFiles, one_that_exists_is_replaced_only_when_asked_to) {
  const PageFile file = make("a.pages", half_random(kDataPage, 1));
  const std::string before = contents("a.pages");
  const auto refused = write_page_file(file, half_random(kDataPage, 2), false);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::exists);
  EXPECT_EQ(contents("a.pages"), before);
  ASSERT_TRUE(write_page_file(file, half_random(kDataPage, 2), true).has_value());
  EXPECT_NE(contents("a.pages"), before);
  EXPECT_EQ(names_in_folder(), std::vector<std::string>{"a.pages"});
}

TEST_F(CorpusFiles, a_folder_that_does_not_exist_cannot_be_written_to) {
  const auto written =
      write_page_file(*page_file(folder_ / "nowhere/a.pages"), half_random(kDataPage, 1), false);
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().saved_errno, ENOENT);
  EXPECT_NE(written.error().message.find("nowhere/a.pages"), std::string::npos);
}

}  // namespace
}  // namespace uzram::bench
