#include <string>

#include <gtest/gtest.h>

#include "bench/outputs.hpp"
#include "unit/bench/sample_results.hpp"

namespace uzram::bench {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Row row_of(const std::string& label, const std::string& op, std::vector<double> mb_per_s) {
  Row row = sample_row(label, op, 1);
  row.mb_per_s = Spread(std::move(mb_per_s));
  return row;
}

ResultFile file_of(std::vector<Row> rows) {
  ResultFile file = sample_file("streams");
  file.rows = std::move(rows);
  return file;
}

std::string compared(const ResultFile& older, const ResultFile& newer,
                     const CompareOptions& options = {}) {
  const Result<std::string> text = format_comparison(older, newer, options);
  EXPECT_TRUE(text.has_value()) << text.error().message;
  return text ? *text : "";
}

TEST(Comparison, cells_are_equal_faster_or_slower_by_the_ranges_of_their_rounds) {
  const ResultFile older = file_of(
      {row_of("engine", "read", {100, 110, 105}), row_of("engine", "write", {100, 110, 105}),
       row_of("engine", "rw", {100, 110, 105}), row_of("engine", "fill", {100, 110, 105})});
  ResultFile newer = file_of(
      {row_of("engine", "read", {110, 130, 120}), row_of("engine", "write", {111, 130, 120}),
       row_of("engine", "rw", {80, 99, 90}), row_of("engine", "fill", {80, 100, 90})});
  newer.machine["date"] = "2026-01-02T00:00:00Z";
  const std::string text = compared(older, newer);
  EXPECT_TRUE(has(text,
                  "\n#jobs 1\n"
                  "OP    OLD MB/S MIN-MAX NEW MB/S   MIN-MAX RATIO\n"
                  "read       105 100-110      120   110-130  1.14 within noise\n"
                  "write      105 100-110      120   111-130  1.14 faster\n"
                  "rw         105 100-110     90.0 80.0-99.0  0.86 slower\n"))
      << text;
  EXPECT_TRUE(text.ends_with("\n4 cells: 2 within noise, 1 faster, 1 slower\n")) << text;
}

TEST(Comparison, targets_of_one_run_are_compared_round_by_round) {
  // Rounds that differ much, and a target that is faster in each of them, if only a little.
  const ResultFile file = file_of(
      {row_of("engine", "read", {100, 200, 150}), row_of("zram", "read", {104, 206, 156}),
       row_of("engine", "write", {100, 200, 150}), row_of("zram", "write", {104, 190, 156})});
  CompareOptions options;
  options.old_target = "engine";
  options.new_target = "zram";
  const std::string text = compared(file, file, options);
  EXPECT_TRUE(has(text, "1.04 1.03-1.04 faster")) << text;
  EXPECT_TRUE(has(text, "1.04 0.95-1.04 within noise")) << text;
  EXPECT_TRUE(has(text, "One run")) << text;
  ResultFile other = file;
  other.machine["date"] = "2026-01-02T00:00:00Z";
  EXPECT_TRUE(compared(file, other, options).ends_with("2 within noise, 0 faster, 0 slower\n"));
}

TEST(Comparison, a_run_that_ended_within_a_round_is_compared_by_the_rounds_that_both_have) {
  const ResultFile file =
      file_of({row_of("engine", "read", {100, 200, 150}), row_of("zram", "read", {104, 206})});
  const std::string text = compared(file, file, {"engine", "zram"});
  EXPECT_TRUE(has(text, "0 within noise, 1 faster, 0 slower\n")) << text;
}

TEST(Comparison, runs_of_other_parameters_are_separate_though_begun_in_the_same_second) {
  const ResultFile older = file_of({row_of("engine", "read", {100, 200})});
  ResultFile newer = file_of({row_of("engine", "read", {104, 206})});
  EXPECT_TRUE(has(compared(older, newer), "1 faster")) << compared(older, newer);
  newer.parameters["loops"] = 7;
  EXPECT_TRUE(has(compared(older, newer), "Separate runs")) << compared(older, newer);
  EXPECT_TRUE(has(compared(older, newer), "1 within noise")) << compared(older, newer);
}

TEST(Comparison, a_file_compared_with_itself_is_all_noise) {
  const ResultFile file = streams_results();
  const std::string text = compared(file, file);
  EXPECT_TRUE(has(text, "\n480 cells: 480 within noise, 0 faster, 0 slower\n")) << text;
}

TEST(Comparison, number_of_jobs_by_number_of_jobs) {
  const ResultFile file = streams_results();
  const std::string text = compared(file, file);
  std::size_t at = 0;
  for (int jobs = 1; jobs <= 10; ++jobs) {
    const std::size_t section = text.find("\n#jobs " + std::to_string(jobs) + "\n");
    ASSERT_NE(section, std::string::npos);
    EXPECT_GE(section, at);
    at = section;
  }
}

TEST(Comparison, one_file_per_variant_is_matched_whatever_the_target_is_called) {
  Row older = row_of("zram:streams=4", "read", {100});
  older.streams = 4;
  older.algorithm = "lzo";
  Row newer = row_of("engine", "read", {200});
  newer.mode = "nowait";
  newer.streams = 0;
  const std::string text = compared(file_of({older}), file_of({newer}));
  EXPECT_TRUE(has(text, "old: \"zram:streams=4\"\nnew: \"engine\"\n")) << text;
  EXPECT_TRUE(has(text, "1 cells: 0 within noise, 1 faster, 0 slower\n")) << text;
}

TEST(Comparison, several_algorithms_are_told_apart) {
  Row lz4 = row_of("engine", "read", {100});
  Row zstd = row_of("engine", "read", {10});
  zstd.algorithm = "zstd";
  zstd.level = 3;
  const std::string text = compared(file_of({lz4, zstd}), file_of({zstd, lz4}));
  EXPECT_TRUE(has(text, "read zstd-3    ")) << text;
  EXPECT_TRUE(has(text, "2 cells: 2 within noise, 0 faster, 0 slower\n")) << text;
}

TEST(Comparison, a_level_that_only_one_target_tells_does_not_part_cells) {
  Row told = row_of("engine", "read", {100});
  told.level = 1;
  Row zstd = row_of("engine", "read", {10});
  zstd.algorithm = "zstd";
  zstd.level = 3;
  Row silent = row_of("zram", "read", {100});
  Row silent_zstd = row_of("zram", "read", {10});
  silent_zstd.algorithm = "zstd";
  const ResultFile file = file_of({told, zstd, silent, silent_zstd});
  EXPECT_TRUE(has(compared(file, file, {"engine", "zram"}),
                  "2 cells: 2 within noise, 0 faster, 0 slower\n"));
  // Several levels of one algorithm do.
  zstd.algorithm = "lz4";
  const std::string text = compared(file_of({told, zstd}), file_of({zstd, told}));
  EXPECT_TRUE(has(text, "2 cells: 2 within noise, 0 faster, 0 slower\n")) << text;
}

TEST(Comparison, several_targets_are_matched_by_label) {
  const ResultFile older = file_of({row_of("engine", "read", {100}), row_of("zram", "read", {10})});
  const ResultFile newer = file_of({row_of("zram", "read", {10}), row_of("engine", "read", {50})});
  const std::string text = compared(older, newer);
  EXPECT_TRUE(has(text, "2 cells: 1 within noise, 0 faster, 1 slower\n")) << text;
}

TEST(Comparison, chosen_targets_are_compared_with_each_other) {
  Row named = row_of("zram", "read", {10});
  named.target = "zram:algorithm=lz4";
  const ResultFile file = file_of({row_of("engine", "read", {100}), named});
  EXPECT_TRUE(has(compared(file, file, {"zram:algorithm=lz4", "engine"}),
                  "1 cells: 0 within noise, 1 faster, 0 slower\n"));
  EXPECT_TRUE(has(compared(file, file, {"engine", "zram"}),
                  "1 cells: 0 within noise, 0 faster, 1 slower\n"));
}

TEST(Comparison, cells_differ_by_data_state_block_size_depth_and_jobs) {
  std::vector<Row> rows(6, row_of("engine", "read", {100}));
  rows[1].corpus = "python";
  rows[2].state = "holes";
  rows[3].block_size = 65536;
  rows[4].iodepth = 16;
  rows[5].threads = 2;
  const ResultFile all = file_of(rows);
  EXPECT_TRUE(has(compared(all, all), "6 cells: 6 within noise"));
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::string text = compared(file_of({rows[0], rows[i]}), file_of({rows[i]}));
    EXPECT_TRUE(has(text, "without a counterpart: 1 of old, 0 of new\n1 cells:")) << text;
  }
}

