#include "bench/runner.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bench/crew.hpp"
#include "bench/job.hpp"
#include "bench/slow_port.hpp"
#include "bench/suite.hpp"

namespace uzram::bench {
namespace {

constexpr int kNoProgress = -1;

SuiteOptions small_options(const std::string& targets) {
  SuiteOptions options;
  options.targets = {targets};
  options.size = "8M";
  options.rounds = "3";
  options.data.buffer_compress_percentage = "50";
  options.verify = "crc32c";
  return options;
}

Result<ResultFile> run(std::string_view suite, const SuiteOptions& options) {
  const auto plan = make_plan(suite, options);
  if (!plan) {
    return plan.error();
  }
  const std::atomic<bool> stop{false};
  return run_plan(*plan, stop, kNoProgress);
}

TEST(Runner, every_suite_runs_and_verifies_on_engine_and_codec) {
  for (const char* const suite : {"pages", "streams"}) {
    for (const char* const iodepth : {"1", "8"}) {
      SuiteOptions options = small_options("codec,engine");
      options.jobs = "1,3";
      options.iodepth = iodepth;
      options.block_sizes = "4K,64K";
      const auto results = run(suite, options);
      ASSERT_TRUE(results.has_value()) << suite << ": " << results.error().message;
      EXPECT_FALSE(results->interrupted);
      EXPECT_FALSE(results->rows.empty());
      for (const Row& row : results->rows) {
        EXPECT_EQ(row.rounds, 3U);
        EXPECT_EQ(row.ratio_to_first.values().size(), 3U);
        EXPECT_GT(row.mb_per_s.min(), 0);
        EXPECT_EQ(row.corpus, "compress-50");
      }
    }
  }
}

TEST(Runner, discard_leaves_nothing_stored) {
  // A compaction under way would hold spans for a moment.
  SuiteOptions options = small_options("engine:background=off");
  options.verify.clear();
  options.jobs = "4";
  const auto results = run("discard", options);
  ASSERT_TRUE(results.has_value()) << results.error().message;
  for (const Row& row : results->rows) {
    if (row.op == "randread") {
      EXPECT_EQ(row.state, "beside discard");
      EXPECT_TRUE(row.latency.has_value());
      continue;
    }
    // The pool keeps a few spans for what comes next; nothing is stored in them.
    EXPECT_FALSE(row.compr_ratio.has_value()) << row.op << " " << row.state;
    EXPECT_LT(*row.mem_used, std::uint64_t{2} << 20) << row.op << " " << row.state;
    EXPECT_TRUE(row.latency.has_value());
  }
  // Two methods and two block sizes, and of each in order, of holes, at random; and the reads.
  EXPECT_EQ(results->rows.size(), 2 * (2 * 3 + 1U));
}

TEST(Runner, nowait_measures_latency_and_verifies) {
  SuiteOptions options = small_options("engine");
  options.jobs = "4";
  options.modes = "nowait";
  options.runtime = "0.05";
  options.rounds = "1";
  const auto results = run("nowait", options);
  ASSERT_TRUE(results.has_value()) << results.error().message;
  std::vector<std::string> ops;
  for (const Row& row : results->rows) {
    ops.push_back(row.op);
    ASSERT_TRUE(row.latency.has_value());
    ASSERT_TRUE(row.submit_latency.has_value());
    EXPECT_LE(row.submit_latency->p50_ns, row.latency->max_ns);
  }
  EXPECT_EQ(ops, (std::vector<std::string>{"randwrite", "verify", "randwrite", "randread"}));
}

TEST(Runner, rows_tell_ratio_and_memory) {
  const auto results = run("pages", small_options("codec,engine"));
  ASSERT_TRUE(results.has_value()) << results.error().message;
  ASSERT_EQ(results->rows.size(), 8U);
  for (const Row& row : results->rows) {
    ASSERT_TRUE(row.compr_ratio.has_value());
    EXPECT_NEAR(*row.compr_ratio, 1.95, 0.1) << row.label;
    EXPECT_EQ(row.mem_ratio.has_value(), row.label == "engine");
    EXPECT_EQ(row.ratio_to_codec.values().size(), 3U);
    EXPECT_EQ(row.path.substr(0, 13), "function call");
  }
}

TEST(Runner, a_full_target_is_named_and_nothing_else_happens) {
  const auto results = run("pages", small_options("engine:mem-limit=1M"));
  ASSERT_FALSE(results.has_value());
  for (const char* const part : {"engine:mem-limit=1M", "fill", "ENOSPC", "--size"}) {
    EXPECT_NE(results.error().message.find(part), std::string::npos) << results.error().message;
  }
}

TEST(Runner, what_cannot_fit_is_refused_before_it_is_tried) {
  SuiteOptions options = small_options("engine");
  options.size = "16T";
  options.data.buffer_compress_percentage.clear();
  options.data.buffer_random = true;
  options.verify.clear();
  const auto results = run("pages", options);
  ASSERT_FALSE(results.has_value());
  EXPECT_NE(results.error().message.find("--size"), std::string::npos) << results.error().message;
}

TEST(Runner, the_bare_codec_refuses_what_lies_beyond_its_size) {
  auto data = pattern_data("0xbadc0ffee");
  auto config = parse_target("codec");
  ASSERT_TRUE(data.has_value() && config.has_value());
  auto target = open_target(*config, {16 * kDataPage, *data, 1});
  ASSERT_TRUE(target.has_value());
  auto port = (*target)->open_port(1);
  ASSERT_TRUE(port.has_value());
  std::vector<std::byte> buffer(2 * kDataPage);
  Request request;
  request.offset = 15 * kDataPage;
  request.length = buffer.size();
  request.buffer = buffer.data();
  for (const Op op : {Op::read, Op::discard}) {
    request.op = op;
    (*port)->execute(request);
    EXPECT_EQ(request.status, Errc::out_of_range);
  }
  EXPECT_FALSE((*port)->failure().empty());
}

TEST(Runner, what_had_been_measured_before_a_failure_is_handed_over) {
  SuiteOptions options = small_options("engine");
  options.rounds = "2";
  auto plan = make_plan("pages", options);
  ASSERT_TRUE(plan.has_value());
  // The last phase reaches beyond the device.
  plan->groups.front().phases.back().job_stride = 0;
  plan->groups.front().phases.back().job_bytes *= 2;
  ResultFile finished;
  const std::atomic<bool> stop{false};
  const auto results = run_plan(*plan, stop, kNoProgress, &finished);
  ASSERT_FALSE(results.has_value());
  EXPECT_FALSE(finished.rows.empty());
  EXPECT_TRUE(finished.interrupted);
  ASSERT_FALSE(finished.notes.empty());
  EXPECT_NE(finished.notes.back().find("randread"), std::string::npos) << finished.notes.back();
}

TEST(Runner, stored_data_is_discarded_again_only_after_it_was_stored_again) {
  SuiteOptions options = small_options("engine");
  options.verify.clear();
  options.jobs = "2";
  options.loops = "3";
  const auto results = run("discard", options);
  ASSERT_TRUE(results.has_value()) << results.error().message;
  for (const Row& row : results->rows) {
    if (row.state == "stored") {
      // By however many threads, three passes over all of it.
      const double bytes = row.mb_per_s.values().front() * 1e6 * row.elapsed_s.values().front();
      EXPECT_NEAR(bytes / (1 << 20), 3 * 8, 1) << row.op;
    }
  }
  options.loops.clear();
  options.runtime = "0.01";
  EXPECT_TRUE(run("discard", options).has_value());
}

TEST(Runner, rows_have_no_ratio_where_the_first_target_has_no_part) {
  const std::atomic<bool> stop{false};
  auto plan = make_plan("pages", small_options("codec,engine"));
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  plan->rounds = 1;
  plan->groups.front().lacks_first = true;
  auto results = run_plan(*plan, stop, kNoProgress);
  ASSERT_TRUE(results.has_value()) << results.error().message;
  EXPECT_EQ(results->rows.size(), 8U);
  for (const Row& row : results->rows) {
    EXPECT_TRUE(row.ratio_to_first.empty());
  }
  plan->groups.front().lacks_first = false;
  plan->groups.front().first_is_repeated = true;
  results = run_plan(*plan, stop, kNoProgress);
  ASSERT_TRUE(results.has_value()) << results.error().message;
  EXPECT_EQ(results->rows.size(), 4U);
  for (const Row& row : results->rows) {
    EXPECT_EQ(row.label, "engine");
    EXPECT_EQ(row.ratio_to_first.values().size(), 1U);
  }
}

TEST(Runner, what_is_overwritten_again_and_again_is_verified) {
  for (const char* const suite : {"ageing", "async", "nowait"}) {
    SuiteOptions options = small_options("engine");
    options.jobs = "3";
    options.iodepth = "4";
    options.loops = "3";
    options.runtime = "0";
    options.rounds = "1";
    options.modes = "nowait,async";
    options.tree = UZRAM_SOURCE_DIR "/src";
    const auto results = run(suite, options);
    EXPECT_TRUE(results.has_value()) << suite << ": " << results.error().message;
  }
}

TEST(Runner, stops_when_asked_and_says_so) {
  const auto plan = make_plan("pages", small_options("engine"));
  ASSERT_TRUE(plan.has_value());
  const std::atomic<bool> stop{true};
  const auto results = run_plan(*plan, stop, kNoProgress);
  ASSERT_TRUE(results.has_value());
  EXPECT_TRUE(results->interrupted);
  EXPECT_TRUE(results->rows.empty());
}

TEST(Crew, counters_that_a_thread_could_not_have_are_left_out) {
  EXPECT_EQ(sum_of_counters({{{"cycles", 3}, {"instructions", 5}}, {{"instructions", 6}}}),
            (Counters{{"instructions", 11}}));
  EXPECT_TRUE(sum_of_counters({{{"cycles", 3}}, {}}).empty());
}

// A target of one job that keeps the requests it gets.
class RecordingPort final : public Port {
 public:
  void submit(std::span<Request* const> batch) noexcept override {
    std::this_thread::sleep_for(submission_takes);
    for (Request* const request : batch) {
      waiting_.push_back(request);
    }
    most_in_flight = std::max(most_in_flight, waiting_.size());
  }
  Request* reap() noexcept override {
    if (waiting_.empty()) {
      return nullptr;
    }
    Request* const request = waiting_.back();
    waiting_.pop_back();
    execute(*request);
    return request;
  }
  void execute(Request& request) noexcept override {
    offsets.insert(request.offset);
    sequence.push_back(request.offset);
    if (request.op == Op::write) {
      pages_written.emplace(request.offset, request.buffer);
    }
    ++requests;
    request.status = request.offset == failing_offset ? Errc::corrupt : Errc::ok;
    if (request.op == Op::read) {
      std::fill_n(request.buffer, request.length, std::byte{1});
    }
  }
  std::string failure() const override { return "made to fail"; }

