#include "cli/serve_options.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <CLI/Error.hpp>
#include <gtest/gtest.h>

#include "cli/command_line.hpp"

namespace uzram::cli {
namespace {

// The arguments of `uzram serve`, through the program's own parser.
ServeArguments arguments_of(std::vector<std::string> words) {
  CommandLine line;
  const auto app = make_app(line);
  words.insert(words.begin(), "serve");
  // It takes words from the end.
  std::reverse(words.begin(), words.end());
  app->parse(words);
  return line.serve;
}

Result<ServeOptions> parse(const std::vector<std::string>& words) {
  return parse_serve_options(arguments_of(words));
}

void expect_refused(const std::vector<std::string>& words, const std::vector<std::string>& parts) {
  const auto options = parse(words);
  ASSERT_FALSE(options.has_value()) << words.front();
  for (const std::string& part : parts) {
    EXPECT_NE(options.error().message.find(part), std::string::npos)
        << options.error().message << " lacks " << part;
  }
}

TEST(ServeOptions, shorthands_describe_one_device) {
  const auto options =
      parse({"--size",       "1M",  "--name",    "disk",  "--algorithm",        "zstd",
             "--level",      "7",   "--mode",    "async", "--workers",          "3",
             "--mem-limit",  "64K", "--reserve", "60K",   "--max-comp-streams", "2",
             "--block-size", "512"});
  ASSERT_TRUE(options.has_value()) << options.error().message;
  ASSERT_EQ(options->devices.size(), 1U);
  const control::DeviceSettings& device = options->devices.front();
  EXPECT_EQ(device.options.name, "disk");
  EXPECT_EQ(device.options.disksize_bytes, 1U << 20);
  EXPECT_EQ(device.options.algorithm, "zstd");
  EXPECT_EQ(device.options.level, 7);
  EXPECT_EQ(device.options.mode, Mode::async);
  EXPECT_EQ(device.options.workers, 3U);
  EXPECT_EQ(device.options.mem_limit_bytes, 65536U);
  EXPECT_EQ(device.options.reserve_bytes, 61440U);
  EXPECT_EQ(device.options.max_comp_streams, 2U);
  EXPECT_EQ(device.logical_block_bytes, 512U);
}

TEST(ServeOptions, checksum_is_a_flag_that_may_say_on_or_off) {
  const auto checksum = [](const std::vector<std::string>& words) {
    const auto options = parse(words);
    EXPECT_TRUE(options.has_value()) << options.error().message;
    return options && options->devices.front().options.checksum;
  };
  EXPECT_FALSE(checksum({"--size", "1M"}));
  EXPECT_TRUE(checksum({"--size", "1M", "--checksum"}));
  EXPECT_TRUE(checksum({"--size", "1M", "--checksum=on"}));
  EXPECT_FALSE(checksum({"--size", "1M", "--checksum=off"}));
  expect_refused({"--size", "1M", "--checksum=crc"}, {"--checksum", "\"crc\"", "on or off"});
}

TEST(ServeOptions, a_device_trains_where_it_is_told_to) {
  const auto trains = parse({"--size", "1M", "--algorithm", "pagez", "--train"});
  ASSERT_TRUE(trains.has_value()) << trains.error().message;
  EXPECT_TRUE(trains->devices.front().options.train);
  expect_refused({"--size", "1M", "--train"}, {"train on", "\"lz4\"", "pagez"});
  expect_refused({"--device", "size=1M", "--train"}, {"--train", "--device …,train"});
}

TEST(ServeOptions, a_block_device_is_an_nbd_export_only_when_an_address_is_given) {
  const auto alone = parse({"--size", "1M", "--ublk", "--block-size", "512", "--read-only"});
  ASSERT_TRUE(alone.has_value()) << alone.error().message;
  const control::DeviceSettings& device = alone->devices.front();
  EXPECT_TRUE(device.ublk);
  EXPECT_FALSE(device.ublk_options.id.has_value());
  EXPECT_EQ(device.ublk_options.logical_block_bytes, 512U);
  EXPECT_TRUE(device.ublk_options.read_only);
  EXPECT_FALSE(is_nbd_export(*alone, device));
  const auto beside = parse({"--size", "1M", "--ublk=0", "--nbd", ":0"});
  ASSERT_TRUE(beside.has_value()) << beside.error().message;
  EXPECT_EQ(beside->devices.front().ublk_options.id, 0U);
  EXPECT_TRUE(is_nbd_export(*beside, beside->devices.front()));
  const auto mixed = parse({"--device", "size=1M,ublk=3", "--device", "size=1M"});
  ASSERT_TRUE(mixed.has_value()) << mixed.error().message;
  EXPECT_FALSE(is_nbd_export(*mixed, mixed->devices[0]));
  EXPECT_TRUE(is_nbd_export(*mixed, mixed->devices[1]));
}

TEST(ServeOptions, block_devices_that_cannot_be_are_refused) {
  expect_refused({"--size", "1M", "--ublk=x"}, {"--ublk", "\"x\"", "/dev/ublkbN"});
  expect_refused({"--size", "1M", "--depth", "9"}, {"ublk"});
  expect_refused({"--device", "size=1M", "--ublk"}, {"--ublk", "--device …,ublk"});
  expect_refused({"--device", "size=1M", "--ublk=4"}, {"--ublk", "--device …,ublk=4"});
  // What follows after a blank is no number of it.
  EXPECT_THROW((void)parse({"--size", "1M", "--ublk", "4"}), CLI::ParseError);
}

TEST(ServeOptions, swap_keeps_a_sixteenth_free_unless_it_is_told_how_much) {
  const auto reserve_of = [](const std::vector<std::string>& words) {
    const auto options = parse(words);
    EXPECT_TRUE(options.has_value()) << options.error().message;
    EXPECT_TRUE(options->devices.front().ublk_options.present_buffers);
    return options->devices.front().options.reserve_bytes >> 20;
  };
  EXPECT_EQ(reserve_of({"--swap", "--size", "1G"}), 64U);
  EXPECT_EQ(reserve_of({"--swap", "--size", "64M"}), 16U);
  EXPECT_EQ(reserve_of({"--swap", "--size", "8M"}), 8U);
  EXPECT_EQ(reserve_of({"--swap", "--size", "1T"}), 256U);
  EXPECT_EQ(reserve_of({"--swap", "--size", "1G", "--mem-limit", "32M"}), 32U);
  EXPECT_EQ(reserve_of({"--swap", "--size", "1G", "--reserve", "5M"}), 5U);
  const auto without = parse({"--size", "1G"});
  ASSERT_TRUE(without.has_value());
  EXPECT_EQ(without->devices.front().options.reserve_bytes, 0U);
  EXPECT_FALSE(without->swap);
}

TEST(ServeOptions, swap_needs_a_device_that_is_written_and_looked_after) {
  expect_refused({"--swap", "--size", "1M", "--read-only"}, {"--swap", "read-only"});
  expect_refused({"--swap", "--size", "1M", "--background", "off"}, {"--swap", "background"});
}

TEST(ServeOptions, defaults_of_one_device_and_the_server) {
  const auto options = parse({"--size", "1M"});
  ASSERT_TRUE(options.has_value()) << options.error().message;
  EXPECT_EQ(options->devices.front().options.name, "uzram0");
  EXPECT_EQ(options->devices.front().options.algorithm, "lz4");
  EXPECT_EQ(options->devices.front().logical_block_bytes, 4096U);
  EXPECT_TRUE(options->listeners.empty());
  EXPECT_TRUE(options->control.empty());
  EXPECT_EQ(options->max_connections, 256U);
  EXPECT_EQ(options->handshake_timeout_ms, 10'000U);
}

TEST(ServeOptions, device_repeats_and_unnamed_ones_are_numbered_by_place) {
  const auto options =
      parse({"--device", "size=1M", "--device", "name=b,size=2M", "--device", "size=3M"});
  ASSERT_TRUE(options.has_value()) << options.error().message;
  ASSERT_EQ(options->devices.size(), 3U);
  EXPECT_EQ(options->devices[0].options.name, "uzram0");
  EXPECT_EQ(options->devices[1].options.name, "b");
  EXPECT_EQ(options->devices[2].options.name, "uzram2");
}

TEST(ServeOptions, without_a_device_are_refused) {
  expect_refused({"--max-connections", "1"}, {"--size", "--device"});
  expect_refused({"--name", "disk"}, {"\"disk\"", "size"});
}

TEST(ServeOptions, shorthands_together_with_device_are_refused) {
  expect_refused({"--size", "1M", "--device", "size=1M"}, {"--size", "--device"});
  expect_refused({"--level", "1", "--device", "size=1M"}, {"--level", "level=1"});
}

TEST(ServeOptions, two_devices_of_a_name_are_refused) {
  expect_refused({"--device", "name=a,size=1M", "--device", "name=a,size=1M"}, {"\"a\""});
  expect_refused({"--device", "name=uzram1,size=1M", "--device", "size=1M"}, {"\"uzram1\""});
}

TEST(ServeOptions, a_shorthand_s_refusal_names_the_option) {
  expect_refused({"--size", "4X"}, {"--size \"4X\""});
  expect_refused({"--size", "1M", "--workers", "x"}, {"--workers \"x\"", "256"});
  expect_refused({"--size", "1M", "--mode", "fast"}, {"--mode \"fast\"", "nowait, async or auto"});
}

TEST(ServeOptions, an_option_given_twice_is_refused) {
  EXPECT_THROW(arguments_of({"--size", "1M", "--size", "2M"}), CLI::ParseError);
}

TEST(ServeOptions, a_repeatable_option_takes_one_value_each_time) {
  EXPECT_THROW(arguments_of({"--device", "size=1M", "size=2M"}), CLI::ParseError);
}

TEST(ServeOptions, counts_out_of_range_are_refused) {
  for (const char* const value : {"0", "-1", "65537", "many", "1.5", "99999999999"}) {
    expect_refused({"--size", "1M", "--max-connections=" + std::string(value)},
                   {"--max-connections", "65536"});
  }
  for (const char* const value : {"0", "3601", "5s", ""}) {
    expect_refused({"--size", "1M", "--handshake-timeout", value}, {"--handshake-timeout", "3600"});
  }
}

TEST(ServeOptions, counts_are_taken) {
  const auto options =
      parse({"--size", "1M", "--max-connections", "65536", "--handshake-timeout", "3600"});
  ASSERT_TRUE(options.has_value()) << options.error().message;
  EXPECT_EQ(options->max_connections, 65536U);
  EXPECT_EQ(options->handshake_timeout_ms, 3'600'000U);
}

TEST(Listener, tcp_addresses_are_understood) {
  struct Case {
    const char* text;
    const char* host;
    std::uint16_t port;
  };
  for (const Case& one : {Case{"tcp:127.0.0.1:10809", "127.0.0.1", 10809},
                          Case{":10809", "127.0.0.1", 10809}, Case{"tcp::0", "127.0.0.1", 0},
                          Case{"0.0.0.0:1", "0.0.0.0", 1}, Case{"tcp:[::1]:65535", "::1", 65535},
                          Case{"[::]:2", "::", 2}, Case{"localhost:3", "localhost", 3}}) {
    const auto listener = parse_listener(one.text);
    ASSERT_TRUE(listener.has_value()) << listener.error().message;
    EXPECT_EQ(listener->tcp_host, one.host) << one.text;
    EXPECT_EQ(listener->tcp_port, one.port) << one.text;
    EXPECT_TRUE(listener->unix_path.empty()) << one.text;
  }
}

TEST(Listener, unix_paths_are_understood) {
  const auto listener = parse_listener("unix:/run/a:b.sock");
  ASSERT_TRUE(listener.has_value()) << listener.error().message;
  EXPECT_EQ(listener->unix_path, "/run/a:b.sock");
}

TEST(Listener, what_is_no_address_is_refused_with_the_forms) {
  for (const char* const text : {"", "10809", "unix:", "tcp:", "tcp:host", "tcp:host:", ":65536",
                                 ":-1", ":1x", "::1:10809", "[::1:10809", "/run/x.sock:1"}) {
    const auto listener = parse_listener(text);
    ASSERT_FALSE(listener.has_value()) << text;
    EXPECT_NE(listener.error().message.find("\"" + std::string(text) + "\""), std::string::npos);
    EXPECT_NE(listener.error().message.find("unix:PATH"), std::string::npos);
  }
}

}  // namespace
}  // namespace uzram::cli
