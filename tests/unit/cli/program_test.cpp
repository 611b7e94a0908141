// The program as a process: what it prints, its exit codes, its sockets, and how signals end it.

#include "program.hpp"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include "support/temporary_folder.hpp"

namespace uzram {
namespace {

namespace fs = std::filesystem;
using test::Output;
using test::Program;

class UzramProgram : public testing::Test {
 protected:
  // `uzram serve` with its sockets in the test's folder.
  [[nodiscard]] std::vector<std::string> serve(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"serve", "--control", control_};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  [[nodiscard]] nlohmann::json stat_json() const {
    Program stat({"stat", "--json", "--control", control_});
    return stat.wait() == 0 ? nlohmann::json::parse(stat.printed(), nullptr, false)
                            : nlohmann::json();
  }
  // Polls the server, for when it cannot say that it is ready.
  [[nodiscard]] bool answers() const {
    for (int attempt = 0; attempt < 1000; ++attempt) {
      if (stat_json().is_array()) {
        return true;
      }
      ::poll(nullptr, 0, 10);
    }
    return false;
  }
  [[nodiscard]] bool sockets_are_gone() const {
    return !fs::exists(control_) && !fs::exists(folder_ / "uzram0.nbd");
  }

  const test::TemporaryFolder folder_;
  const std::string control_ = folder_ / "control.sock";
};

TEST_F(UzramProgram, serve_prints_facts_and_addresses_then_ready) {
  Program server(serve({"--device", "name=a,size=1M", "--device",
                        "name=b,size=2M,algorithm=zstd,mode=async,workers=2,mem-limit=1M,block-"
                        "size=512,read-only"}));
  ASSERT_TRUE(server.wait_ready());
  const std::string uri = "nbd+unix:///a?socket=" + (folder_ / "a.nbd");
  for (const std::string& part :
       {std::string("a: 1M, lz4 level 1, mode auto, logical block 4096\n"),
        std::string("b: 2M, zstd level 3, mode async, logical block 512, 2 workers, mem-limit "
                    "1M, read-only\n"),
        "  " + uri + "\n", "  nbdinfo '" + uri + "'\n", "  qemu-img info '" + uri + "'\n",
        " && nbdfuse '/mnt/a/disk' '" + uri + "'\n"}) {
    EXPECT_NE(server.printed().find(part), std::string::npos)
        << server.printed() << " lacks " << part;
  }
  const nlohmann::json devices = stat_json();
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[0].at("exports"), nlohmann::json({uri}));
  EXPECT_EQ(devices[1].at("mem_limit"), 1U << 20);
}

TEST_F(UzramProgram, each_stop_signal_ends_serve_cleanly_and_removes_the_sockets) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    Program server(serve({"--size", "1M"}));
    ASSERT_TRUE(server.wait_ready());
    ASSERT_TRUE(fs::exists(control_));
    ASSERT_TRUE(fs::exists(folder_ / "uzram0.nbd"));
    server.signal(number);
    EXPECT_EQ(server.wait(), 0) << "signal " << number;
    EXPECT_TRUE(sockets_are_gone()) << "signal " << number;
    EXPECT_EQ(server.complaint(), "");
  }
}

TEST_F(UzramProgram, serve_lives_with_a_closed_or_full_standard_output) {
  for (const Output output : {Output::closed, Output::full}) {
    Program server(serve({"--size", "1M"}), output);
    ASSERT_TRUE(answers());
    server.signal(SIGTERM);
    EXPECT_EQ(server.wait(), 0);
    EXPECT_TRUE(sockets_are_gone());
  }
}

TEST_F(UzramProgram, a_second_server_is_refused_and_the_first_one_unharmed) {
  Program first(serve({"--size", "1M"}));
  ASSERT_TRUE(first.wait_ready());
  Program second(serve({"--size", "2M"}));
  EXPECT_EQ(second.wait(), 1);
  EXPECT_NE(second.complaint().find("EBUSY"), std::string::npos) << second.complaint();
  EXPECT_NE(second.complaint().find(control_), std::string::npos) << second.complaint();
  EXPECT_TRUE(fs::exists(folder_ / "uzram0.nbd"));
  EXPECT_EQ(stat_json().at(0).at("disksize"), 1U << 20);
}

TEST_F(UzramProgram, a_server_takes_the_sockets_of_a_killed_one) {
  {
    Program killed(serve({"--size", "1M"}));
    ASSERT_TRUE(killed.wait_ready());
  }
  ASSERT_TRUE(fs::exists(control_));
  ASSERT_TRUE(fs::exists(folder_ / "uzram0.nbd"));
  Program next(serve({"--size", "2M"}));
  ASSERT_TRUE(next.wait_ready());
  EXPECT_EQ(stat_json().at(0).at("disksize"), 2U << 20);
}

TEST_F(UzramProgram, a_server_that_cannot_start_leaves_no_socket) {
  Program server(serve({"--size", "1M", "--nbd", "unix:/dev/null"}));
  EXPECT_EQ(server.wait(), 1);
  EXPECT_NE(server.complaint().find("/dev/null"), std::string::npos) << server.complaint();
  EXPECT_TRUE(sockets_are_gone());
}

TEST_F(UzramProgram, stat_without_a_server_says_so) {
  Program stat({"stat", "--control", control_});
  EXPECT_EQ(stat.wait(), 1);
  EXPECT_NE(stat.complaint().find(control_), std::string::npos) << stat.complaint();
  EXPECT_NE(stat.complaint().find("uzram serve"), std::string::npos) << stat.complaint();
}

TEST_F(UzramProgram, stat_fails_when_its_output_cannot_be_written) {
  Program server(serve({"--size", "1M"}));
  ASSERT_TRUE(server.wait_ready());
  Program stat({"stat", "--control", control_}, Output::full);
  EXPECT_EQ(stat.wait(), 1);
  EXPECT_NE(stat.complaint().find("standard output"), std::string::npos) << stat.complaint();
}

TEST_F(UzramProgram, version_and_help_are_printed_and_succeed) {
  Program version({"--version"});
  EXPECT_EQ(version.wait(), 0);
  EXPECT_EQ(version.printed(), "uzram " UZRAM_EXPECTED_VERSION "\n");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--help"}, {"serve", "--help"}, {"stat", "--help"}}) {
    Program help(words);
    EXPECT_EQ(help.wait(), 0);
    EXPECT_NE(help.printed().find("Usage: uzram"), std::string::npos);
  }
}

TEST_F(UzramProgram, a_wrong_command_line_is_named_and_exits_with_2) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "serve, stat"},
      {{"bogus"}, "bogus"},
      {{"serve"}, "--size"},
      {{"serve", "--bogus"}, "--bogus"},
      {{"serve", "--size", "4X"}, "4X"},
      {{"stat", "--output", "FOO"}, "FOO"},
      {{"stat", "--json", "--raw"}, "--raw"}};
  for (const auto& [words, part] : cases) {
    Program program(words);
    EXPECT_EQ(program.wait(), 2) << part;
    EXPECT_EQ(program.printed(), "") << part;
    EXPECT_TRUE(program.complaint().starts_with("uzram: ")) << program.complaint();
    EXPECT_NE(program.complaint().find(part), std::string::npos) << program.complaint();
  }
}

}  // namespace
}  // namespace uzram
