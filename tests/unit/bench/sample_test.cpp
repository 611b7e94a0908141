#include "bench/sample.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "bench/data.hpp"
#include "support/process_with_pages.hpp"

namespace uzram::bench {
namespace {

constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

// The numbers of the numbered pages, in the order of the sample.
std::vector<std::uint64_t> numbers_in(const Sample& sample) {
  std::vector<std::uint64_t> numbers;
  for (std::size_t at = 0; at < sample.bytes.size(); at += kDataPage) {
    if (const auto number =
            test::ProcessWithPages::number_of(std::span(sample.bytes).subspan(at, kDataPage))) {
      numbers.push_back(*number);
    }
  }
  return numbers;
}

TEST(Sample, of_everything_holds_each_private_page_once) {
  const test::ProcessWithPages child(200);
  ASSERT_TRUE(child.is_ready());
  const auto sample = take_sample({{child.pid()}, kAll});
  ASSERT_TRUE(sample.has_value()) << sample.error().message;
  std::vector<std::uint64_t> expected(200);
  for (std::size_t number = 0; number < expected.size(); ++number) {
    expected[number] = number;
  }
  EXPECT_EQ(numbers_in(*sample), expected);
  ASSERT_EQ(sample->processes.size(), 1U);
  EXPECT_EQ(sample->processes.front().pid, child.pid());
  EXPECT_EQ(sample->processes.front().pages, sample->bytes.size() / kDataPage);
  EXPECT_FALSE(sample->processes.front().name.empty());
}

TEST(Sample, of_a_part_is_evenly_spread) {
  const test::ProcessWithPages child(4096);
  ASSERT_TRUE(child.is_ready());
  const auto sample = take_sample({{child.pid()}, 256});
  ASSERT_TRUE(sample.has_value()) << sample.error().message;
  EXPECT_EQ(sample->bytes.size(), 256 * kDataPage);
  const std::vector<std::uint64_t> numbers = numbers_in(*sample);
  // A process has other pages, too; with a sanitizer many.
  ASSERT_GE(numbers.size(), 8U);
  const std::uint64_t distance = numbers[1] - numbers[0];
  for (std::size_t at = 1; at < numbers.size(); ++at) {
    EXPECT_LE(numbers[at] - numbers[at - 1], distance + 1);
    EXPECT_GE(numbers[at] - numbers[at - 1] + 1, distance);
  }
  EXPECT_LE(numbers.front(), distance);
  EXPECT_GE(numbers.back() + distance + 1, 4095U);
}

TEST(Sample, takes_of_each_process_in_proportion) {
  const test::ProcessWithPages small(1000);
  const test::ProcessWithPages large(3000);
  ASSERT_TRUE(small.is_ready() && large.is_ready());
  const auto whole = take_sample({{small.pid(), large.pid(), small.pid()}, kAll});
  const auto part = take_sample({{small.pid(), large.pid()}, 400});
  ASSERT_TRUE(whole && part);
  ASSERT_EQ(whole->processes.size(), 2U);
  ASSERT_EQ(part->processes.size(), 2U);
  const std::size_t total = whole->bytes.size() / kDataPage;
  for (std::size_t at = 0; at < 2; ++at) {
    const double expected =
        400 * static_cast<double>(whole->processes[at].pages) / static_cast<double>(total);
    EXPECT_NEAR(static_cast<double>(part->processes[at].pages), expected, 1.0);
  }
}

TEST(Sample, of_all_processes_leaves_out_the_calling_one) {
  const test::ProcessWithPages child(1);
  ASSERT_TRUE(child.is_ready());
  const auto sample = take_sample({{}, 1'000});
  ASSERT_TRUE(sample.has_value()) << sample.error().message;
  EXPECT_LE(sample->bytes.size(), 1'000 * kDataPage);
  for (const SampledProcess& process : sample->processes) {
    EXPECT_NE(process.pid, ::getpid());
  }
}

TEST(Sample, of_a_pid_that_does_not_exist_is_refused_even_beside_one_that_does) {
  const test::ProcessWithPages child(1);
  test::ProcessWithPages ended(1);
  const pid_t gone = ended.pid();
  ended.end();
  const auto sample = take_sample({{child.pid(), gone}, 10});
  ASSERT_FALSE(sample.has_value());
  EXPECT_EQ(sample.error().code, Errc::not_found);
  EXPECT_NE(sample.error().message.find("pid " + std::to_string(gone)), std::string::npos);
}

// A process that has ended, and is not yet waited for, is one without pages.
TEST(Sample, of_a_process_that_has_ended_says_so) {
  const pid_t zombie = ::fork();
  if (zombie == 0) {
    ::_exit(0);
  }
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(zombie), &info, WEXITED | WNOWAIT), 0);
  const auto sample = take_sample({{zombie}, 10});
  EXPECT_EQ(::waitpid(zombie, nullptr, 0), zombie);
  ASSERT_FALSE(sample.has_value());
  EXPECT_EQ(sample.error().code, Errc::not_found);
  EXPECT_NE(sample.error().message.find("pid " + std::to_string(zombie)), std::string::npos);
  EXPECT_NE(sample.error().message.find("has ended"), std::string::npos) << sample.error().message;
}

}  // namespace
}  // namespace uzram::bench
