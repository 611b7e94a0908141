// `uzram sample`: its options, and the program with processes whose pages are known.

#include "cli/sample.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <CLI/Error.hpp>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/corpus.hpp"
#include "cli/command_line.hpp"
#include "program.hpp"
#include "support/process_with_pages.hpp"
#include "support/temporary_folder.hpp"

namespace uzram::cli {
namespace {

namespace fs = std::filesystem;
using test::Output;
using test::ProcessWithPages;
using test::Program;

// The options of `uzram sample`, through the program's own parser.
Result<SampleOptions> parse(std::vector<std::string> words) {
  CommandLine line;
  const auto app = make_app(line);
  words.insert(words.begin(), "sample");
  // It takes words from the end.
  std::reverse(words.begin(), words.end());
  app->parse(words);
  return parse_sample_options(line.sample);
}

TEST(SampleOptions, default_to_16_mebibytes_of_all_processes) {
  const auto options = parse({"--out", "x/a.pages"});
  ASSERT_TRUE(options.has_value()) << options.error().message;
  EXPECT_TRUE(options->request.pids.empty());
  EXPECT_EQ(options->request.pages, 4096U);
  EXPECT_EQ(options->out.path, "x/a.pages");
  EXPECT_FALSE(options->out.packed);
  EXPECT_FALSE(options->force);
}

TEST(SampleOptions, pid_repeats_and_size_is_rounded_up_to_a_page) {
  const auto options =
      parse({"--pid", "7", "--pid", "9", "--size", "8193", "--out", "a.pages.zst", "--force"});
  ASSERT_TRUE(options.has_value()) << options.error().message;
  EXPECT_EQ(options->request.pids, (std::vector<pid_t>{7, 9}));
  EXPECT_EQ(options->request.pages, 3U);
  EXPECT_TRUE(options->out.packed);
  EXPECT_TRUE(options->force);
}

TEST(SampleOptions, that_make_no_sense_are_refused_with_their_value) {
  const std::vector<std::vector<std::string>> cases = {
      {"--pid", "0"},  {"--pid", "-1"},   {"--pid", "redis"}, {"--pid", "7x"},
      {"--pid", ""},   {"--pages", "0"},  {"--pages", "1K"},  {"--pages", ""},
      {"--size", "0"}, {"--size", "16X"}, {"--size", ""},     {"--pid", "99999999999"}};
  for (std::vector<std::string> words : cases) {
    const std::string given = words[0] + " \"" + words[1] + "\"";
    words.insert(words.end(), {"--out", "a.pages"});
    const auto options = parse(words);
    ASSERT_FALSE(options.has_value()) << given;
    EXPECT_NE(options.error().message.find(given), std::string::npos) << options.error().message;
  }
  for (const std::string name : {"", "a", "a.zst", ".pages", "a.pages.gz", "dir/"}) {
    const auto options = parse({"--out", name});
    ASSERT_FALSE(options.has_value()) << name;
    EXPECT_NE(options.error().message.find("--out \"" + name + "\""), std::string::npos)
        << options.error().message;
  }
  EXPECT_THROW(parse({"--pages", "1", "--size", "4K", "--out", "a.pages"}), CLI::ParseError);
  EXPECT_THROW(parse({"--pid", "1"}), CLI::ParseError);
}

TEST(FormatSample, lists_the_processes_with_most_pages_first_and_counts_the_others) {
  bench::Sample sample;
  for (pid_t pid = 1; pid <= 10; ++pid) {
    sample.processes.push_back({pid, "p" + std::to_string(pid), static_cast<std::uint64_t>(pid)});
  }
  sample.bytes.resize(55 * bench::kDataPage);
  EXPECT_EQ(format_sample("x.pages", sample),
            "x.pages: 55 pages (220K) of p10 (pid 10): 10, p9 (pid 9): 9, p8 (pid 8): 8, "
            "p7 (pid 7): 7, p6 (pid 6): 6, p5 (pid 5): 5, p4 (pid 4): 4, p3 (pid 3): 3, "
            "2 more: 3\n");
}

class SampleProgram : public testing::Test {
 protected:
  [[nodiscard]] std::vector<std::string> of(pid_t pid, const std::string& out,
                                            const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"sample", "--pid", std::to_string(pid), "--out", out};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  [[nodiscard]] bool folder_is_empty() const { return fs::is_empty(folder_ / ""); }

