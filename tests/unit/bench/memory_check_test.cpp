#include "bench/memory_check.hpp"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "bench/data_options.hpp"
#include "support/temporary_folder.hpp"

namespace uzram::bench {
namespace {

constexpr std::uint64_t kSize = std::uint64_t{1} << 30;

double needed_by(const std::string& target) {
  const auto data = pattern_data("0xbadc0ffee");
  const auto config = parse_target(target);
  EXPECT_TRUE(data.has_value() && config.has_value()) << target;
  return data && config ? memory_needed(*config, kSize, **data) : -1;
}

TEST(MemoryCheck, devices_that_keep_their_data_in_this_machine_s_memory_are_counted) {
  const double engine = needed_by("engine");
  EXPECT_GT(engine, 0);
  EXPECT_LT(engine, static_cast<double>(kSize) / 4);
  for (const char* const target :
       {"zram", "/dev/zram7", "/dev/zram7:io=psync", "nbd+unix:///a?socket=/run/a.nbd",
        "nbds+unix:///a?socket=/run/a.nbd", "nbd://localhost/a", "nbd://LOCALHOST",
        "nbd://127.0.0.1:10810/a", "nbds://user@localhost:1/a", "nbd://[::1]/a",
        "nbd://[::1]:10810"}) {
    EXPECT_EQ(needed_by(target), engine) << target;
  }
  // Uncompressed.
  EXPECT_GE(needed_by("/dev/ram0"), static_cast<double>(kSize));
}

TEST(MemoryCheck, a_link_is_what_it_leads_to) {
  const std::string device = "/dev/zram0";
  if (!std::filesystem::exists(device)) {
    GTEST_SKIP() << "there is no " << device;
  }
  const test::TemporaryFolder folder;
  const std::string link = folder / "disk";
  std::filesystem::create_symlink(device, link);
  EXPECT_EQ(needed_by(link), needed_by("zram"));
}

TEST(MemoryCheck, other_devices_and_machines_have_their_own) {
  for (const char* const target :
       {"/dev/sda", "/dev/zramble", "/dev/random", "nbd://192.0.2.1/localhost",
        "nbd://localhost.example/a", "nbd://[2001:db8::1]/a"}) {
    EXPECT_EQ(needed_by(target), 0) << target;
  }
}

}  // namespace
}  // namespace uzram::bench
