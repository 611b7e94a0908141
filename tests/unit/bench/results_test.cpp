#include "bench/results.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/temporary_folder.hpp"
#include "unit/bench/sample_results.hpp"

namespace uzram::bench {
namespace {

using nlohmann::ordered_json;

ResultFile full_file() {
  ResultFile file = sample_file("streams");
  file.notes = {"one", "two"};
  file.interrupted = true;
  Row row = sample_row("zram:streams=4", "rw", 1234.5);
  row.target = "zram";
  row.level = -3;
  row.mode = "nowait";
  row.streams = 0;
  row.state = "stored";
  row.threads = 7;
  row.iodepth = 16;
  row.block_size = 65536;
  row.ratio_to_codec = Spread({0.5, 0.25});
  row.read_mb_per_s = Spread({600});
  row.write_mb_per_s = Spread({634.5});
  row.counters = {{"cycles", 1e9}, {"instructions", 2.5e9}};
  row.compr_ratio = 2.5;
  row.mem_ratio = 2.25;
  row.mem_used = 1U << 20;
  row.peak_memory = std::uint64_t{1} << 40;
  row.latency = Latency{1, 2.5, 3, 4, 5, 6};
  row.submit_latency = Latency{10, 20.5, 30, 40, 50, 60};
  file.rows = {row, sample_row("engine", "read", 10)};
  return file;
}

std::string failure_of(const std::string& text) {
  const Result<ResultFile> results = parse_results(text);
  EXPECT_FALSE(results.has_value()) << text;
  if (results) {
    return "";
  }
  EXPECT_EQ(results.error().code, Errc::invalid_argument);
  return results.error().message;
}

std::string failure_with(const char* field, const ordered_json& value) {
  ordered_json json = to_json(full_file());
  json["rows"][1][field] = value;
  return failure_of(json.dump());
}

TEST(Spread, median_is_the_middle_of_the_sorted_rounds) {
  EXPECT_EQ(Spread({5, 1, 3}).median(), 3);
  EXPECT_EQ(Spread({4, 1, 3, 2}).median(), 2.5);
  EXPECT_EQ(Spread({7}).median(), 7);
  EXPECT_EQ(Spread({5, 1, 3}).min(), 1);
  EXPECT_EQ(Spread({3, 5, 1}).max(), 5);
  EXPECT_EQ(Spread({3, 5, 1}).values(), (std::vector<double>{3, 5, 1}));
}

TEST(Results, json_holds_every_field_and_comes_back_the_same) {
  const ordered_json json = to_json(full_file());
  const Result<ResultFile> back = parse_results(json.dump());
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(to_json(*back), json);
  EXPECT_TRUE(back->interrupted);
  EXPECT_EQ(back->rows[0].level, -3);
  EXPECT_EQ(back->rows[0].streams, 0U);
  EXPECT_EQ(back->rows[0].peak_memory, std::uint64_t{1} << 40);
  EXPECT_EQ(back->rows[0].submit_latency->p999_ns, 50U);
  EXPECT_EQ(back->rows[0].ratio_to_codec.values(), (std::vector<double>{0.5, 0.25}));
  EXPECT_FALSE(back->rows[1].level.has_value());
  EXPECT_TRUE(back->rows[1].read_mb_per_s.empty());
  EXPECT_TRUE(back->rows[1].counters.empty());
}

TEST(Results, json_has_the_documented_shape) {
  const ordered_json json = to_json(full_file());
  std::vector<std::string> names;
  for (const auto& [name, value] : json.items()) {
    names.push_back(name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"format", "machine", "suite", "parameters", "notes",
                                             "interrupted", "rows"}));
  EXPECT_EQ(json["format"], "uzram-bench-1");
  const ordered_json& row = json["rows"][0];
  EXPECT_EQ(
      row["ratio_to_codec"],
      ordered_json::parse(R"({"median": 0.375, "min": 0.25, "max": 0.5, "values": [0.5, 0.25]})"));
  EXPECT_EQ(
      row["latency_ns"],
      ordered_json::parse(R"({"min": 1, "avg": 2.5, "p50": 3, "p99": 4, "p999": 5, "max": 6})"));
  EXPECT_EQ(row["submit_latency_ns"]["max"], 60);
  EXPECT_EQ(json["rows"][1]["latency_ns"], nullptr);
  EXPECT_EQ(json["rows"][1]["write_mb_per_s"], nullptr);
  EXPECT_EQ(json["rows"][1]["counters"], "unavailable");
}

TEST(Results, numbers_may_be_whole_or_not_as_other_languages_write_them) {
  ordered_json json = to_json(full_file());
  ordered_json& row = json["rows"][0];
  row["block_size"] = 4096.0;
  row["threads"] = 3.0;
  row["level"] = 5.0;
  row["user_s"] = 2;
  row["latency_ns"]["avg"] = 7;
  row["mb_per_s"] = {{"values", {1, 2.5, 3}}};
  row["of_a_later_version"] = {1, 2};
  json["also"] = "unknown";
  const Result<ResultFile> back = from_json(json);
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(back->rows[0].block_size, 4096U);
  EXPECT_EQ(back->rows[0].threads, 3U);
  EXPECT_EQ(back->rows[0].level, 5);
  EXPECT_EQ(back->rows[0].user_s, 2);
  EXPECT_EQ(back->rows[0].mb_per_s.median(), 2.5);
}

TEST(Results, each_missing_field_is_named_with_its_row) {
  const ordered_json json = to_json(full_file());
  for (const auto& [name, value] : json["rows"][1].items()) {
    ordered_json without = json;
    without["rows"][1].erase(name);
    EXPECT_EQ(failure_of(without.dump()), "row 2: field \"" + name + "\" is missing");
  }
  for (const auto& [name, value] : json.items()) {
    ordered_json without = json;
    without.erase(name);
    EXPECT_NE(failure_of(without.dump()).find("\"" + name + "\""), std::string::npos);
  }
}

TEST(Results, a_field_of_another_type_is_named_with_what_it_should_be) {
  EXPECT_EQ(failure_with("op", 4), "row 2: field \"op\": expected a string, found number");
  EXPECT_EQ(failure_with("threads", "4"),
            "row 2: field \"threads\": expected a whole number from 0 to 4294967295, found string");
  for (const ordered_json& value :
       {ordered_json(-1), ordered_json(1.5), ordered_json(4294967296), ordered_json(1e300),
        ordered_json(nullptr), ordered_json(true)}) {
    EXPECT_NE(failure_with("threads", value), "");
  }
  EXPECT_NE(failure_with("level", 1e10), "");
  EXPECT_NE(failure_with("level", 1.5), "");
  EXPECT_NE(failure_with("user_s", -1), "");
  EXPECT_NE(failure_with("mem_used", "1K"), "");
  EXPECT_NE(failure_with("latency_ns", {{"min", 1}}), "");
  EXPECT_NE(failure_with("latency_ns", 5), "");
  EXPECT_NE(failure_with("counters", "none"), "");
  EXPECT_NE(failure_with("counters", {{"cycles", "many"}}), "");
}

TEST(Results, a_spread_needs_its_values) {
  for (const char* text :
       {R"({"median": 1, "min": 1, "max": 1})", R"({"values": []})", R"({"values": 3})",
        R"({"values": ["3"]})", R"({"values": [-1]})", R"([1, 2])", "3"}) {
    EXPECT_NE(failure_with("mb_per_s", ordered_json::parse(text)).find("\"values\""),
              std::string::npos)
        << text;
  }
}

TEST(Results, hostile_text_is_refused) {
  for (const char* text : {"", "{", "[]", "null", "3", "\"x\"", "{}", R"({"format": 1})",
                           R"({"format": "uzram-bench-2"})", "{\"a\": \"\xff\"}",
                           R"({"format": "uzram-bench-1", "rows": 3})"}) {
    EXPECT_NE(failure_of(text), "") << text;
  }
  ordered_json json = to_json(full_file());
  json["rows"] = {1};
  EXPECT_EQ(failure_of(json.dump()), "row 1: expected an object, found number");
  json = to_json(full_file());
  json["notes"] = "one";
  EXPECT_NE(failure_of(json.dump()), "");
  json = to_json(full_file());
  json["machine"] = {1};
  EXPECT_NE(failure_of(json.dump()), "");
  std::string overflow = to_json(full_file()).dump();
  overflow.replace(overflow.find("1234.5"), 6, "1e9999");
  EXPECT_NE(failure_of(overflow), "");
}

TEST(Results, deep_nesting_and_endless_objects_are_refused) {
  const std::string deep(1000000, '[');
  EXPECT_NE(failure_of(deep).find("nesting"), std::string::npos);
  EXPECT_NE(failure_of("{\"machine\": " + deep + std::string(1000000, ']') + "}").find("nesting"),
            std::string::npos);
  std::string many = "{";
  for (int i = 0; i < 200000; ++i) {
    many += "\"" + std::to_string(i) + "\": 1, ";
  }
  EXPECT_NE(failure_of(many + "\"z\": 1}").find("members"), std::string::npos);
  // Also when it was built otherwise than by parsing.
  ordered_json json = to_json(full_file());
  for (int i = 0; i < 100; ++i) {
    json["machine"] = {{"m", json["machine"]}};
  }
  EXPECT_FALSE(from_json(json).has_value());
}

TEST(Results, a_file_is_written_and_read_back) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "results.json";
  const ResultFile file = full_file();
  ASSERT_TRUE(write_results(path, sample_file("old")).has_value());
  ASSERT_TRUE(write_results(path, file).has_value());
  const Result<ResultFile> back = read_results(path);
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(to_json(*back), to_json(file));
  // Nothing else stays behind.
  const std::filesystem::directory_iterator entries(folder / "");
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

TEST(Results, a_link_to_a_file_stays_a_link) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(write_results(folder / "real.json", sample_file("old")).has_value());
  std::filesystem::create_symlink("real.json", folder / "link.json");
  ASSERT_TRUE(write_results(folder / "link.json", full_file()).has_value());
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link.json"));
  EXPECT_EQ(read_results(folder / "real.json")->suite, "streams");
}

