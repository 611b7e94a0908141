#include "bench/cell.hpp"

#include <atomic>

#include <gtest/gtest.h>

#include "bench/suite.hpp"

namespace uzram::bench {
namespace {

TEST(Cell, use_that_goes_down_because_the_server_is_gone_can_be_written_and_read) {
  SuiteOptions options;
  options.targets = {"codec"};
  options.size = "1M";
  options.data.buffer_random = true;
  const auto plan = make_plan("pages", options);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  const Group& group = plan->groups.front();
  const auto target = open_target(group.targets.front(), {group.size_bytes, group.data, 1});
  ASSERT_TRUE(target.has_value()) << target.error().message;
  const std::atomic<bool> stop{false};
  const auto crew = Crew::make(group.phases.front(), **target, group.data, nullptr, stop);
  ASSERT_TRUE(crew.has_value()) << crew.error().message;
  const auto elapsed = (*crew)->run(0, 1);
  ASSERT_TRUE(elapsed.has_value()) << elapsed.error().message;
  Cell cell;
  cell.add_round(*elapsed, **crew, Usage{-1, -0.5, -100}, **target);
  ResultFile file;
  file.rows = {
      cell.row(group.phases.front(), group.targets.front(), *group.data, nullptr, nullptr)};
  const auto back = parse_results(to_json(file).dump());
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(back->rows.front().user_s, 0);
  EXPECT_EQ(back->rows.front().context_switches, 0);
}

}  // namespace
}  // namespace uzram::bench
