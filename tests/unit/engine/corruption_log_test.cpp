#include "engine/corruption_log.hpp"

#include <chrono>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "engine/stats.hpp"
#include "support/captured_log.hpp"
#include "support/eventually.hpp"

namespace uzram::engine {
namespace {

using namespace std::chrono_literals;
using test::CapturedLog;
using test::eventually;

TEST(CorruptionLog, names_the_device_the_byte_and_how_many_there_were) {
  CapturedLog captured;
  Stats stats;
  CorruptionLog log("swap", 4096, stats);
  stats.add(Counter::corrupt_pages, 3);
  log.found(5);
  ASSERT_TRUE(eventually([&] { return captured.lines() == 1; }));
  EXPECT_NE(captured.text().find("error: device swap: the page at byte 20480 is corrupt"),
            std::string::npos)
      << captured.text();
  EXPECT_NE(captured.text().find("corrupt_pages is 3\n"), std::string::npos) << captured.text();
}

TEST(CorruptionLog, writes_one_line_however_many_are_found) {
  CapturedLog captured;
  Stats stats;
  CorruptionLog log("disk", 4096, stats, 1h);
  for (PageIndex page = 0; page < 1000; ++page) {
    log.found(page);
  }
  ASSERT_TRUE(eventually([&] { return captured.lines() == 1; }));
  for (PageIndex page = 0; page < 1000; ++page) {
    log.found(page);
  }
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(captured.lines(), 1U) << captured.text();
}

TEST(CorruptionLog, writes_the_next_line_when_it_is_due_and_no_page_is_needed_for_it) {
  CapturedLog captured;
  Stats stats;
  CorruptionLog log("disk", 4096, stats, 20ms);
  log.found(1);
  ASSERT_TRUE(eventually([&] { return captured.lines() == 1; }));
  log.found(2);
  EXPECT_TRUE(eventually([&] { return captured.lines() == 2; }));
  EXPECT_NE(captured.text().find("byte 8192 "), std::string::npos) << captured.text();
}

TEST(CorruptionLog, writes_nothing_when_nothing_is_found) {
  CapturedLog captured;
  Stats stats;
  { const CorruptionLog log("disk", 4096, stats, 1ms); }
  EXPECT_EQ(captured.lines(), 0U) << captured.text();
}

}  // namespace
}  // namespace uzram::engine
