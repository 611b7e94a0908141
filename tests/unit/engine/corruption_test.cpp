// What a device does with an object that is not what it was: Errc::corrupt for that page alone.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "engine/device_impl.hpp"
#include "support/captured_log.hpp"
#include "support/eventually.hpp"

namespace uzram {
namespace {

using namespace std::chrono_literals;
using engine::Entry;
using engine::Kind;
using test::eventually;
using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

Bytes random_page(std::size_t page_size, std::uint64_t seed) {
  Bytes page(page_size);
  Random(seed).fill(page);
  return page;
}

// Compresses about 2:1.
Bytes compressible_page(std::size_t page_size, std::uint64_t seed) {
  Bytes page = random_page(page_size, seed);
  for (std::size_t at = 0; at < page_size; ++at) {
    if (at / 64 % 2 == 0) {
      page[at] = std::byte{'x'};
    }
  }
  return page;
}

Entry entry_of(Device& device, std::uint64_t page) {
  return Entry(device.impl().store.table().entry(page).load());
}

// What the device holds for the page, sums included.
std::span<std::byte> object_of(Device& device, std::uint64_t page) {
  const Entry entry = entry_of(device, page);
  EXPECT_TRUE(entry.owns_room());
  return {device.impl().store.pool().address(entry.place()), entry.size()};
}

Errc read_page(Device& device, std::uint64_t page, Bytes& into) {
  into.assign(device.page_size_bytes(), std::byte{0xee});
  return device.read(page * into.size(), into);
}

void expect_page(Device& device, std::uint64_t page, const Bytes& content) {
  Bytes read;
  EXPECT_EQ(read_page(device, page, read), Errc::ok) << page;
  EXPECT_TRUE(read == content) << page;
}

TEST(Corruption, an_object_that_does_not_decode_is_counted_and_told_of_once) {
  const test::CapturedLog captured;
  DeviceOptions options;
  options.disksize_bytes = kMiB;
  options.background = false;
  auto device = Device::create(options);
  ASSERT_TRUE(device) << device.error().message;
  const Bytes content = compressible_page(4096, 1);
  for (const std::uint64_t page : {6, 7, 8}) {
    ASSERT_EQ((*device)->write(page * 4096, content), Errc::ok);
  }
  // Literals without end.
  const auto object = object_of(**device, 7);
  std::fill(object.begin(), object.end(), std::byte{0xff});
  Bytes read;
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(read_page(**device, 7, read), Errc::corrupt);
  }
  EXPECT_EQ((*device)->stats().corrupt_pages, 5U);
  EXPECT_EQ((*device)->stats().failed_reads, 5U);
  expect_page(**device, 6, content);
  expect_page(**device, 8, content);
  ASSERT_TRUE(eventually([&] { return captured.lines() == 1; }));
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(captured.lines(), 1U) << captured.text();
  EXPECT_NE(captured.text().find("byte 28672 "), std::string::npos) << captured.text();
}

}  // namespace
}  // namespace uzram
