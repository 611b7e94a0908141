#include "bench/target_config.hpp"

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/temporary_folder.hpp"

namespace uzram::bench {
namespace {

// That `text` is refused with a message that holds all of `parts`.
void expect_refused(const std::string& text, const std::vector<std::string>& parts) {
  const auto target = parse_target(text);
  ASSERT_FALSE(target.has_value()) << text;
  for (const std::string& part : parts) {
    EXPECT_NE(target.error().message.find(part), std::string::npos)
        << target.error().message << " lacks " << part;
  }
}

TEST(TargetConfig, engine_takes_keys_of_a_device) {
  const auto target =
      parse_target("engine:algorithm=zstd:level=3:streams=4:mode=nowait:mem-limit=64M");
  ASSERT_TRUE(target.has_value()) << target.error().message;
  EXPECT_EQ(target->kind, TargetKind::engine);
  EXPECT_EQ(target->device.options.algorithm, "zstd");
  EXPECT_EQ(target->device.options.level, 3);
  EXPECT_EQ(target->device.options.max_comp_streams, 4U);
  EXPECT_EQ(target->device.options.mem_limit_bytes, std::uint64_t{64} << 20);
  EXPECT_TRUE(target->algorithm_given);
  EXPECT_TRUE(target->streams_given);
  EXPECT_TRUE(target->mode_given);
  EXPECT_EQ(target->label, target->given);
}

TEST(TargetConfig, plain_names_have_nothing_given) {
  for (const char* const name : {"engine", "codec", "zram"}) {
    const auto target = parse_target(name);
    ASSERT_TRUE(target.has_value()) << target.error().message;
    EXPECT_FALSE(target->algorithm_given || target->streams_given || target->mode_given);
  }
}

TEST(TargetConfig, a_path_may_hold_colons) {
  const auto target = parse_target("/dev/disk/by-path/pci-0000:00:04.0:io=uring:slowdown=2.5%");
  ASSERT_TRUE(target.has_value()) << target.error().message;
  EXPECT_EQ(target->kind, TargetKind::block_device);
  EXPECT_EQ(target->address, "/dev/disk/by-path/pci-0000:00:04.0");
  EXPECT_EQ(target->io, IoPath::uring);
  EXPECT_DOUBLE_EQ(target->slowdown_percent, 2.5);
}

TEST(TargetConfig, a_uri_is_taken_whole) {
  const auto target = parse_target("nbd+unix:///name?socket=/run/a=b:c");
  ASSERT_TRUE(target.has_value()) << target.error().message;
  EXPECT_EQ(target->kind, TargetKind::nbd);
  EXPECT_EQ(target->address, "nbd+unix:///name?socket=/run/a=b:c");
}

TEST(TargetConfig, refusals_name_value_and_expectation) {
  expect_refused("", {"--target \"\"", "engine, codec or zram"});
  expect_refused("motor", {"--target \"motor\"", "engine, codec or zram", "block device"});
  expect_refused("engine:", {"\"\"", "KEY=VALUE"});
  expect_refused("engine:algorithm", {"\"algorithm\"", "KEY=VALUE"});
  expect_refused("engine:algorithm=brotli", {"brotli", "lz4"});
  expect_refused("engine:algorithm=zstd:level=99", {"99", "zstd"});
  expect_refused("engine:size=1G", {"\"size\"", "algorithm, level, streams"});
  expect_refused("engine:level=x", {"\"x\"", "number"});
  expect_refused("codec:streams=4", {"\"streams\"", "algorithm, level"});
  expect_refused("zram:mode=async", {"\"mode\"", "algorithm, level, io"});
  expect_refused("zram:io=aio", {"io=aio", "psync, uring"});
  expect_refused("engine:slowdown=-1", {"slowdown=-1", "0 to 1000"});
  expect_refused("engine:slowdown=nan", {"slowdown=nan", "0 to 1000"});
  expect_refused("engine:slowdown=5x", {"slowdown=5x", "0 to 1000"});
}

TEST(TargetConfig, modes_and_workers_are_taken_and_checked) {
  const auto target = parse_target("engine:mode=async:workers=2");
  ASSERT_TRUE(target.has_value()) << target.error().message;
  EXPECT_EQ(target->device.options.mode, Mode::async);
  EXPECT_EQ(target->device.options.workers, 2U);
  EXPECT_TRUE(target->mode_given);
  expect_refused("engine:mode=fast", {"fast", "nowait, async or auto"});
  expect_refused("engine:workers=300", {"workers", "300", "256"});
}

TEST(TargetConfig, lists_are_separated_by_commas_and_get_unique_labels) {
  const auto targets = parse_targets({"engine,zram", "engine", "engine:level=2"});
  ASSERT_TRUE(targets.has_value()) << targets.error().message;
  std::vector<std::string> labels;
  for (const TargetConfig& target : *targets) {
    labels.push_back(target.label);
  }
  EXPECT_EQ(labels, (std::vector<std::string>{"engine", "zram", "engine#2", "engine:level=2"}));
  EXPECT_FALSE(parse_targets({"engine,"}).has_value());
}

TEST(TargetConfig, the_parts_of_an_nbd_uri_are_told_apart) {
  const NbdAddress socket = parse_nbd_address("nbd+unix:///a%20b?tls=no&socket=/run/x%2Fy.nbd&z=1");
  EXPECT_TRUE(socket.local);
  EXPECT_EQ(socket.socket, "/run/x/y.nbd");
  EXPECT_EQ(socket.name, "a b");
  const NbdAddress far = parse_nbd_address("nbds://me@Example.ORG:1/%zz%4");
  EXPECT_FALSE(far.local);
  EXPECT_EQ(far.host, "example.org");
  EXPECT_EQ(far.port, "1");
  EXPECT_EQ(far.name, "%zz%4");
  const NbdAddress six = parse_nbd_address("nbd://[::1]");
  EXPECT_TRUE(six.local);
  EXPECT_EQ(six.host, "localhost");
  EXPECT_EQ(six.port, "10809");
  EXPECT_EQ(six.name, "");
}

// How many different places the targets have.
std::size_t places(const std::vector<std::string>& texts) {
  std::set<std::string> found;
  for (const std::string& text : texts) {
    const auto target = parse_target(text);
    EXPECT_TRUE(target.has_value()) << text;
    found.insert(target ? place_of(*target) : "");
  }
  return found.size();
}

TEST(TargetConfig, one_place_under_several_names_is_seen_to_be_one) {
  const test::TemporaryFolder folder;
  const std::string link = folder / "link";
  std::filesystem::create_symlink("/dev/null", link);
  EXPECT_EQ(places({"/dev/null", "/dev/../dev/null", link, "/dev/null:io=psync"}), 1U);
  EXPECT_EQ(places({"/dev/null", "/dev/zero", "/nowhere", "/nowhere2"}), 4U);
  const std::string socket = folder / "s.nbd";
  std::ofstream(socket).close();
  EXPECT_EQ(places({"nbd+unix:///a?socket=" + socket, "nbds+unix:///a?socket=/tmp/.." + socket}),
            1U);
  EXPECT_EQ(places({"nbd+unix:///a?socket=" + socket, "nbd+unix:///b?socket=" + socket,
                    "nbd+unix:///a?socket=/nowhere"}),
            3U);
  EXPECT_EQ(places({"nbd://localhost/a", "nbd://127.0.0.1:10809/a", "nbd://[::1]/a"}), 1U);
  EXPECT_EQ(places({"nbd://localhost/a", "nbd://localhost/b", "nbd://localhost:1/a", "nbd://h/a"}),
            4U);
  // Each is made anew.
  EXPECT_EQ(place_of(*parse_target("engine")), "");
  EXPECT_EQ(place_of(*parse_target("zram")), "");
}

TEST(TargetConfig, varying_is_like_writing_it) {
  auto target = parse_target("engine");
  ASSERT_TRUE(target.has_value());
  ASSERT_TRUE(vary(*target, "streams", "per-cpu").has_value());
  EXPECT_EQ(target->label, "engine:streams=per-cpu");
  EXPECT_EQ(target->given, "engine");
  EXPECT_EQ(target->device.options.max_comp_streams, 0U);
  ASSERT_TRUE(vary(*target, "algorithm", "zstd").has_value());
  EXPECT_EQ(target->device.options.algorithm, "zstd");
  ASSERT_TRUE(vary(*target, "mode", "async").has_value());
  EXPECT_EQ(target->device.options.mode, Mode::async);
  EXPECT_FALSE(vary(*target, "mode", "fast").has_value());
}

}  // namespace
}  // namespace uzram::bench
