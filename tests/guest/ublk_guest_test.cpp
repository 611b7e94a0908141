// The ublk server in a kernel that has ublk, with the features of new drivers and of old ones.
//
// Role: run as root by the scenario guest_tests; elsewhere each case skips itself.
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/random.hpp"
#include "frontend/ublk/abi.hpp"
#include "frontend/ublk/control.hpp"
#include "frontend/ublk/listing.hpp"
#include "frontend/ublk/server.hpp"
#include "os/descriptor.hpp"

namespace uzram::ublk {
namespace {

constexpr std::uint64_t kSize = 64U << 20;

// Memory for direct I/O.
class Aligned {
 public:
  explicit Aligned(std::size_t size)
      : data_(static_cast<std::byte*>(std::aligned_alloc(4096, size))), size_(size) {}
  ~Aligned() { std::free(data_); }
  Aligned(const Aligned&) = delete;
  Aligned& operator=(const Aligned&) = delete;
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  std::byte* data_;
  std::size_t size_;
};

std::unique_ptr<Device> make_device(Mode mode) {
  DeviceOptions options;
  options.disksize_bytes = kSize;
  options.mode = mode;
  auto device = Device::create(options);
  EXPECT_TRUE(device.has_value());
  return device ? std::move(*device) : nullptr;
}

std::unique_ptr<Server> start(const ServerOptions& options, Device& device) {
  auto server = Server::start(options, device);
  EXPECT_TRUE(server.has_value()) << server.error().message;
  return server ? std::move(*server) : nullptr;
}

class UblkKernel : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kControlPath)) {
      GTEST_SKIP() << "this kernel has no ublk, or its module is not loaded";
    }
  }
  void TearDown() override { EXPECT_TRUE(device_ids().empty()) << "a device is left"; }
};

