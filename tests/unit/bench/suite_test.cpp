#include "bench/suite.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bench/memory_check.hpp"
#include "bench/suite_parts.hpp"
#include "codec/codec.hpp"

namespace uzram::bench {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

SuiteOptions small_options() {
  SuiteOptions options;
  options.targets = {"engine"};
  options.size = "16M";
  options.data.buffer_pattern = "0xbadc0ffee";
  return options;
}

void expect_refused(std::string_view suite, const SuiteOptions& options,
                    const std::vector<std::string>& parts) {
  const auto plan = make_plan(suite, options);
  ASSERT_FALSE(plan.has_value());
  for (const std::string& part : parts) {
    EXPECT_NE(plan.error().message.find(part), std::string::npos)
        << plan.error().message << " lacks " << part;
  }
}

TEST(Suite, number_lists_have_ranges_and_no_repetitions) {
  const auto numbers = parse_numbers("--jobs", "1-3,8,2", 10);
  ASSERT_TRUE(numbers.has_value());
  EXPECT_EQ(*numbers, (std::vector<std::uint32_t>{1, 2, 3, 8}));
  for (const char* const text : {"", "0", "3-1", "1-", "-1", "11", "1,,2", "x", "1-99999999999"}) {
    EXPECT_FALSE(parse_numbers("--jobs", text, 10).has_value()) << text;
  }
}

TEST(Suite, parameters_say_what_is_in_force_given_or_not) {
  SuiteOptions options = small_options();
  options.data.buffer_pattern.clear();
  options.data.buffer_compress_percentage = "50";
  options.latency = true;
  auto plan = make_plan("streams", options);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_EQ(plan->parameters.value("buffer_compress_percentage", ""), "50");
  EXPECT_EQ(plan->parameters.value("buffer_compress_chunk", ""), "512");
  EXPECT_EQ(plan->parameters.value("streams", ""), "4,8,per-cpu");
  EXPECT_EQ(plan->parameters.value("algorithm", ""), experiment_algorithm());
  EXPECT_TRUE(plan->parameters.value("latency", false));
  EXPECT_FALSE(plan->parameters.contains("data"));

  options.data.buffer_compress_percentage.clear();
  plan = make_plan("streams", options);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_EQ(plan->parameters.value("data", ""), "pattern-0xbadc0ffee,compress-50");
  EXPECT_FALSE(plan->parameters.contains("buffer_compress_chunk"));
}

TEST(Suite, seconds_have_units) {
  EXPECT_DOUBLE_EQ(*parse_seconds("--runtime", "2m"), 120);
  EXPECT_DOUBLE_EQ(*parse_seconds("--runtime", "0.5s"), 0.5);
  EXPECT_DOUBLE_EQ(*parse_seconds("--runtime", "60"), 60);
  for (const char* const text : {"", "-1", "nan", "1h", "x", "inf"}) {
    EXPECT_FALSE(parse_seconds("--runtime", text).has_value()) << text;
  }
}

TEST(Suite, the_size_of_a_job_is_that_of_the_experiment) {
  // 3 GiB: 3072 / jobs - 307.2 MiB, and at ten jobs nothing would be left.
  EXPECT_EQ(experiment_job_bytes(3072 * kMiB, 1, 4096), 2764 * kMiB);
  EXPECT_EQ(experiment_job_bytes(3072 * kMiB, 4, 4096), 460 * kMiB);
  EXPECT_EQ(experiment_job_bytes(3072 * kMiB, 9, 4096), 34 * kMiB);
  EXPECT_EQ(experiment_job_bytes(3072 * kMiB, 10, 4096), 3072 * kMiB / 100 * 9 / 4096 * 4096);
}

TEST(Suite, streams_varies_the_engine_and_leaves_what_says_its_streams) {
  SuiteOptions options = small_options();
  options.targets = {"engine,engine:streams=2"};
  options.jobs = "1-10";
  const auto plan = make_plan("streams", options);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_EQ(plan->groups.size(), 10U);
  std::vector<std::string> labels;
  for (const TargetConfig& target : plan->groups.front().targets) {
    labels.push_back(target.label);
  }
  EXPECT_EQ(labels, (std::vector<std::string>{"engine:streams=4", "engine:streams=8",
                                              "engine:streams=per-cpu", "engine:streams=2"}));
  std::vector<std::string> ops;
  for (const Phase& phase : plan->groups.front().phases) {
    ops.push_back(phase.op + (phase.state.empty() ? "" : " " + phase.state));
  }
  EXPECT_EQ(ops, (std::vector<std::string>{"read holes", "randread holes", "write", "randwrite",
                                           "rw", "randrw", "read stored", "randread stored"}));
}

TEST(Suite, streams_has_both_buffers_of_the_experiment) {
  SuiteOptions options = small_options();
  options.data = {};
  options.jobs = "1";
  const auto plan = make_plan("streams", options);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  ASSERT_EQ(plan->groups.size(), 2U);
  EXPECT_EQ(plan->groups[0].data->name(), "pattern-0xbadc0ffee");
  EXPECT_EQ(plan->groups[1].data->name(), "compress-50");
}

TEST(Suite, every_job_stays_on_the_device) {
  SuiteOptions options = small_options();
  options.size = "64M";
  options.jobs = "1-10,48";
  options.block_sizes = "4K,64K";
  for (const char* const name : {"streams", "nowait", "discard", "pages"}) {
    const auto plan = make_plan(name, options);
    ASSERT_TRUE(plan.has_value()) << plan.error().message;
    for (const Group& group : plan->groups) {
      for (const Phase& phase : group.phases) {
        EXPECT_GE(phase.job_bytes, phase.block_size);
        EXPECT_EQ(phase.job_bytes % phase.block_size, 0U);
        EXPECT_LE((phase.jobs - 1) * phase.job_stride + phase.job_bytes, group.size_bytes)
            << name << " " << phase.op << " " << phase.jobs;
      }
    }
  }
}

TEST(Suite, pages_has_a_group_for_each_algorithm_and_corpus) {
  SuiteOptions options = small_options();
  options.targets = {"codec,engine,engine:algorithm=lz4"};
  options.algorithms = "lz4,zstd:3";
  const auto plan = make_plan("pages", options);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  ASSERT_EQ(plan->groups.size(), 2U);
  ASSERT_EQ(plan->groups[0].targets.size(), 3U);
  EXPECT_EQ(plan->groups[0].targets[2].label, "engine:algorithm=lz4");
  const auto& targets = plan->groups[1].targets;
  ASSERT_EQ(targets.size(), 2U) << "what says its algorithm itself has had its turn";
  EXPECT_EQ(targets[0].device.options.algorithm, "zstd");
  EXPECT_EQ(targets[0].device.options.level, 3);
  EXPECT_EQ(targets[1].label, "engine");
}

TEST(Suite, modes_and_paths_that_there_are_not_are_refused) {
  SuiteOptions options = small_options();
  options.modes = "nowait,fast";
  expect_refused("async", options, {"fast", "nowait, async or auto"});
  options = small_options();
  options.methods = "sync,threads";
  expect_refused("discard", options, {"--method", "threads", "sync or uring"});
  options.methods.clear();
  options.ops = "trim";
  expect_refused("discard", options, {"--op", "trim", "discard or zero"});
  options = small_options();
  options.targets = {"codec"};
  options.jobs = "1";
  expect_refused("discard", options, {"codec", "nothing to discard"});
}

TEST(Suite, one_device_is_discarded_by_one_method_at_a_time) {
  SuiteOptions options = small_options();
  options.jobs = "1";
  options.block_sizes = "4K";
  options.targets = {"engine,nbd+unix:///disk?socket=/nowhere/disk.nbd"};
  const auto plan = plan_discard(options);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  ASSERT_EQ(plan->groups.size(), 2U);
  const std::vector<TargetConfig>& both = plan->groups[0].targets;
  ASSERT_EQ(both.size(), 3U);
  EXPECT_EQ(both[0].label, "engine:method=sync");
  EXPECT_EQ(both[1].label, "engine:method=uring");
  EXPECT_TRUE(both[2].label.ends_with(":method=sync"));
  EXPECT_FALSE(plan->groups[0].lacks_first);
  ASSERT_EQ(plan->groups[1].targets.size(), 1U);
  EXPECT_TRUE(plan->groups[1].targets[0].one_thread);
  EXPECT_TRUE(plan->groups[1].lacks_first);
}

TEST(Suite, what_is_fitted_to_the_memory_stays_within_its_size) {
  SuiteOptions options;
  // The smallest default, that of pages, needs 56 GiB with so many.
  constexpr std::uint64_t kNeeded = std::uint64_t{56} << 30;
  options.targets = {"codec"};
  options.targets.resize(101, "engine");
  options.data.buffer_random = true;
  options.jobs = "1,2";
  for (const char* const name : {"async", "nowait", "pages", "streams"}) {
    const auto plan = make_plan(name, options);
    if (!plan.has_value()) {
      ADD_FAILURE() << name << ": " << plan.error().message;
      continue;
    }
    if (memory_available() < kNeeded) {
      ASSERT_FALSE(plan->notes.empty()) << name;
      EXPECT_NE(plan->notes.back().find("to fit in half"), std::string::npos) << name;
    }
    for (const Group& group : plan->groups) {
      for (const Phase& phase : group.phases) {
        EXPECT_LE((phase.jobs - 1) * phase.job_stride + phase.job_bytes, group.size_bytes)
            << name << " " << phase.op;
      }
    }
  }
}

TEST(Suite, a_fitted_size_without_room_for_the_jobs_is_refused) {
  if (memory_available() > std::uint64_t{1} << 40) {
    GTEST_SKIP() << "more than 1 TiB of memory holds the default size";
  }
  SuiteOptions options;
  options.targets.resize(101, "engine");
  options.data.buffer_random = true;
  options.jobs = "1024";
  options.block_sizes = "4M";
  expect_refused("nowait", options, {"--size \"", "at least 4G", "a block for each job"});
}

TEST(Suite, a_refused_size_is_named_when_it_is_the_default) {
  SuiteOptions options = small_options();
  options.size.clear();
  options.jobs = "1024";
  options.block_sizes = "4M";
  expect_refused("streams", options, {"--size \"3G\"", "4G"});
}

TEST(Suite, a_target_that_says_its_algorithm_runs_once) {
  SuiteOptions options = small_options();
  options.targets = {"codec", "engine:algorithm=zstd", "engine"};
  options.algorithms = "lz4,zstd";
  auto plan = make_plan("pages", options);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  ASSERT_EQ(plan->groups.size(), 2U);
  EXPECT_EQ(plan->groups[0].targets.size(), 3U);
  EXPECT_EQ(plan->groups[1].targets.size(), 2U);
  // The first of all is what the others are compared with.
  options.targets = {"engine:algorithm=zstd", "engine"};
  plan = make_plan("pages", options);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_EQ(plan->groups[1].targets.size(), 2U);
  EXPECT_TRUE(plan->groups[1].first_is_repeated);
}

TEST(Suite, a_level_alone_leaves_the_algorithm_to_the_run) {
  SuiteOptions options = small_options();
  options.targets = {"engine:level=3"};
  options.algorithms = "zstd";
  const auto plan = make_plan("pages", options);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_EQ(plan->groups[0].targets[0].device.options.algorithm, "zstd");
  EXPECT_EQ(plan->groups[0].targets[0].device.options.level, 3);
}

TEST(Suite, labels_are_unique) {
  SuiteOptions options = small_options();
  options.targets = {"engine:streams=4", "engine"};
  options.streams = "4,4,8";
  const auto plan = make_plan("streams", options);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  std::vector<std::string> labels;
  for (const TargetConfig& target : plan->groups[0].targets) {
    labels.push_back(target.label);
  }
  EXPECT_EQ(labels, (std::vector<std::string>{"engine:streams=4", "engine:streams=4#2",
                                              "engine:streams=8"}));
}

// What results and comparisons tell rows by.
std::string key_of(const Group& group, const Phase& phase, const TargetConfig& target) {
  const auto& options = target.device.options;
  std::string key = group.data->name() + " " + phase.op + " " + phase.state + " " + target.label +
                    " " + options.algorithm;
  const int level = options.level.value_or(codec::find(options.algorithm)->default_level);
  for (const std::uint64_t number : {std::uint64_t{phase.jobs}, std::uint64_t{phase.iodepth},
                                     phase.block_size, static_cast<std::uint64_t>(level)}) {
    key += " " + std::to_string(number);
  }
  return key;
}

TEST(Suite, no_two_rows_are_told_by_the_same_key) {
  SuiteOptions options = small_options();
  options.targets = {"engine,engine:level=2,engine:algorithm=zstd"};
  options.algorithms = "zstd,zstd:3,lz4,lz4,zstd:5";
  options.block_sizes = "4K,8K,4K";
  options.jobs = "1,2,1";
  options.tree = UZRAM_SOURCE_DIR "/src";
  for (const SuiteInfo& suite : suites()) {
    // Depths that the experiments have for a part of their own.
    for (const char* const iodepth : {"16", "32"}) {
      options.iodepth = suite.name == "discard" ? "" : iodepth;
      const auto plan = make_plan(suite.name, options);
      ASSERT_TRUE(plan.has_value()) << plan.error().message;
      std::set<std::string> keys;
      for (const Group& group : plan->groups) {
        for (const Phase& phase : group.phases) {
          for (std::size_t i = group.first_is_repeated ? 1 : 0;
               phase.timed && i < group.targets.size(); ++i) {
            const std::string key = key_of(group, phase, group.targets[i]);
            EXPECT_TRUE(keys.insert(key).second) << suite.name << ": " << key;
          }
        }
      }
    }
  }
}

TEST(Suite, a_level_of_its_own_goes_before_those_of_the_run) {
  SuiteOptions options = small_options();
  options.targets = {"engine", "engine:level=2"};
  options.algorithms = "zstd:3,zstd:5";
  auto plan = make_plan("pages", options);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  ASSERT_EQ(plan->groups.size(), 2U);
  EXPECT_EQ(plan->groups[0].targets[1].device.options.level, 2);
  EXPECT_EQ(plan->groups[1].targets.size(), 1U) << "it has had its turn";
  options.targets = {"engine:level=2", "engine"};
  plan = make_plan("pages", options);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_EQ(plan->groups[1].targets.size(), 2U);
  EXPECT_TRUE(plan->groups[1].first_is_repeated);
}

TEST(Suite, whatever_is_written_with_verify_is_read_again) {
  SuiteOptions options = small_options();
  options.verify = "crc32c";
  options.jobs = "2";
  options.tree = UZRAM_SOURCE_DIR "/src";
  for (const char* const name : {"ageing", "async", "nowait", "pages", "streams"}) {
    const auto plan = make_plan(name, options);
    ASSERT_TRUE(plan.has_value()) << plan.error().message;
    for (const Group& group : plan->groups) {
      EXPECT_TRUE(group.phases.back().verify) << name << " " << group.phases.front().op;
    }
  }
}

TEST(Suite, writes_that_verification_makes_alike_have_a_note) {
  SuiteOptions options = small_options();
  options.jobs = "2";
  const auto notes = [&](std::string_view suite) {
    const auto plan = make_plan(suite, options);
    EXPECT_TRUE(plan.has_value());
    return plan->notes;
  };
  EXPECT_TRUE(notes("streams").empty());
  options.verify = "crc32c";
  ASSERT_EQ(notes("streams").size(), 1U);
  EXPECT_NE(notes("streams").front().find("the same page"), std::string::npos);
  EXPECT_TRUE(notes("ageing").empty()) << "its jobs share nothing";
}

TEST(Suite, contents_are_known_until_the_last_verification) {
  SuiteOptions options = small_options();
  options.jobs = "2";
  auto plan = make_plan("nowait", options);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  const Group& group = plan->groups.front();
  for (std::size_t i = 0; i < group.phases.size(); ++i) {
    EXPECT_EQ(keeps_contents(group, i), i < 2) << "phase " << i << ", " << group.phases[i].op;
  }
}

TEST(Suite, verification_runs_once_whatever_the_jobs) {
  SuiteOptions options = small_options();
  options.jobs = "2,4";
  const auto plan = make_plan("nowait", options);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  int verifying = 0;
  for (const Group& group : plan->groups) {
    verifying += static_cast<int>(std::count_if(group.phases.begin(), group.phases.end(),
                                                [](const Phase& p) { return p.op == "verify"; }));
  }
  EXPECT_EQ(verifying, 1);
}

TEST(Suite, discards_refuse_a_depth_and_a_verification) {
  SuiteOptions options = small_options();
  options.jobs = "1";
  options.iodepth = "8";
  expect_refused("discard", options, {"--iodepth \"8\"", "--jobs"});
  options.iodepth.clear();
  options.verify = "crc32c";
  expect_refused("discard", options, {"--verify"});
}

TEST(Suite, discards_of_holes_last_long_enough_to_measure) {
  SuiteOptions options = small_options();
  options.jobs = "2";
  const auto holes = [&options] {
    const auto plan = make_plan("discard", options);
    EXPECT_TRUE(plan.has_value());
    return plan->groups.front().phases[2];
  };
  EXPECT_EQ(holes().state, "holes");
  EXPECT_DOUBLE_EQ(holes().runtime_s, 0.25);
  options.loops = "7";
  EXPECT_EQ(holes().loops, 7U);
  EXPECT_DOUBLE_EQ(holes().runtime_s, 0);
  options.runtime = "3";
  EXPECT_DOUBLE_EQ(holes().runtime_s, 3);
}

TEST(Suite, an_export_named_twice_is_refused) {
  SuiteOptions options = small_options();
  options.targets = {"nbd+unix:///a?socket=/nowhere", "nbd+unix:///a?socket=/nowhere"};
  options.jobs = "1";
  expect_refused("pages", options, {"/nowhere", "are the same"});
}

TEST(Suite, async_with_one_mode_has_the_writer_and_the_tree_too) {
  SuiteOptions options = small_options();
  options.modes = "nowait";
  options.jobs = "1,2";
  options.tree = UZRAM_SOURCE_DIR "/src";
  const auto plan = make_plan("async", options);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  std::vector<std::string> last_ops;
  for (const Group& group : plan->groups) {
    last_ops.push_back(group.phases.back().op);
  }
  EXPECT_EQ(last_ops, (std::vector<std::string>{"randread", "randread", "write", "treecopy"}));
  EXPECT_EQ(plan->groups.back().data->name(), "tree");
}

TEST(Suite, wrong_values_are_named) {
  const auto refused = [](auto change, const std::vector<std::string>& parts) {
    SuiteOptions options = small_options();
    change(options);
    expect_refused("pages", options, parts);
  };
  refused([](SuiteOptions& options) { options.size = "4X"; }, {"--size", "4X"});
  refused([](SuiteOptions& options) { options.size = "1K"; }, {"--size", "1K", "1M"});
  refused([](SuiteOptions& options) { options.jobs = "0"; }, {"--jobs", "\"0\"", "1-10"});
  refused([](SuiteOptions& options) { options.block_sizes = "512"; },
          {"--block-size", "512", "4K"});
  refused([](SuiteOptions& options) { options.iodepth = "-1"; }, {"--iodepth", "-1"});
  refused([](SuiteOptions& options) { options.rounds = "0"; }, {"--rounds"});
  refused([](SuiteOptions& options) { options.loops = "x"; }, {"--loops"});
  refused([](SuiteOptions& options) { options.runtime = "soon"; }, {"--runtime", "soon"});
  refused([](SuiteOptions& options) { options.verify = "md5"; }, {"--verify", "md5", "crc32c"});
  refused([](SuiteOptions& options) { options.algorithms = "brotli"; }, {"brotli", "lz4"});
  refused([](SuiteOptions& options) { options.algorithms = "lz4,"; }, {"--algorithm"});
  refused([](SuiteOptions& options) { options.algorithms = "zstd:99"; }, {"99"});
  refused(
      [](SuiteOptions& options) {
        options.data = {};
        options.data.corpus = "/nowhere";
      },
      {"/nowhere"});
  refused(
      [](SuiteOptions& options) {
        options.jobs = "512";
        options.block_sizes = "1M";
      },
      {"--size", "512M"});
}

}  // namespace
}  // namespace uzram::bench