  const test::TemporaryFolder folder_;
  const std::string out_ = folder_ / "s.pages";
};

// The numbers of the numbered pages of a file.
std::multiset<std::uint64_t> numbers_in(const std::string& path) {
  std::multiset<std::uint64_t> numbers;
  const auto bytes =
      bench::read_page_file(*bench::page_file(path), std::numeric_limits<std::uint64_t>::max());
  EXPECT_TRUE(bytes.has_value());
  for (std::size_t at = 0; bytes && at < bytes->size(); at += bench::kDataPage) {
    if (const auto number =
            ProcessWithPages::number_of(std::span(*bytes).subspan(at, bench::kDataPage))) {
      numbers.insert(*number);
    }
  }
  return numbers;
}

TEST_F(SampleProgram, writes_the_pages_of_a_process_and_says_whose_they_are) {
  const ProcessWithPages child(100);
  ASSERT_TRUE(child.is_ready());
  std::multiset<std::uint64_t> expected;
  for (std::uint64_t number = 0; number < 100; ++number) {
    expected.insert(number);
  }
  for (const std::string& out : {out_, out_ + ".zst"}) {
    Program program(of(child.pid(), out, {"--size", "1G"}));
    ASSERT_EQ(program.wait(), 0) << program.complaint();
    EXPECT_EQ(numbers_in(out), expected);
    EXPECT_TRUE(program.printed().starts_with(out + ": ")) << program.printed();
    EXPECT_NE(program.printed().find("(pid " + std::to_string(child.pid()) + "): "),
              std::string::npos)
        << program.printed();
    EXPECT_NE(program.complaint().find("secrets"), std::string::npos) << program.complaint();
    struct stat status {};
    ASSERT_EQ(::stat(out.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0600U);
  }
}

TEST_F(SampleProgram, takes_as_many_pages_as_asked_for) {
  const ProcessWithPages child(100);
  ASSERT_TRUE(child.is_ready());
  Program program(of(child.pid(), out_, {"--pages", "17"}));
  ASSERT_EQ(program.wait(), 0) << program.complaint();
  EXPECT_EQ(fs::file_size(out_), 17U * 4096U);
  EXPECT_NE(program.printed().find("17 pages (68K)"), std::string::npos) << program.printed();
}

TEST_F(SampleProgram, replaces_a_file_only_with_force) {
  const ProcessWithPages child(10);
  ASSERT_TRUE(child.is_ready());
  Program first(of(child.pid(), out_));
  ASSERT_EQ(first.wait(), 0) << first.complaint();
  const auto size = fs::file_size(out_);
  Program second(of(child.pid(), out_, {"--pages", "2"}));
  EXPECT_EQ(second.wait(), 1);
  EXPECT_NE(second.complaint().find(out_), std::string::npos) << second.complaint();
  EXPECT_NE(second.complaint().find("--force"), std::string::npos) << second.complaint();
  EXPECT_EQ(fs::file_size(out_), size);
  Program third(of(child.pid(), out_, {"--pages", "2", "--force"}));
  EXPECT_EQ(third.wait(), 0) << third.complaint();
  EXPECT_EQ(fs::file_size(out_), 8192U);
}

TEST_F(SampleProgram, of_a_pid_that_does_not_exist_fails_and_writes_nothing) {
  ProcessWithPages child(1);
  const pid_t pid = child.pid();
  child.end();
  Program program(of(pid, out_));
  EXPECT_EQ(program.wait(), 1);
  EXPECT_NE(program.complaint().find("pid " + std::to_string(pid)), std::string::npos)
      << program.complaint();
  EXPECT_TRUE(folder_is_empty());
}

// As a user who may read nothing of root's; who is no such user tries as oneself.
TEST_F(SampleProgram, of_another_users_process_says_whose_it_is_and_what_to_do) {
  const bool root = ::geteuid() == 0;
  const pid_t victim = root ? ::getpid() : 1;
  Program program(of(victim, out_), Output::captured,
                  root ? std::optional<uid_t>(65534) : std::nullopt);
  const int code = program.wait();
  if (code == Program::kCannotRun) {
    GTEST_SKIP() << "another user cannot run the program from this folder";
  }
  EXPECT_EQ(code, 1);
  for (const std::string& part : {"pid " + std::to_string(victim), std::string("belongs to root"),
                                  std::string("run as root")}) {
    EXPECT_NE(program.complaint().find(part), std::string::npos)
        << program.complaint() << " lacks " << part;
  }
  EXPECT_TRUE(folder_is_empty());
}

TEST_F(SampleProgram, that_cannot_write_names_the_file) {
  const ProcessWithPages child(1);
  ASSERT_TRUE(child.is_ready());
  Program nowhere(of(child.pid(), folder_ / "nowhere/s.pages"));
  EXPECT_EQ(nowhere.wait(), 1);
  EXPECT_NE(nowhere.complaint().find("nowhere/s.pages"), std::string::npos) << nowhere.complaint();
  Program full(of(child.pid(), out_), Output::full);
  EXPECT_EQ(full.wait(), 1);
  EXPECT_NE(full.complaint().find("standard output"), std::string::npos) << full.complaint();
}

}  // namespace
}  // namespace uzram::cli