TEST(Results, whether_a_file_can_be_written_is_known_before_there_are_results) {
  const test::TemporaryFolder folder;
  EXPECT_TRUE(check_results_file(folder / "new.json").has_value());
  EXPECT_FALSE(std::filesystem::exists(folder / "new.json"));
  std::ofstream(folder / "old.json") << "old";
  EXPECT_TRUE(check_results_file(folder / "old.json").has_value());
  EXPECT_EQ(std::filesystem::file_size(folder / "old.json"), 3U);
  EXPECT_TRUE(check_results_file("/dev/full").has_value());
  // Nothing else stays behind.
  const std::filesystem::directory_iterator entries(folder / "");
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);

  EXPECT_EQ(check_results_file(folder / "no/such").error().message,
            "results \"" + (folder / "no/such") + "\": create: No such file or directory");
  // Where root may do anything, and still nothing can be made.
  EXPECT_EQ(check_results_file("/proc/results.json").error().code, Errc::system);
  std::filesystem::create_symlink("/proc/version", folder / "link.json");
  EXPECT_EQ(check_results_file(folder / "link.json").error().code, Errc::system);
  EXPECT_EQ(check_results_file(folder / "").error().code, Errc::invalid_argument);
  EXPECT_EQ(write_results(folder / "", full_file()).error().code, Errc::invalid_argument);
}

TEST(Results, a_device_is_written_to_and_not_replaced) {
  EXPECT_TRUE(write_results("/dev/null", full_file()).has_value());
  struct stat status {};
  ASSERT_EQ(::stat("/dev/null", &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
}

TEST(Results, a_name_that_is_not_utf8_is_written_with_a_replacement) {
  const test::TemporaryFolder folder;
  ResultFile file = full_file();
  file.rows[0].label = "/dev/\xff";
  ASSERT_TRUE(write_results(folder / "r.json", file).has_value());
  const Result<ResultFile> back = read_results(folder / "r.json");
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(back->rows[0].label, "/dev/\xef\xbf\xbd");
}

TEST(Results, messages_about_files_name_them) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(read_results(folder / "none").error().message,
            "results \"" + (folder / "none") + "\": open: No such file or directory");
  EXPECT_EQ(write_results(folder / "no/such", full_file()).error().code, Errc::system);
  std::ofstream(folder / "bad") << "{";
  EXPECT_EQ(
      read_results(folder / "bad").error().message,
      "results \"" + (folder / "bad") + "\": expected JSON, as `uzram bench --json` writes it");
  EXPECT_EQ(read_results(folder / "").error().code, Errc::system);
}

}  // namespace
}  // namespace uzram::bench
