#include "cli/stat.hpp"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/stat_columns.hpp"
#include "control/api.hpp"

namespace uzram::cli {
namespace {

// What the control socket answers for two devices: the API's own objects, so that the columns and
// the fields cannot drift apart.
std::string two_devices() {
  control::DeviceEntry entry;
  DeviceOptions options;
  DeviceStats stats;
  entry.name = "uzram0";
  entry.exports = {"nbd://one", "nbd://two"};
  options.disksize_bytes = std::uint64_t{1} << 30;
  options.level = 1;
  auto list = nlohmann::ordered_json::array();
  list.push_back(control::device_object(entry, options, stats));
  entry.name = "swap";
  entry.exports.clear();
  entry.node = "/dev/ublkb9";
  options.algorithm = "zstd";
  options.max_comp_streams = 4;
  options.checksum = true;
  options.reserve_bytes = 1U << 20;
  stats.orig_data_size = 6U << 20;
  stats.compr_data_size = 1572864;
  stats.mem_used_total = 2U << 20;
  stats.mem_limit = 8U << 20;
  stats.mem_used_max = 3U << 20;
  stats.same_pages = 1500;
  stats.pages_compacted = 17;
  stats.huge_pages = 5;
  stats.corrupt_pages = 2;
  stats.table_bytes = 12288;
  list.push_back(control::device_object(entry, options, stats));
  return list.dump();
}

std::string formatted(const StatArguments& arguments) {
  const auto text = format_stat(arguments, two_devices());
  EXPECT_TRUE(text.has_value()) << text.error().message;
  return text ? *text : "";
}

TEST(Stat, prints_zramctl_s_columns_by_default) {
  EXPECT_EQ(formatted({}),
            "NAME   NODE        ALGORITHM DISKSIZE DATA COMPR TOTAL STREAMS MOUNTPOINT\n"
            "uzram0 -           lz4             1G   0B    0B    0B       0\n"
            "swap   /dev/ublkb9 zstd            1G   6M  1.5M    2M       4\n");
}

TEST(Stat, prints_every_column_from_its_field) {
  StatArguments arguments;
  arguments.all_columns = true;
  arguments.raw = true;
  EXPECT_EQ(
      formatted(arguments),
      "NAME NODE DISKSIZE DATA COMPR ALGORITHM STREAMS ZERO-PAGES TOTAL MEM-LIMIT MEM-USED "
      "RESERVE MIGRATED COMP-RATIO MOUNTPOINT TABLE HUGE CHECKSUM CORRUPT MODE WORKERS EXPORTS\n"
      "uzram0 - 1G 0B 0B lz4 0 0 0B 0B 0B 0B 0 -  0B 0 off 0 auto 0 nbd://one,nbd://two\n"
      "swap /dev/ublkb9 1G 6M 1.5M zstd 4 1500 2M 8M 3M 1M 17 3.00  12K 5 on 2 auto 0 \n");
}

TEST(Stat, prints_chosen_columns_in_either_case_in_the_order_given) {
  StatArguments arguments;
  arguments.columns = "total,NAME,Total";
  arguments.no_headings = true;
  arguments.bytes = true;
  EXPECT_EQ(formatted(arguments), "      0 uzram0       0\n2097152 swap   2097152\n");
}

TEST(Stat, bytes_leave_counts_alone) {
  StatArguments arguments;
  arguments.columns = "DISKSIZE,ZERO-PAGES";
  arguments.bytes = true;
  arguments.raw = true;
  arguments.names = {"swap"};
  EXPECT_EQ(formatted(arguments), "DISKSIZE ZERO-PAGES\n1073741824 1500\n");
}

TEST(Stat, prints_named_devices_in_the_order_called) {
  StatArguments arguments;
  arguments.columns = "NAME";
  arguments.no_headings = true;
  arguments.names = {"swap", "uzram0"};
  EXPECT_EQ(formatted(arguments), "swap\nuzram0\n");
}

TEST(Stat, json_is_the_array_of_the_API) {
  StatArguments arguments;
  arguments.json = true;
  EXPECT_EQ(nlohmann::json::parse(formatted(arguments)), nlohmann::json::parse(two_devices()));
  arguments.names = {"swap"};
  const auto one = nlohmann::json::parse(formatted(arguments));
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0], nlohmann::json::parse(two_devices())[1]);
}

TEST(Stat, an_unknown_column_is_answered_with_those_there_are) {
  StatArguments arguments;
  for (const char* const columns : {"NAME,FOO", "NAM", "NAME,", ",NAME"}) {
    arguments.columns = columns;
    const auto text = format_stat(arguments, two_devices());
    ASSERT_FALSE(text.has_value()) << columns;
    EXPECT_NE(text.error().message.find("COMP-RATIO"), std::string::npos);
  }
}

TEST(Stat, an_unknown_device_is_answered_with_those_there_are) {
  StatArguments arguments;
  arguments.names = {"nobody"};
  const auto text = format_stat(arguments, two_devices());
  ASSERT_FALSE(text.has_value());
  EXPECT_EQ(text.error().code, Errc::not_found);
  EXPECT_NE(text.error().message.find("\"nobody\""), std::string::npos);
  EXPECT_NE(text.error().message.find("uzram0, swap"), std::string::npos);
}

TEST(Stat, an_answer_of_another_form_is_refused) {
  for (const char* const answer : {"", "{}", "no JSON", "[{}]", "[1]"}) {
    EXPECT_FALSE(format_stat({}, answer).has_value()) << answer;
  }
}

}  // namespace
}  // namespace uzram::cli
