#include "engine/housekeeper.hpp"

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "engine/device_impl.hpp"
#include "support/eventually.hpp"

namespace uzram::engine {
namespace {

using namespace std::chrono_literals;
using test::eventually;

class CountingClient final : public Housekeeper::Client {
 public:
  explicit CountingClient(Housekeeper& keeper) : keeper_(keeper) { keeper_.add(*this); }
  ~CountingClient() { keeper_.remove(*this); }
  CountingClient(const CountingClient&) = delete;
  CountingClient& operator=(const CountingClient&) = delete;

  [[nodiscard]] int calls() const { return calls_.load(); }
  std::atomic<std::chrono::nanoseconds> pause{kNever};

 private:
  std::chrono::nanoseconds tidy() noexcept override {
    calls_.fetch_add(1);
    return pause.load();
  }

  Housekeeper& keeper_;
  std::atomic<int> calls_{0};
};

TEST(Housekeeper, looks_after_a_client_that_pokes_and_no_other) {
  Housekeeper keeper;
  CountingClient one(keeper);
  CountingClient other(keeper);
  for (int times = 1; times <= 50; ++times) {
    one.poke();
    ASSERT_TRUE(eventually([&] { return one.calls() >= times; }));
  }
  EXPECT_EQ(other.calls(), 0);
}

TEST(Housekeeper, comes_back_when_asked_to) {
  Housekeeper keeper;
  CountingClient client(keeper);
  client.pause = 1ms;
  client.poke();
  EXPECT_TRUE(eventually([&] { return client.calls() >= 5; }));
}

TEST(Housekeeper, a_removed_client_is_left_alone) {
  Housekeeper keeper;
  for (int round = 0; round < 50; ++round) {
    CountingClient client(keeper);
    client.pause = 1us;
    client.poke();
  }
}

TEST(Housekeeper, no_poke_of_many_threads_is_lost) {
  Housekeeper keeper;
  CountingClient client(keeper);
  for (int round = 0; round < 200; ++round) {
    const int before = client.calls();
    std::vector<std::thread> pokers;
    for (int i = 0; i < 3; ++i) {
      pokers.emplace_back([&] { client.poke(); });
    }
    for (auto& poker : pokers) {
      poker.join();
    }
    ASSERT_TRUE(eventually([&] { return client.calls() > before; }));
  }
}

std::unique_ptr<Device> make_device(std::uint64_t mem_limit_bytes = 0) {
  DeviceOptions options;
  options.disksize_bytes = std::uint64_t{128} << 20;
  options.mem_limit_bytes = mem_limit_bytes;
  auto device = Device::create(options);
  EXPECT_TRUE(device) << device.error().message;
  return std::move(*device);
}

// A page that compresses to some size between a quarter and the whole.
std::vector<std::byte> page_of_some_size(Random& random) {
  std::vector<std::byte> page(4096);
  random.fill(std::span(page).first(1024 + random.below(3072)));
  return page;
}

TEST(Upkeep, takes_room_ahead_while_a_pool_grows) {
  const auto device = make_device();
  Random random(1);
  std::uint64_t page = 0;
  const auto write_next = [&] {
    EXPECT_EQ(device->write(page++ % 32768 * 4096, page_of_some_size(random)), Errc::ok);
  };
  while (page < 8192) {
    write_next();
  }
  Pool& pool = device->impl().store.pool();
  // More in reserve than a thread that grows a pool for itself leaves there. The keeper need not
  // look before half of it is used, so the writes go on.
  EXPECT_TRUE(eventually([&] {
    write_next();
    return pool.used_bytes() / kSpanBytes - pool.occupied_spans() >= 8;
  }));
}

TEST(Upkeep, respects_the_limit) {
  constexpr std::uint64_t kLimit = std::uint64_t{2} << 20;
  const auto device = make_device(kLimit);
  Random random(2);
  Errc status = Errc::ok;
  for (std::uint64_t page = 0; status == Errc::ok && page < 8192; ++page) {
    status = device->write(page * 4096, page_of_some_size(random));
    EXPECT_LE(device->stats().mem_used_total, kLimit);
  }
  EXPECT_EQ(status, Errc::no_space);
}

TEST(Upkeep, compacts_a_pool_of_many_holes) {
  const auto device = make_device();
  Random random(3);
  constexpr std::uint64_t kPages = 16384;
  for (std::uint64_t page = 0; page < kPages; ++page) {
    ASSERT_EQ(device->write(page * 4096, page_of_some_size(random)), Errc::ok);
  }
  // A third of the pages goes, one here, one there.
  for (std::uint64_t page = 0; page < kPages; page += 3) {
    ASSERT_EQ(device->discard(page * 4096, 4096), Errc::ok);
  }
  EXPECT_TRUE(eventually([&] {
    const DeviceStats stats = device->stats();
    return stats.mem_used_total <= stats.compr_data_size + stats.compr_data_size / 8;
  })) << device->stats().mem_used_total
      << " for " << device->stats().compr_data_size;
  EXPECT_GT(device->stats().pages_compacted, 0U);
}

}  // namespace
}  // namespace uzram::engine