// What is written at random places, in pieces of many sizes, is what is read.
void write_and_compare(const std::string& node) {
  const os::Descriptor fd(::open(node.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
  ASSERT_TRUE(fd.is_open()) << std::strerror(errno);
  std::vector<std::byte> expected(kSize);
  const Aligned buffer(2U << 20);
  Random random(42);
  for (int i = 0; i < 60; ++i) {
    const std::size_t bytes = 4096 * (1 + random.below(i % 3 == 0 ? 512 : 16));
    const std::uint64_t offset = 4096 * random.below((kSize - bytes) / 4096);
    // Half of each page compresses.
    for (std::size_t at = 0; at < bytes; at += 4096) {
      random.fill(std::span(buffer.data() + at, 2048));
      std::memset(buffer.data() + at + 2048, i, 2048);
    }
    ASSERT_EQ(::pwrite(fd.get(), buffer.data(), bytes, static_cast<off_t>(offset)),
              static_cast<ssize_t>(bytes))
        << std::strerror(errno);
    std::memcpy(expected.data() + offset, buffer.data(), bytes);
  }
  for (std::uint64_t offset = 0; offset < kSize; offset += buffer.size()) {
    ASSERT_EQ(::pread(fd.get(), buffer.data(), buffer.size(), static_cast<off_t>(offset)),
              static_cast<ssize_t>(buffer.size()))
        << std::strerror(errno);
    ASSERT_EQ(std::memcmp(buffer.data(), expected.data() + offset, buffer.size()), 0) << offset;
  }
}

// How a driver of some age is used, and by whom.
struct Variant {
  const char* name;
  std::uint64_t allowed_features;
  bool legacy_commands;
  Mode mode;
};

class UblkVariants : public UblkKernel, public testing::WithParamInterface<Variant> {
 protected:
  [[nodiscard]] ServerOptions options() const {
    ServerOptions options;
    options.allowed_features = GetParam().allowed_features;
    options.legacy_commands = GetParam().legacy_commands;
    return options;
  }
};

TEST_P(UblkVariants, what_is_written_is_read) {
  const auto device = make_device(GetParam().mode);
  const auto server = start(options(), *device);
  ASSERT_NE(server, nullptr);
  write_and_compare(server->node());
  EXPECT_TRUE(server->stop().has_value());
}

TEST_P(UblkVariants, many_threads_with_few_tags_and_buffers) {
  const auto device = make_device(GetParam().mode);
  ServerOptions few = options();
  few.queues = 1;
  few.depth = 8;
  few.max_io_bytes = 64U << 10;
  const auto server = start(few, *device);
  ASSERT_NE(server, nullptr);
  constexpr std::size_t kThreads = 6;
  std::vector<std::thread> threads;
  for (std::size_t number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      const os::Descriptor fd(::open(server->node().c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
      const Aligned buffer(256U << 10);
      const auto part = static_cast<off_t>(number * (kSize / kThreads / 4096) * 4096);
      for (int round = 0; round < 8; ++round) {
        std::memset(buffer.data(), static_cast<int>(number * 16) + round, buffer.size());
        const auto bytes = static_cast<ssize_t>(buffer.size());
        EXPECT_EQ(::pwrite(fd.get(), buffer.data(), buffer.size(), part), bytes);
        std::memset(buffer.data(), 0, buffer.size());
        EXPECT_EQ(::pread(fd.get(), buffer.data(), buffer.size(), part), bytes);
        EXPECT_EQ(std::to_integer<int>(buffer.data()[buffer.size() - 1]),
                  static_cast<int>(number * 16) + round);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_TRUE(server->stop().has_value());
}

TEST_P(UblkVariants, discards_free_and_zeroes_are_as_asked) {
  const auto device = make_device(GetParam().mode);
  const auto server = start(options(), *device);
  ASSERT_NE(server, nullptr);
  const os::Descriptor fd(::open(server->node().c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
  const Aligned buffer(1U << 20);
  Random random(3);
  random.fill(std::span(buffer.data(), buffer.size()));
  ASSERT_EQ(::pwrite(fd.get(), buffer.data(), buffer.size(), 0),
            static_cast<ssize_t>(buffer.size()));
  std::array<std::uint64_t, 2> range = {0, 256U << 10};
  EXPECT_EQ(::ioctl(fd.get(), BLKDISCARD, range.data()), 0) << std::strerror(errno);
  EXPECT_EQ(device->stats().orig_data_size, buffer.size() - (256U << 10));
  // Hole punching frees, zeroing keeps the pages allocated.
  EXPECT_EQ(
      ::fallocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 256U << 10, 256U << 10), 0)
      << std::strerror(errno);
  EXPECT_EQ(device->stats().orig_data_size, buffer.size() - (512U << 10));
  EXPECT_EQ(
      ::fallocate(fd.get(), FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 512U << 10, 256U << 10), 0)
      << std::strerror(errno);
  EXPECT_EQ(device->stats().orig_data_size, buffer.size() - (512U << 10));
  const Aligned back(1U << 20);
  ASSERT_EQ(::pread(fd.get(), back.data(), back.size(), 0), static_cast<ssize_t>(back.size()));
  for (std::size_t i = 0; i < 768U << 10; ++i) {
    ASSERT_EQ(back.data()[i], std::byte{0}) << i;
  }
  EXPECT_EQ(std::memcmp(back.data() + (768U << 10), buffer.data() + (768U << 10), 256U << 10), 0);
}

constexpr std::uint64_t kAll = ~std::uint64_t{0};

INSTANTIATE_TEST_SUITE_P(
    Drivers, UblkVariants,
    testing::Values(Variant{"user_copy_nowait", kAll, false, Mode::nowait},
                    Variant{"user_copy_async", kAll, false, Mode::async},
                    Variant{"user_copy_auto", kAll, false, Mode::automatic},
                    Variant{"get_data_nowait", ~kUserCopy, false, Mode::nowait},
                    Variant{"get_data_async", ~kUserCopy, false, Mode::async},
                    Variant{"legacy_commands_auto", kAll, true, Mode::automatic},
                    Variant{"legacy_commands_async", kAll, true, Mode::async}),
    [](const auto& variant) { return std::string(variant.param.name); });

TEST_F(UblkKernel, a_number_that_is_taken_is_refused) {
  const auto device = make_device(Mode::nowait);
  ServerOptions options;
  options.id = 3;
  const auto server = start(options, *device);
  ASSERT_NE(server, nullptr);
  EXPECT_EQ(server->node(), "/dev/ublkb3");
  const auto second = Server::start(options, *device);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, Errc::exists);
  // The first one is none the worse for it.
  write_and_compare(server->node());
}

TEST_F(UblkKernel, one_that_is_open_goes_when_it_is_closed) {
  const auto device = make_device(Mode::nowait);
  auto server = start({}, *device);
  ASSERT_NE(server, nullptr);
  {
    const os::Descriptor fd(::open(server->node().c_str(), O_RDWR | O_CLOEXEC));
    const auto stopped = server->stop();
    ASSERT_FALSE(stopped.has_value());
    EXPECT_EQ(stopped.error().code, Errc::busy);
    char byte = 0;
    // The end of a device without size, or an error.
    EXPECT_LE(::pread(fd.get(), &byte, 1, 0), 0);
  }
  for (int i = 0; i < 500 && !device_ids().empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

TEST_F(UblkKernel, one_that_somebody_else_removes_is_let_go) {
  const auto device = make_device(Mode::automatic);
  const auto server = start({}, *device);
  ASSERT_NE(server, nullptr);
  auto control = Control::open();
  ASSERT_TRUE(control.has_value()) << control.error().message;
  const auto removed = stop_and_remove(**control, server->id());
  EXPECT_TRUE(removed.has_value()) << removed.error().message;
  EXPECT_TRUE(device_ids().empty());
  EXPECT_TRUE(server->stop().has_value());
}

TEST_F(UblkKernel, one_of_the_same_number_that_is_not_ours_is_left_alone) {
  const auto device = make_device(Mode::nowait);
  ServerOptions options;
  options.id = 5;
  const auto first = start(options, *device);
  ASSERT_NE(first, nullptr);
  auto control = Control::open();
  ASSERT_TRUE(control.has_value());
  ASSERT_TRUE(stop_and_remove(**control, 5).has_value());
  EXPECT_FALSE((*control)->info(5).has_value());
  EXPECT_TRUE(first->stop().has_value());
  const auto second = start(options, *device);
  ASSERT_NE(second, nullptr);
  EXPECT_TRUE(first->stop().has_value());
  write_and_compare(second->node());
}

TEST_F(UblkKernel, in_use_is_what_somebody_has_claimed) {
  const auto device = make_device(Mode::nowait);
  const auto server = start({}, *device);
  ASSERT_NE(server, nullptr);
  EXPECT_FALSE(server->in_use());
  const os::Descriptor claim(::open(server->node().c_str(), O_RDWR | O_EXCL | O_CLOEXEC));
  ASSERT_TRUE(claim.is_open());
  EXPECT_TRUE(server->in_use());
}

TEST_F(UblkKernel, a_read_only_one_refuses_writes) {
  const auto device = make_device(Mode::nowait);
  ServerOptions options;
  options.read_only = true;
  const auto server = start(options, *device);
  ASSERT_NE(server, nullptr);
  const os::Descriptor fd(::open(server->node().c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_TRUE(!fd.is_open() || ::pwrite(fd.get(), "x", 1, 0) < 0);
  const os::Descriptor reader(::open(server->node().c_str(), O_RDONLY | O_CLOEXEC));
  char byte = 1;
  EXPECT_EQ(::pread(reader.get(), &byte, 1, 0), 1);
  EXPECT_EQ(byte, 0);
}

}  // namespace
}  // namespace uzram::ublk
