#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "bench/outputs.hpp"
#include "support/temporary_folder.hpp"
#include "unit/bench/sample_results.hpp"

namespace uzram::bench {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Row row_of(const std::string& op, std::uint32_t jobs, double mib_per_s) {
  Row row = sample_row("zram", op, 1);
  row.threads = jobs;
  row.mb_per_s = Spread({mib_per_s * 1.048576});
  row.elapsed_s = Spread({2});
  return row;
}

// The experiments' tests for one and two jobs.
ResultFile experiment() {
  ResultFile file = sample_file("streams");
  for (const std::uint32_t jobs : {1U, 2U}) {
    file.rows.push_back(row_of("read", jobs, 2048.0 * jobs));
    file.rows.back().state = "stored";
    file.rows.push_back(row_of("randwrite", jobs, 300.0 * jobs));
    Row mixed = row_of("randrw", jobs, 1200.0 * jobs);
    mixed.read_mb_per_s = Spread({500 * 1.048576 * jobs});
    mixed.write_mb_per_s = Spread({700 * 1.048576 * jobs});
    file.rows.push_back(mixed);
  }
  return file;
}

// What a shell's `command` says with `text` in the file $FILE.
std::string piped(const std::string& text, const std::string& command) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "fio.txt";
  std::ofstream(path) << text;
  std::string output;
  std::FILE* pipe = ::popen(("FILE=" + path + "; " + command).c_str(), "r");
  if (pipe == nullptr) {
    return "popen failed";
  }
  for (int byte = std::fgetc(pipe); byte != EOF; byte = std::fgetc(pipe)) {
    output += static_cast<char>(byte);
  }
  EXPECT_EQ(::pclose(pipe), 0);
  return output;
}

