#include "control/device_option.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace uzram::control {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// That `text` is refused, with a message that holds all of `parts`.
void expect_refused(std::string_view text, const std::vector<std::string>& parts,
                    Errc code = Errc::invalid_argument) {
  const auto device = parse_device(text, 0);
  ASSERT_FALSE(device.has_value()) << text;
  EXPECT_EQ(device.error().code, code) << text;
  for (const std::string& part : parts) {
    EXPECT_NE(device.error().message.find(part), std::string::npos)
        << device.error().message << " lacks " << part;
  }
}

TEST(DeviceOption, size_alone_gives_the_defaults) {
  const auto device = parse_device("size=512M", 3);
  ASSERT_TRUE(device.has_value()) << device.error().message;
  EXPECT_EQ(device->options.name, "uzram3");
  EXPECT_EQ(device->options.disksize_bytes, 512 * kMiB);
  EXPECT_EQ(device->options.algorithm, "lz4");
  EXPECT_FALSE(device->options.level.has_value());
  EXPECT_EQ(device->options.mem_limit_bytes, 0U);
  EXPECT_EQ(device->options.reserve_bytes, 0U);
  EXPECT_EQ(device->options.max_comp_streams, 0U);
  EXPECT_EQ(device->options.mode, Mode::automatic);
  EXPECT_EQ(device->options.workers, 0U);
  EXPECT_EQ(device->logical_block_bytes, 4096U);
  EXPECT_FALSE(device->read_only);
}

TEST(DeviceOption, every_key_is_taken) {
  const auto device = parse_device(
      "name=my "
      "disk,size=1G,algorithm=zstd,level=-5,mode=async,workers=3,background=off,checksum=on,mem-"
      "limit=8M,max-"
      "comp-streams=4,"
      "block-size=512,read-only",
      0);
  ASSERT_TRUE(device.has_value()) << device.error().message;
  EXPECT_EQ(device->options.name, "my disk");
  EXPECT_EQ(device->options.disksize_bytes, 1024 * kMiB);
  EXPECT_EQ(device->options.algorithm, "zstd");
  EXPECT_EQ(device->options.level, -5);
  EXPECT_EQ(device->options.mode, Mode::async);
  EXPECT_EQ(device->options.workers, 3U);
  EXPECT_FALSE(device->options.background);
  EXPECT_TRUE(device->options.checksum);
  EXPECT_EQ(device->options.mem_limit_bytes, 8 * kMiB);
  EXPECT_EQ(device->options.max_comp_streams, 4U);
  EXPECT_EQ(device->logical_block_bytes, 512U);
  EXPECT_TRUE(device->read_only);
}

TEST(DeviceOption, sizes_are_rounded_up_to_a_page) {
  const auto device = parse_device("size=1,mem-limit=131073,reserve=4097", 0);
  ASSERT_TRUE(device.has_value()) << device.error().message;
  EXPECT_EQ(device->options.disksize_bytes, 4096U);
  EXPECT_EQ(device->options.mem_limit_bytes, 135168U);
  EXPECT_EQ(device->options.reserve_bytes, 8192U);
}

TEST(DeviceOption, the_greatest_size_is_16T) {
  EXPECT_TRUE(parse_device("size=16T", 0).has_value());
  expect_refused("size=17T", {"17T", "16T"});
  expect_refused("size=16000P", {"16000P", "16T"});
}

TEST(DeviceOption, sizes_that_are_none_are_refused) {
  expect_refused("size=0", {"--device size", "\"0\"", "greater than 0"});
  expect_refused("size=4X", {"--device size", "4X", "K, M, G, T"});
  expect_refused("size=", {"--device size"});
  expect_refused("size=-1", {"-1"});
  expect_refused("size=1G,mem-limit=x", {"--device mem-limit", "\"x\""});
  expect_refused("size=1G,mem-limit=2000P", {"mem-limit", "2000P"});
  expect_refused("size=1G,reserve=x", {"--device reserve", "\"x\""});
  expect_refused("size=1G,reserve=2000P", {"--device reserve", "2000P"});
}

TEST(DeviceOption, a_missing_size_is_told_with_the_device_s_name) {
  expect_refused("name=a", {"\"a\"", "size"});
  expect_refused("algorithm=lz4", {"uzram0", "size"});
}