  void forget() {
    offsets.clear();
    sequence.clear();
    pages_written.clear();
    requests = 0;
    most_in_flight = 0;
  }

  std::multiset<std::uint64_t> offsets;
  std::vector<std::uint64_t> sequence;
  std::multimap<std::uint64_t, const std::byte*> pages_written;
  std::size_t requests = 0;
  std::size_t most_in_flight = 0;
  std::uint64_t failing_offset = ~std::uint64_t{0};
  std::chrono::milliseconds submission_takes{0};

 private:
  std::vector<Request*> waiting_;
};

// Takes a millisecond for a request.
class SluggishTarget final : public Target {
 public:
  class SluggishPort final : public Port {
   public:
    void submit(std::span<Request* const> /*batch*/) noexcept override {}
    Request* reap() noexcept override { return nullptr; }
    void execute(Request& /*request*/) noexcept override {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::string failure() const override { return {}; }
  };

  const TargetInfo& info() const noexcept override { return info_; }
  Result<std::unique_ptr<Port>> open_port(std::uint32_t /*iodepth*/) override {
    return std::unique_ptr<Port>(std::make_unique<SluggishPort>());
  }
  MemoryUse memory() const override { return {}; }

 private:
  TargetInfo info_;
};

TEST(SlowTarget, long_requests_are_slowed_down_too_however_few) {
  const auto slow = make_slow_target(std::make_unique<SluggishTarget>(), 100);
  auto port = slow->open_port(1);
  ASSERT_TRUE(port.has_value());
  constexpr int kStretches = 5;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kStretches; ++i) {
    Request request;
    (*port)->begin();
    (*port)->execute(request);
  }
  // It can only take longer than asked for.
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(2 * kStretches));
}

class JobTest : public testing::Test {
 protected:
  void SetUp() override {
    auto data = pattern_data("0xbadc0ffee");
    ASSERT_TRUE(data.has_value());
    data_ = *data;
    phase_.op = "randwrite";
    phase_.access = Access::write;
    phase_.random = true;
    phase_.job_bytes = 64 * kDataPage;
    phase_.job_stride = phase_.job_bytes;
  }

