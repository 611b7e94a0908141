#include "control/device_directory.hpp"

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace uzram::control {
namespace {

DeviceEntry entry_of(Device* device, const std::string& name) {
  DeviceEntry entry;
  entry.device = device;
  entry.name = name;
  return entry;
}

TEST(DeviceDirectory, lists_in_the_order_of_adding_and_finds_by_name) {
  DeviceOptions options;
  options.disksize_bytes = 1U << 20;
  const auto device = Device::create(options);
  ASSERT_TRUE(device.has_value()) << device.error().message;
  DeviceDirectory directory;
  ASSERT_TRUE(directory.add(entry_of(device->get(), "z")).has_value());
  ASSERT_TRUE(directory.add(entry_of(device->get(), "a")).has_value());
  const auto list = directory.list();
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0].name, "z");
  EXPECT_EQ(list[1].name, "a");
  ASSERT_TRUE(directory.find("a").has_value());
  EXPECT_EQ(directory.find("a")->device, device->get());
  EXPECT_FALSE(directory.find("b").has_value());
}

TEST(DeviceDirectory, refuses_a_second_device_of_a_name) {
  DeviceOptions options;
  options.disksize_bytes = 1U << 20;
  const auto device = Device::create(options);
  ASSERT_TRUE(device.has_value()) << device.error().message;
  DeviceDirectory directory;
  ASSERT_TRUE(directory.add(entry_of(device->get(), "disk")).has_value());
  const auto second = directory.add(entry_of(device->get(), "disk"));
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, Errc::exists);
  EXPECT_NE(second.error().message.find("\"disk\""), std::string::npos);
  EXPECT_EQ(directory.list().size(), 1U);
}

}  // namespace
}  // namespace uzram::control