TEST(DeviceOption, names_of_1_to_64_printable_characters_without_slashes_are_taken) {
  EXPECT_TRUE(parse_device("size=1M,name=" + std::string(64, 'n'), 0).has_value());
  expect_refused("size=1M,name=" + std::string(65, 'n'), {"--device name", "64"});
  expect_refused("size=1M,name=", {"--device name", "1 to 64"});
  expect_refused("size=1M,name=a/b", {"a/b"});
  expect_refused("size=1M,name=a\nb", {"--device name", "printable"});
  expect_refused("size=1M,name=\xc3\xa4", {"--device name", "ASCII"});
  expect_refused("size=1M,name=..", {"\"..\"", "1 to 64"});
}

TEST(DeviceOption, an_unknown_algorithm_is_answered_with_those_there_are) {
  expect_refused("size=1M,algorithm=lzma", {"lzma", "lz4", "zstd"});
}

TEST(DeviceOption, a_level_may_have_a_name_wherever_the_algorithm_stands) {
  for (const char* const text :
       {"size=1M,algorithm=pagez,level=high", "level=high,size=1M,algorithm=pagez"}) {
    const auto device = parse_device(text, 0);
    ASSERT_TRUE(device.has_value()) << device.error().message;
    EXPECT_EQ(device->options.level, 3);
  }
  EXPECT_EQ(parse_device("size=1M,algorithm=pagez,level=fast", 0)->options.level, 1);
  EXPECT_EQ(parse_device("size=1M,algorithm=pagez,level=default", 0)->options.level, 2);
}

TEST(DeviceOption, a_level_out_of_range_is_answered_with_the_range) {
  expect_refused("size=1M,algorithm=zstd,level=23", {"23", "22", "zstd"});
  expect_refused("size=1M,level=high", {"--device level", "high", "lz4"});
  expect_refused("size=1M,level=best,algorithm=pagez", {"best", "fast, default, high or a whole"});
  expect_refused("size=1M,level=1x", {"1x"});
  // The range is that of the algorithm, wherever it stands.
  EXPECT_TRUE(parse_device("level=12,algorithm=deflate,size=1M", 0).has_value());
}

TEST(DeviceOption, modes_that_do_not_exist_are_refused) {
  expect_refused("size=1M,mode=fast", {"fast", "nowait, async or auto"});
  expect_refused("size=1M,mode=automatic", {"automatic"});
}

TEST(DeviceOption, workers_are_a_number_and_need_a_mode_that_has_them) {
  expect_refused("size=1M,workers=257", {"257", "256"});
  expect_refused("size=1M,workers=many", {"many", "--device workers"});
  expect_refused("size=1M,mode=nowait,workers=2", {"workers 2", "async or auto"});
}

TEST(DeviceOption, background_is_on_or_off) {
  EXPECT_TRUE(parse_device("size=1M,background=on", 0)->options.background);
  expect_refused("size=1M,background=yes", {"--device background", "\"yes\"", "on or off"});
}

TEST(DeviceOption, checksum_is_on_or_off_and_on_when_it_is_named_alone) {
  EXPECT_FALSE(parse_device("size=1M", 0)->options.checksum);
  EXPECT_FALSE(parse_device("size=1M,checksum=off", 0)->options.checksum);
  EXPECT_TRUE(parse_device("size=1M,checksum", 0)->options.checksum);
  expect_refused("size=1M,checksum=crc", {"--device checksum", "\"crc\"", "on or off"});
}

TEST(DeviceOption, train_is_on_or_off_and_needs_what_can_be_trained) {
  EXPECT_FALSE(parse_device("size=1M,algorithm=pagez", 0)->options.train);
  for (const char* const train : {"train", "train=on"}) {
    const auto device = parse_device("size=1M,algorithm=pagez," + std::string(train), 0);
    ASSERT_TRUE(device.has_value()) << device.error().message;
    EXPECT_TRUE(device->options.train);
  }
  EXPECT_FALSE(parse_device("size=1M,train=off", 0)->options.train);
  expect_refused("size=1M,algorithm=pagez,train=yes", {"--device train", "\"yes\"", "on or off"});
  expect_refused("name=a,size=1M,train", {"device \"a\"", "train on", "\"lz4\"", "pagez"});
  expect_refused("size=1M,train,algorithm=pagez,background=off", {"train on", "background on"});
}

