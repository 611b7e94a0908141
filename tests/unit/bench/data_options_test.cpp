#include "bench/data_options.hpp"

#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/process_with_pages.hpp"
#include "support/temporary_folder.hpp"

namespace uzram::bench {
namespace {

void expect_refused(const DataOptions& options, const std::vector<std::string>& parts) {
  const auto sets = make_data_sets(options);
  ASSERT_FALSE(sets.has_value()) << parts.front();
  EXPECT_EQ(sets.error().code, Errc::invalid_argument);
  for (const std::string& part : parts) {
    EXPECT_NE(sets.error().message.find(part), std::string::npos)
        << sets.error().message << " lacks " << part;
  }
}

std::string name_of_only(const DataOptions& options) {
  const auto sets = make_data_sets(options);
  if (!sets) {
    return sets.error().message;
  }
  return sets->size() == 1 ? sets->front()->name() : "several";
}

TEST(DataOptions, know_whether_anything_is_given) {
  EXPECT_TRUE(DataOptions{}.empty());
  DataOptions options;
  options.buffer_random = true;
  EXPECT_FALSE(options.empty());
}

TEST(DataOptions, a_corpus_becomes_a_set_for_each_file) {
  const test::TemporaryFolder folder;
  for (const char* const name : {"b.pages", "a.pages"}) {
    std::ofstream(folder / name) << std::string(8192, *name);
  }
  DataOptions options;
  options.corpus = folder / "";
  const auto sets = make_data_sets(options);
  ASSERT_TRUE(sets.has_value()) << sets.error().message;
  ASSERT_EQ(sets->size(), 2U);
  EXPECT_EQ(sets->at(0)->name(), "a");
  EXPECT_EQ(*sets->at(1)->at(1), std::byte{'b'});
}

TEST(DataOptions, buffers_become_one_set_named_after_them) {
  DataOptions options;
  options.buffer_pattern = "0xbadc0ffee";
  EXPECT_EQ(name_of_only(options), "pattern-0xbadc0ffee");
  options.buffer_compress_percentage = "50";
  options.buffer_compress_chunk = "4k";
  options.buffer_same_percentage = "20";
  EXPECT_EQ(name_of_only(options), "pattern-0xbadc0ffee+compress-50-chunk-4096+same-20");
  options = {};
  options.buffer_random = true;
  EXPECT_EQ(name_of_only(options), "random");
  options.buffer_same_percentage = "20";
  EXPECT_EQ(name_of_only(options), "same-20");
}

TEST(DataOptions, a_value_that_makes_no_sense_is_refused_with_its_option) {
  for (const std::string value : {"101", "-1", "x", "5x", " 5", "1.5", "50%"}) {
    DataOptions options;
    options.buffer_compress_percentage = value;
    expect_refused(options, {"--buffer-compress-percentage", "\"" + value + "\"", "0 to 100"});
    options = {};
    options.buffer_same_percentage = value;
    expect_refused(options, {"--buffer-same-percentage", "\"" + value + "\"", "0 to 100"});
  }
  for (const std::string value : {"0", "x", "4097", "2M"}) {
    DataOptions options;
    options.buffer_compress_percentage = "50";
    options.buffer_compress_chunk = value;
    expect_refused(options, {"--buffer-compress-chunk", "\"" + value + "\"", "expected"});
  }
  DataOptions options;
  options.buffer_pattern = "beef";
  expect_refused(options, {"--buffer-pattern", "\"beef\"", "0xHEX"});
}

TEST(DataOptions, that_exclude_each_other_are_both_named) {
  DataOptions options;
  options.corpus = "/tmp";
  options.buffer_random = true;
  expect_refused(options, {"--corpus", "--buffer-random"});
  options.corpus.clear();
  options.buffer_pattern = "0x1";
  expect_refused(options, {"--buffer-random", "--buffer-pattern"});
  options.buffer_pattern.clear();
  options.buffer_compress_percentage = "10";
  expect_refused(options, {"--buffer-random", "--buffer-compress-percentage"});
  options = {};
  options.buffer_compress_chunk = "512";
  expect_refused(options, {"--buffer-compress-chunk", "--buffer-compress-percentage"});
}

TEST(DataOptions, suites_get_their_defaults) {
  const auto pattern = pattern_data("0xdeadbeef");
  ASSERT_TRUE(pattern.has_value());
  EXPECT_EQ((*pattern)->name(), "pattern-0xdeadbeef");
  EXPECT_FALSE(pattern_data("deadbeef").has_value());
  const auto half = compressible_data(50);
  ASSERT_TRUE(half.has_value());
  EXPECT_EQ((*half)->name(), "compress-50");
  const auto random = random_data();
  ASSERT_TRUE(random.has_value());
  EXPECT_EQ((*random)->name(), "random");
}

TEST(SampleMachine, takes_pages_of_processes_that_may_be_read) {
  // So that there are enough of them.
  const test::ProcessWithPages child(128);
  ASSERT_TRUE(child.is_ready());
  const auto machine = sample_machine();
  ASSERT_TRUE(machine.has_value()) << machine.error().message;
  EXPECT_EQ((*machine)->name(), "machine");
  EXPECT_GE((*machine)->pages(), 64U);
  EXPECT_LE((*machine)->pages(), 4096U);
}

}  // namespace
}  // namespace uzram::bench