  // The job of index 1 after all its requests.
  std::unique_ptr<Job> run_job(Contents* contents = nullptr) {
    auto job = Job::make(phase_, 1, data_, port_, contents, stop_);
    EXPECT_TRUE(job.has_value());
    (*job)->run({(*job)->blocks() * phase_.loops, 0, false});
    return *std::move(job);
  }

  using Written = std::multimap<std::uint64_t, const std::byte*>::const_iterator;
  static std::set<const std::byte*> pages_of(Written first, Written end) {
    std::set<const std::byte*> pages;
    for (; first != end; ++first) {
      pages.insert(first->second);
    }
    return pages;
  }

  std::shared_ptr<const DataSet> data_;
  Phase phase_;
  RecordingPort port_;
  std::atomic<bool> stop_{false};
};

TEST_F(JobTest, goes_over_its_own_range_once_in_each_loop) {
  for (const std::uint32_t depth : {1U, 7U}) {
    port_.forget();
    phase_.iodepth = depth;
    phase_.loops = 3;
    const auto job = run_job();
    EXPECT_EQ(job->counts().write_bytes, 3 * phase_.job_bytes);
    EXPECT_EQ(port_.most_in_flight, depth == 1 ? 0U : depth);
    for (std::uint64_t block = 0; block < 64; ++block) {
      EXPECT_EQ(port_.offsets.count((64 + block) * kDataPage), 3U) << block;
    }
  }
}

TEST_F(JobTest, orders_differ_between_phases_and_rounds_and_not_between_targets) {
  const auto order = [this] {
    port_.forget();
    run_job();
    return port_.sequence;
  };
  const auto first = order();
  EXPECT_EQ(order(), first);
  phase_.seed = 1;
  EXPECT_NE(order(), first) << "another round";
  phase_.seed = 0;
  phase_.op = "randread";
  EXPECT_NE(order(), first) << "another operation";
}

TEST_F(JobTest, each_loop_writes_another_page_than_the_last) {
  auto data = compressible_data(50);
  ASSERT_TRUE(data.has_value());
  data_ = *data;
  phase_.loops = 2;
  run_job();
  for (std::uint64_t block = 64; block < 128; ++block) {
    const auto [first, end] = port_.pages_written.equal_range(block * kDataPage);
    ASSERT_EQ(std::distance(first, end), 2);
    EXPECT_NE(first->second, std::next(first)->second) << block;
  }
}

TEST_F(JobTest, loops_over_a_range_of_its_own_differ_when_they_are_verified_too) {
  auto data = compressible_data(50);
  ASSERT_TRUE(data.has_value());
  data_ = *data;
  phase_.loops = 20;
  for (const std::uint32_t depth : {1U, 7U}) {
    port_.forget();
    phase_.iodepth = depth;
    Contents contents(data_, 128);
    run_job(&contents);
    for (std::uint64_t page = 64; page < 128; ++page) {
      const auto [first, end] = port_.pages_written.equal_range(page * kDataPage);
      const std::set<const std::byte*> distinct_pages = pages_of(first, end);
      EXPECT_EQ(distinct_pages.size(), 20U) << page;
      EXPECT_TRUE(contents.matches(page, {std::prev(end)->second, kDataPage}, false, 0)) << page;
    }
  }
}

TEST_F(JobTest, writes_no_block_twice_at_once_where_contents_are_kept) {
  phase_.job_bytes = 4 * kDataPage;
  phase_.loops = 8;
  phase_.iodepth = 7;
  Contents contents(data_, 128);
  for (const bool random : {false, true}) {
    port_.forget();
    phase_.random = random;
    run_job(&contents);
    EXPECT_EQ(port_.requests, 32U);
    EXPECT_LE(port_.most_in_flight, 4U);
  }
}

TEST_F(JobTest, a_range_shared_with_others_has_one_content_where_it_is_verified) {
  auto data = compressible_data(50);
  ASSERT_TRUE(data.has_value());
  data_ = *data;
  phase_.jobs = 2;
  phase_.job_stride = 0;
  phase_.loops = 2;
  Contents contents(data_, 128);
  run_job(&contents);
  for (std::uint64_t page = 0; page < 64; ++page) {
    const auto [first, end] = port_.pages_written.equal_range(page * kDataPage);
    EXPECT_EQ(pages_of(first, end).size(), 1U) << page;
  }
}

TEST(Contents, tells_any_two_generations_apart) {
  const auto data = compressible_data(50);
  ASSERT_TRUE(data.has_value());
  Contents contents(*data, 1);
  for (const std::uint32_t generation : {0U, 44U, 255U, 256U, 300U, 70000U}) {
    contents.note_write(0, 1, generation);
    for (const std::uint32_t other : {0U, 44U, 255U, 256U, 300U, 70000U}) {
      const auto index = (*data)->index_of(0, other);
      const bool same = index == (*data)->index_of(0, generation);
      EXPECT_EQ(contents.matches(0, {(*data)->at(index), kDataPage}, false, 0), same)
          << generation << " against " << other;
    }
  }
}

TEST_F(JobTest, a_submission_lasts_for_each_request_until_its_batch_is_submitted) {
  phase_.latency = true;
  phase_.iodepth = 8;
  port_.submission_takes = std::chrono::milliseconds(2);
  const auto job = run_job();
  EXPECT_EQ(job->submit_latency()->count(), 64U);
  EXPECT_GE(job->submit_latency()->summary().min_ns, 2000000U);
}

TEST_F(JobTest, mixes_about_half_reads) {
  phase_.access = Access::read_write;
  phase_.loops = 32;
  for (const bool random : {false, true}) {
    phase_.random = random;
    const auto job = run_job();
    const double reads = static_cast<double>(job->counts().read_bytes);
    EXPECT_NEAR(reads / static_cast<double>(32 * phase_.job_bytes), 0.5, 0.1);
  }
}

TEST_F(JobTest, ends_at_the_first_failure_and_names_it) {
  for (const std::uint32_t depth : {1U, 7U}) {
    phase_.iodepth = depth;
    port_.failing_offset = 70 * kDataPage;
    const auto job = run_job();
    EXPECT_EQ(job->failure(), "randwrite: a write of 4096 bytes at 286720 failed: made to fail");
  }
}

TEST_F(JobTest, notices_wrong_content) {
  phase_.op = "read";
  phase_.access = Access::read;
  phase_.verify = true;
  Contents contents(data_, 128);
  contents.note_write(64, 64, 0);
  for (const std::uint32_t depth : {1U, 7U}) {
    phase_.iodepth = depth;
    EXPECT_NE(run_job(&contents)->failure().find("not what was written"), std::string::npos);
  }
}

TEST_F(JobTest, a_time_limit_ends_it) {
  auto job = Job::make(phase_, 0, data_, port_, nullptr, stop_);
  ASSERT_TRUE(job.has_value());
  (*job)->run({0, 50000000, false});
  EXPECT_GE((*job)->counts().end_ns - (*job)->counts().start_ns, 50000000U);
  EXPECT_GT(port_.requests, 64U) << "it goes over its range again and again";
}

}  // namespace
}  // namespace uzram::bench