TEST(DeviceOption, a_reserve_fits_the_limit_and_has_a_thread_that_fills_it) {
  const auto device = parse_device("reserve=8M,size=1G,mem-limit=8M", 0);
  ASSERT_TRUE(device.has_value()) << device.error().message;
  EXPECT_EQ(device->options.reserve_bytes, 8 * kMiB);
  EXPECT_EQ(parse_device("size=1G", 0)->options.reserve_bytes, 0U);
  expect_refused("name=a,size=1G,mem-limit=8M,reserve=9M",
                 {"device \"a\"", "reserve 9M", "mem_limit", "8M", "raise"});
  expect_refused("size=1G,reserve=9M,background=off", {"reserve 9M", "background on"});
  expect_refused("size=1G,reserve=2T", {"reserve 2T", "at most 1T"});
}

TEST(DeviceOption, a_block_device_of_the_kernel_has_keys_of_its_own) {
  const auto any = parse_device("size=1M,ublk", 0);
  ASSERT_TRUE(any.has_value()) << any.error().message;
  EXPECT_TRUE(any->ublk);
  EXPECT_FALSE(any->ublk_options.id.has_value());
  EXPECT_EQ(any->ublk_options.depth, ublk::kDefaultDepth);
  const auto all = parse_device("size=1M,queues=2,depth=4096,ublk=7,max-io=1M,read-only", 0);
  ASSERT_TRUE(all.has_value()) << all.error().message;
  EXPECT_EQ(all->ublk_options.id, 7U);
  EXPECT_EQ(all->ublk_options.queues, 2U);
  EXPECT_EQ(all->ublk_options.depth, 4096U);
  EXPECT_EQ(all->ublk_options.max_io_bytes, kMiB);
  EXPECT_TRUE(all->read_only);
}

TEST(DeviceOption, what_no_block_device_can_be_is_refused) {
  expect_refused("size=1M,ublk=x", {"ublk", "\"x\"", "/dev/ublkbN"});
  expect_refused("size=1M,ublk=-1", {"ublk", "\"-1\""});
  expect_refused("size=1M,ublk=1048576", {"1048576"});
  expect_refused("size=1M,ublk,queues=4097", {"queues", "4097", "4096"});
  expect_refused("size=1M,ublk,depth=0", {"depth", "\"0\"", "1 to 4096"});
  expect_refused("size=1M,ublk,depth=4097", {"depth", "4097"});
  expect_refused("size=1M,ublk,max-io=33M", {"max-io", "33M", "32M"});
  expect_refused("size=1M,ublk,max-io=0", {"max-io", "\"0\"", "4K to 32M"});
  for (const char* const without : {"queues=2", "depth=64", "max-io=64K"}) {
    expect_refused(std::string("size=1M,") + without, {"queues, depth and max-io", "ublk"});
  }
}

TEST(DeviceOption, stream_counts_and_block_sizes_out_of_range_are_refused) {
  expect_refused("size=1M,max-comp-streams=4097", {"4097", "4096"});
  expect_refused("size=1M,max-comp-streams=-1", {"-1"});
  expect_refused("size=1M,block-size=1024", {"1024", "512 or 4096"});
}

TEST(DeviceOption, an_unknown_key_is_answered_with_all_keys) {
  expect_refused("size=1M,colour=red", {"colour", std::string(kDeviceKeys)});
}

TEST(DeviceOption, a_key_given_twice_is_refused) {
  expect_refused("size=1M,size=2M", {"size", "twice"});
  expect_refused("read-only,size=1M,read-only", {"read-only", "twice"});
}

TEST(DeviceOption, what_is_no_key_and_value_is_refused) {
  expect_refused("", {"KEY=VALUE"});
  expect_refused("size=1M,", {"KEY=VALUE"});
  expect_refused("size=1M,,level=1", {"KEY=VALUE"});
  expect_refused("size", {"\"size\"", "KEY=VALUE"});
  expect_refused("size=1M,read-only=yes", {"read-only", "yes", "no value"});
}

}  // namespace
}  // namespace uzram::control
