// What of the server needs no driver; the rest runs in a guest's kernel (tests/guest).
#include "frontend/ublk/server.hpp"

#include <filesystem>

#include <gtest/gtest.h>

#include "frontend/ublk/abi.hpp"

namespace uzram::ublk {
namespace {

std::unique_ptr<Device> small_device() {
  DeviceOptions options;
  options.disksize_bytes = 1U << 20;
  auto device = Device::create(options);
  EXPECT_TRUE(device.has_value());
  return std::move(*device);
}

void expect_refusal(const ServerOptions& options, const std::string& named) {
  const auto device = small_device();
  const auto started = Server::start(options, *device);
  ASSERT_FALSE(started.has_value());
  EXPECT_EQ(started.error().code, Errc::invalid_argument);
  EXPECT_NE(started.error().message.find(named), std::string::npos) << started.error().message;
}

TEST(UblkServer, options_that_cannot_be_are_named) {
  ServerOptions options;
  options.depth = 0;
  expect_refusal(options, "depth 0");
  options.depth = 4097;
  expect_refusal(options, "depth 4097");
  options = ServerOptions();
  options.queues = 4097;
  expect_refusal(options, "queues 4097");
  options = ServerOptions();
  options.max_io_bytes = 5000;
  expect_refusal(options, "max-io 5000");
  options.max_io_bytes = 64U << 20;
  expect_refusal(options, "max-io 67108864");
  options = ServerOptions();
  options.logical_block_bytes = 1024;
  expect_refusal(options, "logical block 1024");
}

TEST(UblkServer, a_kernel_without_ublk_is_told_with_the_alternatives) {
  if (std::filesystem::exists(kControlPath)) {
    GTEST_SKIP() << "this kernel has ublk";
  }
  const auto device = small_device();
  const auto started = Server::start({}, *device);
  ASSERT_FALSE(started.has_value());
  EXPECT_EQ(started.error().code, Errc::unsupported);
  for (const char* const word : {"/dev/ublk-control", "modprobe ublk_drv", "NBD", "nbdfuse"}) {
    EXPECT_NE(started.error().message.find(word), std::string::npos) << started.error().message;
  }
}

}  // namespace
}  // namespace uzram::ublk
