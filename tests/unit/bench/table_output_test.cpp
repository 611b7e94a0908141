#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bench/outputs.hpp"
#include "bench/result_cells.hpp"
#include "unit/bench/sample_results.hpp"

namespace uzram::bench {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

ResultFile two_targets() {
  ResultFile file = sample_file("pages");
  Row engine = sample_row("engine", "read", 1000);
  engine.state = "holes";
  Row zram = sample_row("zram", "read", 500);
  zram.state = "holes";
  zram.ratio_to_first = Spread({0.5, 0.49, 0.52});
  Row noisy = sample_row("zram#2", "read", 1000);
  noisy.state = "holes";
  noisy.ratio_to_first = Spread({0.98, 1.01, 1.02});
  file.rows = {engine, zram, noisy};
  return file;
}

TEST(TableOutput, a_table_has_a_line_for_each_target_with_its_numbers) {
  const std::string text = format_tables(two_targets());
  EXPECT_TRUE(has(text,
                  "== cc1plus, 4K blocks, iodepth 1, lz4, 1 job\n"
                  "OP           TARGET MB/S  MIN-MAX IOPS RATIO MIN-MAX     ELAPSED  USER   SYS "
                  "CSW\n"
                  "read (holes) engine 1000 970-1020 244k  1.00               0.537 0.250 1.500  "
                  "42\n"
                  "read (holes) zram    500  485-510 122k  0.50 0.49-0.52     1.074 0.250 1.500  "
                  "42\n"
                  "read (holes) zram#2 1000 970-1020 244k  1.01 0.98-1.02 =   0.537 0.250 1.500  "
                  "42\n"))
      << text;
}

TEST(TableOutput, the_heading_tells_the_machine_the_suite_and_the_paths) {
  ResultFile file = two_targets();
  file.interrupted = true;
  file.notes = {"zram has no lz4hc"};
  const std::string text = format_tables(file);
  EXPECT_TRUE(text.starts_with("suite       pages\nmachine     version: 1.2.3;")) << text;
  EXPECT_TRUE(has(text,
                  "kernel: 6.1.0\nrounds      5, interrupted before the end\n"
                  "parameters  size: 512M; rounds: 5; jobs: [1,2,3]\n"
                  "paths       engine: function call; zram: pread/pwrite; "
                  "zram#2: pread/pwrite\n"))
      << text;
  EXPECT_TRUE(has(text, "each round with its own of one interleaved run"));
  EXPECT_TRUE(has(text, "A function call is not a system call"));
  EXPECT_TRUE(text.ends_with("\nhardware counters: unavailable\nnote: zram has no lz4hc\n"))
      << text;
}

TEST(TableOutput, each_data_set_block_size_and_depth_has_a_table) {
  ResultFile file = two_targets();
  for (int i = 0; i < 3; ++i) {
    file.rows.push_back(file.rows[0]);
  }
  file.rows[3].corpus = "python";
  file.rows[4].block_size = 65536;
  file.rows[5].iodepth = 16;
  const std::string text = format_tables(file);
  for (const char* title :
       {"== cc1plus, 4K blocks, iodepth 1,", "== python, 4K blocks, iodepth 1,",
        "== cc1plus, 64K blocks, iodepth 1,", "== cc1plus, 4K blocks, iodepth 16,"}) {
    EXPECT_TRUE(has(text, title)) << title;
  }
}

TEST(TableOutput, rows_are_ordered_by_operation_then_jobs_then_target) {
  const ResultFile file = streams_results();
  const std::vector<RowGroup> groups = group_rows(file.rows);
  ASSERT_EQ(groups.size(), 2U);
  const std::vector<const Row*>& rows = groups[0].rows;
  ASSERT_EQ(rows.size(), 240U);
  EXPECT_EQ(op_text(*rows[0]), "read (holes)");
  EXPECT_EQ(rows[0]->label, "zram:streams=4");
  EXPECT_EQ(rows[2]->label, "engine");
  EXPECT_EQ(rows[3]->threads, 2U);
  EXPECT_EQ(rows[29]->threads, 10U);
  EXPECT_EQ(op_text(*rows[30]), "randread (holes)");
}

TEST(TableOutput, a_single_target_has_no_ratios) {
  ResultFile file = two_targets();
  file.rows.resize(1);
  const std::string text = format_tables(file);
  EXPECT_FALSE(has(text, "RATIO")) << text;
}

TEST(TableOutput, the_distance_to_the_codec_is_its_inverse_ratio) {
  ResultFile file = two_targets();
  file.rows[1].ratio_to_codec = Spread({0.4, 0.5, 0.6});
  const std::string text = format_tables(file);
  const auto lines = lines_of(text);
  const auto heading = std::find_if(lines.begin(), lines.end(),
                                    [](const auto& line) { return line.starts_with("OP "); });
  ASSERT_NE(heading, lines.end());
  const std::size_t end = heading->find("CODEC") + 5;
  EXPECT_EQ((heading + 2)->substr(end - 5, 5), " 2.00") << text;
  EXPECT_TRUE(has(*heading, "US/PAGE")) << text;
}

TEST(TableOutput, lines_fit_120_columns) {
  for (const ResultFile& file : {streams_results(), pages_results()}) {
    for (const std::string& line : lines_of(format_tables(file))) {
      EXPECT_LE(line.size(), 120U) << line;
    }
  }
}

TEST(TableOutput, a_table_that_would_be_too_wide_comes_in_two_parts) {
  ResultFile file = pages_results();
  for (Row& row : file.rows) {
    row.label = "a-rather-long-name-of-" + row.label;
  }
  const std::string text = format_tables(file);
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with("OP ")) {
      EXPECT_LE(line.size(), 120U) << line;
      EXPECT_FALSE(has(line, "MB/S") && has(line, "COMPR")) << line;
    }
  }
  EXPECT_TRUE(has(text, "COMPR"));
}