TEST(FioOutput, the_experiments_script_squeezes_fio2_lines) {
  EXPECT_EQ(
      piped(format_fio(experiment(), FioStyle::fio2),
            R"(grep -E "#jobs|READ|WRITE" "$FILE" | awk '{print $1, $3}' | sed 's/aggrb=//')"),
      "#jobs1 \n"
      "READ: 2048.0MB/s,\n"
      "WRITE: 307200KB/s,\n"
      "READ: 512000KB/s,\n"
      "WRITE: 716800KB/s,\n"
      "#jobs2 \n"
      "READ: 4096.0MB/s,\n"
      "WRITE: 614400KB/s,\n"
      "READ: 1000.0MB/s,\n"
      "WRITE: 1400.0MB/s,\n");
}

TEST(FioOutput, the_bytes_are_those_of_a_round) {
  ResultFile file = sample_file("pages");
  Row row = row_of("write", 1, 1);
  // 16 MiB each, in rounds whose middle speed and middle time are of different rounds.
  constexpr double kMB = 16.777216;
  row.mb_per_s = Spread({kMB / 1, kMB / 2});
  row.elapsed_s = Spread({1, 2});
  file.rows = {row};
  EXPECT_TRUE(has(format_fio(file, FioStyle::fio3), "io=16.0MiB (16.8MB), run=1500-1500msec"))
      << format_fio(file, FioStyle::fio3);
  EXPECT_TRUE(has(format_fio(file, FioStyle::fio2), "io=16384KB,"));
}

TEST(FioOutput, a_script_for_fio3_finds_the_bandwidth_in_the_second_field) {
  EXPECT_EQ(piped(format_fio(experiment(), FioStyle::fio3),
                  R"(grep -E "#jobs|READ|WRITE" "$FILE" | awk '{print $1, $2}' | sed 's/bw=//')"),
            "#jobs1 \n"
            "READ: 2048MiB/s\n"
            "WRITE: 300MiB/s\n"
            "READ: 500MiB/s\n"
            "WRITE: 700MiB/s\n"
            "#jobs2 \n"
            "READ: 4096MiB/s\n"
            "WRITE: 600MiB/s\n"
            "READ: 1000MiB/s\n"
            "WRITE: 1400MiB/s\n");
}

TEST(FioOutput, fio3_lines_have_fio3_s_shape) {
  ResultFile file = sample_file("streams");
  file.rows = {row_of("read", 4, 1234)};
  file.rows[0].elapsed_s = Spread({8.265});
  EXPECT_EQ(format_fio(file, FioStyle::fio3),
            "zram: cc1plus, 4K blocks, iodepth 1, lz4\n"
            "#jobs4\n"
            "seq-read: (all jobs):\n"
            "   READ: bw=1234MiB/s (1294MB/s), 309MiB/s-309MiB/s (323MB/s-323MB/s), io=9.96GiB "
            "(10.7GB), run=8265-8265msec\n");
}

TEST(FioOutput, fio2_lines_have_fio2_s_shape) {
  ResultFile file = sample_file("streams");
  file.rows = {row_of("randwrite", 2, 1024)};
  file.rows[0].state = "stored";
  EXPECT_EQ(format_fio(file, FioStyle::fio2),
            "zram: cc1plus, 4K blocks, iodepth 1, lz4\n"
            "#jobs2\n"
            "rand-write (stored): (all jobs):\n"
            "  WRITE: io=2048.0MB, aggrb=1024.0MB/s, minb=524288KB/s, maxb=524288KB/s, "
            "mint=2000msec, maxt=2000msec\n");
}

TEST(FioOutput, small_numbers_keep_fio_s_digits) {
  ResultFile file = sample_file("streams");
  file.rows = {row_of("write", 1, 3.875), row_of("write", 1, 0.0009765625)};
  const std::string text = format_fio(file, FioStyle::fio3);
  EXPECT_TRUE(has(text, "bw=3968KiB/s (4063kB/s)")) << text;
  EXPECT_TRUE(has(text, "bw=1024B/s (1024B/s)")) << text;
}

TEST(FioOutput, each_operation_has_fio_s_direction) {
  ResultFile file = sample_file("discard");
  file.rows = {row_of("randdiscard", 1, 100), row_of("rw", 1, 100), row_of("fill", 1, 100),
               row_of("verify", 1, 100)};
  const std::string text = format_fio(file, FioStyle::fio3);
  EXPECT_TRUE(has(text, "randdiscard: (all jobs):\n   TRIM: bw=100MiB/s")) << text;
  EXPECT_TRUE(has(text, "mixed-seq: (all jobs):\n  MIXED: bw=100MiB/s")) << text;
  EXPECT_TRUE(has(text, "verify: (all jobs):\n   READ: bw=100MiB/s")) << text;
  EXPECT_TRUE(has(text, "fill: (all jobs):\n  WRITE: bw=100MiB/s")) << text;
}

TEST(FioOutput, each_target_and_data_set_has_a_block) {
  ResultFile file = experiment();
  const std::size_t count = file.rows.size();
  for (std::size_t i = 0; i < count; ++i) {
    file.rows.push_back(file.rows[i]);
    file.rows.back().label = "engine";
  }
  file.rows.push_back(file.rows[0]);
  file.rows.back().corpus = "python";
  const std::string text = format_fio(file, FioStyle::fio2);
  const std::size_t engine = text.find("\nengine: cc1plus, 4K blocks");
  ASSERT_NE(engine, std::string::npos) << text;
  EXPECT_NE(text.find("#jobs2", engine), std::string::npos);
  EXPECT_TRUE(has(text, "\nzram: python, 4K blocks")) << text;
}

TEST(FioOutput, rows_without_numbers_and_no_rows_do_no_harm) {
  EXPECT_EQ(format_fio(ResultFile(), FioStyle::fio3), "");
  ResultFile file;
  file.rows.emplace_back();
  file.rows[0].threads = 0;
  EXPECT_TRUE(has(format_fio(file, FioStyle::fio3), "bw=0B/s"));
  EXPECT_TRUE(has(format_fio(file, FioStyle::fio2), "aggrb=0KB/s"));
}

}  // namespace
}  // namespace uzram::bench
