#include "engine/executor.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/process_wide.hpp"
#include "base/random.hpp"
#include "engine/device_impl.hpp"

namespace uzram {
namespace {

using Bytes = std::vector<std::byte>;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

std::unique_ptr<Device> make(Mode mode, std::uint32_t workers = 0) {
  DeviceOptions options;
  options.disksize_bytes = 64 * kMiB;
  options.mode = mode;
  options.workers = workers;
  auto made = Device::create(options);
  EXPECT_TRUE(made) << made.error().message;
  return std::move(*made);
}

Bytes some_bytes(std::size_t size, std::uint64_t seed) {
  Bytes bytes(size);
  Random random(seed);
  random.fill(bytes);
  for (std::size_t i = 0; i + 64 <= size; i += 128) {
    std::memset(bytes.data() + i, 0x5a, 64);
  }
  return bytes;
}

// Everything that can be shared is, whatever else the machine does.
class Eager {
 public:
  Eager() {
    workers_->set_eager(true);
    EXPECT_TRUE(workers_->start(2));
  }
  ~Eager() { workers_->set_eager(false); }

 private:
  std::shared_ptr<engine::Workers> workers_ = process_wide<engine::Workers>();
};

// `pages` pages from `offset` on as so many requests.
struct Batch {
  Batch(Op op, std::uint64_t offset, std::span<std::byte> buffer, std::uint64_t piece = 4096) {
    for (std::uint64_t done = 0; done < buffer.size(); done += piece) {
      requests.push_back(
          {.op = op, .offset = offset + done, .length = piece, .buffer = buffer.data() + done});
    }
    for (Request& request : requests) {
      pointers.push_back(&request);
    }
  }
  std::vector<Request> requests;
  std::vector<Request*> pointers;
};

void run(Queue& queue, Batch& batch) {
  queue.submit(batch.pointers);
  for (std::size_t i = 0; i < batch.requests.size(); ++i) {
    const Request* const done = queue.wait();
    ASSERT_NE(done, nullptr);
    ASSERT_EQ(done->status, Errc::ok);
  }
  EXPECT_EQ(queue.wait(), nullptr);
  EXPECT_EQ(queue.outstanding(), 0U);
}

class ExecutorModes : public ::testing::TestWithParam<Mode> {};

TEST_P(ExecutorModes, batches_of_small_and_of_large_requests_arrive_whole) {
  const Eager eager;
  const auto device = make(GetParam());
  Queue queue(*device);
  for (const std::uint64_t piece : {std::uint64_t{4096}, std::uint64_t{512}, kMiB / 2}) {
    Bytes data = some_bytes(4 * kMiB, piece);
    // Not on a page's boundary.
    Batch writes(Op::write, 1536, data, piece);
    run(queue, writes);
    Bytes found(data.size());
    Batch reads(Op::read, 1536, found, piece);
    run(queue, reads);
    EXPECT_EQ(found, data);
  }
  EXPECT_EQ(device->options().mode, GetParam());
}

TEST_P(ExecutorModes, a_batch_of_many_kinds_of_requests) {
  const Eager eager;
  const auto device = make(GetParam());
  Queue queue(*device);
  Bytes data = some_bytes(2 * kMiB, 1);
  ASSERT_EQ(device->write(0, data), Errc::ok);
  ASSERT_EQ(device->write(8 * kMiB, data), Errc::ok);
  std::vector<Request> requests(4);
  requests[0] = {.op = Op::discard, .offset = 0, .length = kMiB};
  requests[1] = {.op = Op::write, .offset = 4 * kMiB, .length = 2 * kMiB, .buffer = data.data()};
  requests[2] = {.op = Op::flush};
  requests[3] = {.op = Op::allocate_zeroes, .offset = 8 * kMiB, .length = 32 * kMiB};
  std::vector<Request*> batch;
  for (Request& request : requests) {
    batch.push_back(&request);
  }
  queue.submit(batch);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(queue.wait()->status, Errc::ok);
  }
  EXPECT_EQ(device->extent_at(0, kMiB).state, ExtentState::hole);
  EXPECT_EQ(device->extent_at(8 * kMiB, 40 * kMiB).length, 32 * kMiB);
  EXPECT_EQ(device->extent_at(8 * kMiB, 40 * kMiB).state, ExtentState::zero);
  Bytes found(2 * kMiB);
  ASSERT_EQ(device->read(4 * kMiB, found), Errc::ok);
  EXPECT_EQ(found, data);
}

TEST_P(ExecutorModes, a_range_that_is_refused_is_refused_and_counted_once) {
  const Eager eager;
  const auto device = make(GetParam());
  Bytes data(2 * kMiB);
  EXPECT_EQ(device->write(63 * kMiB, data), Errc::out_of_range);
  EXPECT_EQ(device->stats().invalid_io, 1U);
  EXPECT_EQ(device->read(100, std::span(data).first(kMiB)), Errc::invalid_argument);
  EXPECT_EQ(device->discard(~std::uint64_t{511}, 64 * kMiB), Errc::out_of_range);
  EXPECT_EQ(device->stats().invalid_io, 3U);
  EXPECT_EQ(device->stats().orig_data_size, 0U);
}

TEST_P(ExecutorModes, a_write_that_finds_no_room_fails_and_leaves_old_or_new_pages) {
  const Eager eager;
  const auto device = make(GetParam());
  Bytes data(4 * kMiB);
  Random random(5);
  random.fill(data);
  device->set_mem_limit(kMiB);
  EXPECT_EQ(device->write(0, data), Errc::no_space);
  Bytes found(data.size());
  ASSERT_EQ(device->read(0, found), Errc::ok);
  const Bytes zeroes(4096);
  for (std::size_t at = 0; at < data.size(); at += 4096) {
    ASSERT_TRUE(std::memcmp(found.data() + at, data.data() + at, 4096) == 0 ||
                std::memcmp(found.data() + at, zeroes.data(), 4096) == 0);
  }
}

TEST_P(ExecutorModes, a_queue_waits_for_its_requests_when_it_goes) {
  const auto device = make(GetParam());
  Bytes data = some_bytes(4 * kMiB, 3);
  for (int round = 0; round < 20; ++round) {
    Batch writes(Op::write, 0, data);
    Queue queue(*device);
    queue.submit(writes.pointers);
    (void)queue.reap();
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, ExecutorModes,
                         ::testing::Values(Mode::nowait, Mode::async, Mode::automatic),
                         [](const auto& param_info) {
                           return std::string(mode_name(param_info.param));
                         });

// Discards and zeroings of all but a sector at each end.
void check_long_range(Mode mode, Op op) {
  const auto device = make(mode);
  const std::uint64_t size = device->disksize_bytes();
  const Bytes data = some_bytes(kMiB, 9);
  for (std::uint64_t at = 0; at < size; at += kMiB) {
    ASSERT_EQ(device->write(at, data), Errc::ok);
  }
  Queue queue(*device);
  Request range{.op = op, .status = Errc::system, .offset = 512, .length = size - 1024};
  Request* const first[] = {&range};
  queue.submit(first);
  EXPECT_EQ(queue.outstanding(), 1U);
  EXPECT_FALSE(queue.arm_doorbell());
  EXPECT_EQ(queue.reap(), nullptr) << "one piece is not all of it";
  // What comes in between is served at once.
  Bytes found(4096);
  Request read{.op = Op::read, .offset = size - kMiB, .length = 4096, .buffer = found.data()};
  Request* const second[] = {&read};
  queue.submit(second);
  EXPECT_EQ(queue.reap(), &read);
  EXPECT_EQ(std::memcmp(found.data(), data.data(), found.size()), 0);
  std::size_t looks = 1;
  const Request* done = nullptr;
  while ((done = queue.reap()) == nullptr) {
    ++looks;
  }
  EXPECT_EQ(done, &range);
  EXPECT_EQ(range.status, Errc::ok);
  // The last piece comes with the request.
  EXPECT_GE(looks + 1, size / (4 * kMiB));
  EXPECT_EQ(queue.outstanding(), 0U);
  Bytes all(size);
  ASSERT_EQ(device->read(0, all), Errc::ok);
  const std::size_t edge = op == Op::discard ? 4096 : 512;
  EXPECT_EQ(std::memcmp(all.data(), data.data(), edge), 0);
  EXPECT_EQ(std::memcmp(all.data() + size - edge, data.data() + kMiB - edge, edge), 0);
  EXPECT_TRUE(std::all_of(all.begin() + static_cast<std::ptrdiff_t>(edge),
                          all.end() - static_cast<std::ptrdiff_t>(edge),
                          [](std::byte byte) { return byte == std::byte{0}; }));
  const ExtentState left = op == Op::allocate_zeroes ? ExtentState::zero : ExtentState::hole;
  EXPECT_EQ(device->extent_at(4096, size).state, left);
  EXPECT_EQ(device->stats().notify_free, op == Op::allocate_zeroes ? 0 : (size - 2 * 4096) / 4096);
}

TEST(Executor, long_ranges_go_on_a_piece_at_a_time) {
  const Eager eager;
  for (const Mode mode : {Mode::nowait, Mode::automatic}) {
    for (const Op op : {Op::discard, Op::write_zeroes, Op::allocate_zeroes}) {
      SCOPED_TRACE(std::string(mode_name(mode)) + " " + std::to_string(static_cast<int>(op)));
      check_long_range(mode, op);
    }
  }
}

TEST(Executor, what_holds_nothing_is_passed_over_at_once) {
  DeviceOptions options;
  options.disksize_bytes = kMaxDiskSize;
  const auto made = Device::create(options);
  ASSERT_TRUE(made) << made.error().message;
  Queue queue(**made);
  const Bytes page = some_bytes(4096, 4);
  ASSERT_EQ((*made)->write(kMaxDiskSize / 2, page), Errc::ok);
  Request range{.op = Op::discard, .offset = 0, .length = kMaxDiskSize};
  Request* const batch[] = {&range};
  queue.submit(batch);
  // What is there, and the rest.
  EXPECT_EQ(queue.reap(), nullptr);
  EXPECT_EQ(queue.reap(), &range);
  EXPECT_EQ((*made)->stats().orig_data_size, 0U);
}

TEST(Executor, a_long_range_that_is_refused_is_refused_at_once) {
  const auto device = make(Mode::nowait);
  Queue queue(*device);
  Request beyond{.op = Op::discard, .offset = kMiB, .length = device->disksize_bytes()};
  Request crooked{.op = Op::write_zeroes, .offset = 1, .length = 8 * kMiB};
  Request* const batch[] = {&beyond, &crooked};
  queue.submit(batch);
  EXPECT_EQ(queue.reap(), &beyond);
  EXPECT_EQ(queue.reap(), &crooked);
  EXPECT_EQ(beyond.status, Errc::out_of_range);
  EXPECT_EQ(crooked.status, Errc::invalid_argument);
  EXPECT_EQ(device->stats().invalid_io, 2U);
}

TEST(Executor, a_queue_may_go_with_a_long_range_half_done) {
  const auto device = make(Mode::nowait);
  const Bytes data = some_bytes(32 * kMiB, 6);
  ASSERT_EQ(device->write(0, data), Errc::ok);
  Request range{.op = Op::discard, .offset = 0, .length = device->disksize_bytes()};
  {
    Queue queue(*device);
    Request* const batch[] = {&range};
    queue.submit(batch);
    EXPECT_EQ(queue.reap(), nullptr);
  }
  EXPECT_LT(device->stats().orig_data_size, data.size());
  EXPECT_EQ(device->discard(0, device->disksize_bytes()), Errc::ok);
  EXPECT_EQ(device->stats().orig_data_size, 0U);
}

TEST(Executor, in_async_the_submitter_goes_on_and_workers_do_the_work) {
  const auto device = make(Mode::async, 1);
  // A worker cannot pass a page whose entry is locked.
  Bytes data = some_bytes(8192, 1);
  ASSERT_EQ(device->write(0, data), Errc::ok);
  engine::PageStore& store = device->impl().store;
  engine::AtomicEntry& entry = store.table().entry(0);
  (void)engine::lock_entry(entry, store.table().sleepers());
  Queue queue(*device);
  Batch writes(Op::write, 0, data);
  queue.submit(writes.pointers);
  EXPECT_EQ(queue.outstanding(), 2U);
  EXPECT_TRUE(queue.arm_doorbell());
  engine::unlock_entry(entry);
  EXPECT_NE(queue.wait(), nullptr);
  EXPECT_NE(queue.wait(), nullptr);
  EXPECT_EQ(queue.wait(), nullptr);
}

TEST(Executor, the_doorbell_rings_once_when_armed) {
  const auto device = make(Mode::async);
  const int bell = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  ASSERT_GE(bell, 0);
  Bytes data = some_bytes(64 * 4096, 1);
  {
    Queue queue(*device);
    queue.set_doorbell(bell);
    for (int round = 0; round < 200; ++round) {
      Batch writes(Op::write, 0, data);
      queue.submit(writes.pointers);
      std::size_t reaped = 0;
      while (reaped < writes.requests.size()) {
        if (queue.reap() != nullptr) {
          ++reaped;
        } else if (queue.arm_doorbell()) {
          pollfd wait = {bell, POLLIN, 0};
          ASSERT_EQ(::poll(&wait, 1, 20'000), 1);
          eventfd_t rings = 0;
          ASSERT_EQ(::eventfd_read(bell, &rings), 0);
          EXPECT_EQ(rings, 1U);
        }
      }
      EXPECT_EQ(queue.outstanding(), 0U);
    }
    // Nothing was armed at the last, so nothing rings.
    eventfd_t rings = 0;
    EXPECT_NE(::eventfd_read(bell, &rings), 0);
  }
  ::close(bell);
}

TEST(Executor, modes_change_while_requests_are_under_way) {
  const Eager eager;
  const auto device = make(Mode::automatic);
  std::atomic<bool> stop{false};
  std::thread changer([&] {
    const Mode modes[] = {Mode::async, Mode::nowait, Mode::async, Mode::automatic};
    for (std::uint32_t turn = 0; !stop.load(); ++turn) {
      ASSERT_TRUE(device->set_mode(modes[turn % 4], turn % 3));
    }
  });
  std::vector<std::thread> submitters;
  for (std::uint64_t t = 0; t < 3; ++t) {
    submitters.emplace_back([&, t] {
      Queue queue(*device);
      for (std::uint64_t round = 0; round < 300; ++round) {
        Bytes data = some_bytes(256 << 10, round);
        Batch writes(Op::write, t * kMiB, data, round % 5 == 0 ? data.size() : 4096);
        run(queue, writes);
        Bytes found(data.size());
        Batch reads(Op::read, t * kMiB, found, round % 7 == 0 ? data.size() : 8192);
        run(queue, reads);
        ASSERT_EQ(found, data);
      }
    });
  }
  for (auto& submitter : submitters) {
    submitter.join();
  }
  stop.store(true);
  changer.join();
}

TEST(Executor, too_many_workers_are_refused) {
  DeviceOptions options;
  options.disksize_bytes = kMiB;
  options.workers = kMaxWorkers + 1;
  const auto made = Device::create(options);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message, "device uzram0: workers 257: expected 0 (one per CPU) to 256");
  const auto device = make(Mode::nowait);
  EXPECT_FALSE(device->set_mode(Mode::async, 1000));
  EXPECT_EQ(device->options().mode, Mode::nowait);
}

TEST(Executor, modes_have_names_and_are_found_by_them) {
  for (const Mode mode : {Mode::nowait, Mode::async, Mode::automatic}) {
    EXPECT_EQ(mode_from_name(mode_name(mode)), mode);
  }
  EXPECT_EQ(mode_name(Mode::automatic), "auto");
  EXPECT_EQ(mode_from_name("automatic"), std::nullopt);
}

}  // namespace
}  // namespace uzram