TEST(TableOutput, latencies_have_a_table_in_microseconds) {
  ResultFile file = two_targets();
  file.rows[0].latency = Latency{600, 1050.5, 1000, 1700, 4000, 60000};
  file.rows[1].submit_latency = Latency{100, 200, 300, 400, 500, 6000000};
  const std::string text = format_tables(file);
  EXPECT_TRUE(has(text,
                  "\nlatency of requests in us\n"
                  "OP           TARGET  MIN  AVG  P50  P99 P99.9  MAX\n"
                  "read (holes) engine 0.60 1.05 1.00 1.70  4.00 60.0\n"))
      << text;
  EXPECT_TRUE(has(text,
                  "\nlatency of submissions in us\n"
                  "OP           TARGET  MIN  AVG  P50  P99 P99.9  MAX\n"
                  "read (holes) zram   0.10 0.20 0.30 0.40  0.50 6000\n"))
      << text;
}

TEST(TableOutput, a_call_that_waits_has_no_latency_of_submission_of_its_own) {
  ResultFile file = two_targets();
  file.rows[0].latency = Latency{600, 1050.5, 1000, 1700, 4000, 60000};
  file.rows[0].submit_latency = file.rows[0].latency;
  EXPECT_FALSE(has(format_tables(file), "latency of submissions"));
  file.rows[0].submit_latency->p50_ns = 999;
  EXPECT_TRUE(has(format_tables(file), "latency of submissions"));
}

TEST(TableOutput, hardware_counters_have_a_table_where_they_are) {
  ResultFile file = two_targets();
  file.rows[0].counters = {{"cycles", 1.5e9}, {"instructions", 4e9}};
  file.rows[1].counters = {{"cycles", 3e9}};
  const std::string text = format_tables(file);
  EXPECT_TRUE(has(text,
                  "\nhardware counters\n"
                  "OP           TARGET cycles instructions\n"
                  "read (holes) engine  1.50G        4.00G\n"
                  "read (holes) zram    3.00G\n"))
      << text;
  EXPECT_FALSE(has(text, "hardware counters: unavailable"));
}

TEST(TableOutput, results_without_rows_say_so) {
  const std::string text = format_tables(sample_file("streams"));
  EXPECT_TRUE(has(text, "\nno results\n")) << text;
  EXPECT_TRUE(has(format_tables(ResultFile()), "\nno results\n"));
}

TEST(TableOutput, a_row_without_numbers_is_a_line_without_numbers) {
  ResultFile file = sample_file("streams");
  Row row;
  row.label = "engine";
  row.op = "write";
  file.rows = {row};
  EXPECT_TRUE(has(format_tables(file), "OP    TARGET\nwrite engine\n")) << format_tables(file);
}

TEST(TableOutput, names_cannot_steer_the_terminal) {
  ResultFile file = two_targets();
  for (std::string* name :
       {&file.rows[0].label, &file.rows[0].op, &file.rows[0].corpus, &file.rows[0].path,
        &file.rows[0].algorithm, &file.rows[0].state, &file.suite}) {
    *name = "a\x1b[2J\n\tb\xc2\x9b";
  }
  file.rows[0].counters = {{"c\x1b", 1}};
  file.notes = {"n\x1b"};
  file.machine["k\x1b"] = "v\x1b";
  const std::string text = format_tables(file);
  EXPECT_FALSE(has(text, "\x1b"));
  EXPECT_FALSE(has(text, "\xc2\x9b"));
  EXPECT_TRUE(has(text, "a?[2J??b?"));
}

TEST(Numbers, have_three_digits_or_all_before_the_point) {
  EXPECT_EQ(number_text(0), "0");
  EXPECT_EQ(number_text(0.01234), "0.012");
  EXPECT_EQ(number_text(0.5), "0.50");
  EXPECT_EQ(number_text(9.996), "10.0");
  EXPECT_EQ(number_text(12.34), "12.3");
  EXPECT_EQ(number_text(99.96), "100");
  EXPECT_EQ(number_text(12345.6), "12346");
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(9999), "9999");
  EXPECT_EQ(count_text(12345), "12.3k");
  EXPECT_EQ(count_text(999900), "1.00M");
  EXPECT_EQ(count_text(2.5e9), "2.50G");
}

}  // namespace
}  // namespace uzram::bench