TEST(Comparison, a_target_that_is_not_there_is_an_error_that_names_those_there_are) {
  const ResultFile file = file_of({row_of("engine", "read", {1}), row_of("zram", "read", {1})});
  const Result<std::string> text = format_comparison(file, file, {"", "nbd"});
  ASSERT_FALSE(text.has_value());
  EXPECT_EQ(text.error().code, Errc::not_found);
  EXPECT_EQ(text.error().message,
            "the new results have no target \"nbd\": expected one of \"engine\", \"zram\"");
}

TEST(Comparison, nothing_in_common_is_an_error_that_names_what_there_is) {
  const Result<std::string> text = format_comparison(file_of({row_of("engine", "read", {1})}),
                                                     file_of({row_of("zram", "write", {1})}), {});
  ASSERT_FALSE(text.has_value());
  EXPECT_EQ(text.error().code, Errc::not_found);
  EXPECT_TRUE(has(text.error().message, "operations \"read\"")) << text.error().message;
  EXPECT_TRUE(has(text.error().message, "operations \"write\"")) << text.error().message;
  EXPECT_FALSE(format_comparison(file_of({}), file_of({}), {}).has_value());
  EXPECT_FALSE(format_comparison(file_of({Row()}), file_of({Row()}), {}).has_value());
}

TEST(Comparison, what_differs_between_the_machines_is_noted) {
  const ResultFile older = file_of({row_of("engine", "read", {1})});
  ResultFile newer = older;
  newer.machine["kernel"] = "6.2.0";
  newer.machine["date"] = "2026-01-01T00:00:00Z";
  newer.interrupted = true;
  const std::string text = compared(older, newer);
  EXPECT_TRUE(has(text, "note: kernel differs: 6.1.0 and 6.2.0\n")) << text;
  EXPECT_TRUE(has(text, "note: interrupted before the end: new\n")) << text;
  EXPECT_FALSE(has(text, "date differs"));
}

TEST(Comparison, speeds_of_zero_do_no_harm) {
  const ResultFile file = file_of({row_of("engine", "read", {0})});
  EXPECT_TRUE(has(compared(file, file), "1 cells: 1 within noise"));
}

}  // namespace
}  // namespace uzram::bench
