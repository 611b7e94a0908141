// Random operations of random length from many threads against a naive device, while room is given
// back, limits change and the pool is compacted.
//
// UZRAM_MODEL_ROUNDS multiplies the number of operations, for longer runs by hand.
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "uzram/device.hpp"

#include "base/process_wide.hpp"
#include "base/random.hpp"
#include "contents.hpp"
#include "engine/device_impl.hpp"
#include "engine/workers.hpp"

namespace uzram {
namespace {

constexpr int kThreads = 8;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

std::uint64_t rounds() {
  const char* const text = std::getenv("UZRAM_MODEL_ROUNDS");  // NOLINT(concurrency-mt-unsafe)
  const long value = text == nullptr ? 1 : std::atol(text);
  return value > 0 ? static_cast<std::uint64_t>(value) : 1;
}

struct Segment {
  std::uint64_t offset = 0;
  std::vector<std::byte> expected;  // the naive device
};

// One thread's part of the disk. Parts interleave at sector granularity, so that neighbours patch
// the same pages.
class Worker {
 public:
  Worker(Device& device, std::uint64_t seed) : device_(device), random_(seed) {}

  void add_segment(std::uint64_t offset, std::uint64_t length) {
    segments_.push_back({offset, std::vector<std::byte>(length)});
  }

  void run(std::uint64_t operations) {
    Queue queue(device_);
    for (std::uint64_t i = 0; i < operations && !::testing::Test::HasFailure(); ++i) {
      Segment& segment = segments_[random_.below(segments_.size())];
      const std::uint64_t sectors = segment.expected.size() / kSectorSize;
      const std::uint64_t first = random_.below(sectors);
      const std::uint64_t count = 1 + random_.below(sectors - first);
      step(queue, segment, first * kSectorSize, count * kSectorSize);
    }
  }

  void check_all() {
    for (Segment& segment : segments_) {
      check(segment, 0, segment.expected.size());
    }
  }

 private:
  void step(Queue& queue, Segment& segment, std::uint64_t from, std::uint64_t length) {
    const std::span<std::byte> expected = std::span(segment.expected).subspan(from, length);
    const std::uint64_t offset = segment.offset + from;
    switch (random_.below(8)) {
      case 0:
      case 1:
      case 2:
        write(segment, from, length);
        return;
      case 3:
        ASSERT_EQ(device_.discard(offset, length), Errc::ok);
        drop_whole_pages(offset, expected);
        return;
      case 4: {
        const bool keep = random_.below(2) == 0;
        const Errc status = device_.write_zeroes(offset, length, keep);
        if (status == Errc::ok) {
          std::fill(expected.begin(), expected.end(), std::byte{0});
        } else {
          ASSERT_EQ(status, Errc::no_space);
          accept_old_or_new(segment, from, std::vector<std::byte>(length),
                            device_.page_size_bytes());
        }
        return;
      }
      case 5:
        batch_read(queue, segment, from, length);
        return;
      case 6:
        batch_write(queue, segment, from, length);
        return;
      default:
        check(segment, from, length);
    }
  }

  void write(Segment& segment, std::uint64_t from, std::uint64_t length) {
    const std::vector<std::byte> content = some_content(length);
    const Errc status = device_.write(segment.offset + from, content);
    if (status == Errc::ok) {
      std::copy(content.begin(), content.end(),
                segment.expected.begin() + static_cast<std::ptrdiff_t>(from));
    } else {
      ASSERT_EQ(status, Errc::no_space);
      accept_old_or_new(segment, from, content, device_.page_size_bytes());
    }
  }

  std::vector<std::byte> some_content(std::uint64_t length) {
    std::vector<std::byte> content(length);
    for (std::uint64_t done = 0; done < length;) {
      const std::uint64_t piece = std::min(length - done, (1 + random_.below(16)) * kSectorSize);
      test::fill_with_content(random_, std::span(content).subspan(done, piece));
      done += piece;
    }
    return content;
  }

  // After a write that failed every page of a request holds the old or the new content; requests that
  // end within a page leave a page of both.
  void accept_old_or_new(Segment& segment, std::uint64_t from,
                         const std::vector<std::byte>& content, std::uint64_t page) {
    std::vector<std::byte> found(content.size());
    ASSERT_EQ(device_.read(segment.offset + from, found), Errc::ok);
    for (std::uint64_t done = 0; done < content.size();) {
      const std::uint64_t offset = segment.offset + from + done;
      const std::uint64_t piece = std::min(content.size() - done, page - offset % page);
      std::byte* const expected = segment.expected.data() + from + done;
      const bool is_old = std::memcmp(expected, found.data() + done, piece) == 0;
      const bool is_new = std::memcmp(content.data() + done, found.data() + done, piece) == 0;
      ASSERT_TRUE(is_old || is_new) << "offset " << offset;
      std::memcpy(expected, found.data() + done, piece);
      done += piece;
    }
  }

  void drop_whole_pages(std::uint64_t offset, std::span<std::byte> expected) const {
    const std::uint64_t page = device_.page_size_bytes();
    const std::uint64_t first = (offset + page - 1) / page * page;
    const std::uint64_t end = (offset + expected.size()) / page * page;
    if (first < end) {
      std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(first - offset), end - first,
                  std::byte{0});
    }
  }

  // The range in pieces, as one batch. Returns whether all of it succeeded; what does not has found
  // no room.
  bool run_batch(Queue& queue, Op op, std::uint64_t offset, std::span<std::byte> buffer) {
    std::vector<Request> requests;
    for (std::uint64_t done = 0; done < buffer.size();) {
      const std::uint64_t most = random_.below(8) == 0 ? 400 : 24;
      const std::uint64_t piece =
          std::min(buffer.size() - done, (1 + random_.below(most)) * kSectorSize);
      requests.push_back(
          {.op = op, .offset = offset + done, .length = piece, .buffer = buffer.data() + done});
      done += piece;
    }
    std::vector<Request*> batch;
    batch.reserve(requests.size());
    for (Request& request : requests) {
      batch.push_back(&request);
    }
    queue.submit(batch);
    bool all = true;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const Request* const done = queue.wait();
      EXPECT_NE(done, nullptr);
      all = all && done->status == Errc::ok;
      EXPECT_TRUE(done->status == Errc::ok || (op == Op::write && done->status == Errc::no_space));
    }
    EXPECT_EQ(queue.outstanding(), 0U);
    return all;
  }

  void batch_write(Queue& queue, Segment& segment, std::uint64_t from, std::uint64_t length) {
    std::vector<std::byte> content = some_content(length);
    if (run_batch(queue, Op::write, segment.offset + from, content)) {
      std::copy(content.begin(), content.end(),
                segment.expected.begin() + static_cast<std::ptrdiff_t>(from));
    } else {
      accept_old_or_new(segment, from, content, kSectorSize);
    }
  }

  void batch_read(Queue& queue, Segment& segment, std::uint64_t from, std::uint64_t length) {
    std::vector<std::byte> found(length, std::byte{0xee});
    ASSERT_TRUE(run_batch(queue, Op::read, segment.offset + from, found));
    ASSERT_EQ(std::memcmp(found.data(), segment.expected.data() + from, length), 0);
  }

  void check(Segment& segment, std::uint64_t from, std::uint64_t length) {
    std::vector<std::byte> found(length, std::byte{0xee});
    ASSERT_EQ(device_.read(segment.offset + from, found), Errc::ok);
    ASSERT_EQ(std::memcmp(found.data(), segment.expected.data() + from, length), 0)
        << "offset " << segment.offset + from << " length " << length;
  }

  Device& device_;
  Random random_;
  std::vector<Segment> segments_;
};

constexpr std::array kModes = {Mode::async, Mode::automatic, Mode::nowait};

// Compacts, shifts the limit, pauses training where there is some, and changes the mode where asked,
// until destroyed.
class Disturber {
 public:
  Disturber(Device& device, std::uint64_t low_limit, bool change_modes)
      : thread_([this, &device, low_limit, change_modes] {
          const bool train = device.options().train;
          std::uint64_t turn = 0;
          while (!stop_.load()) {
            device.compact();
            device.set_mem_limit(++turn % 3 == 0 ? low_limit : 0);
            if (change_modes) {
              EXPECT_TRUE(device.set_mode(kModes[turn % kModes.size()],
                                          static_cast<std::uint32_t>(turn % 4)));
            }
            (void)device.stats();
            EXPECT_TRUE(device.set_training(train && turn % 256 != 0));
            (void)device.extent_at(0, device.disksize_bytes());
            std::this_thread::yield();
          }
          device.set_mem_limit(0);
        }) {}
  ~Disturber() {
    stop_.store(true);
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

void check_structure(Device& device) {
  // Nothing is to change meanwhile.
  device.impl().upkeep.reset();
  engine::PageStore& store = device.impl().store;
  store.caches().drain();
  std::uint64_t units = 0;
  std::uint64_t pages = 0;
  const std::uint64_t count = device.disksize_bytes() / device.page_size_bytes();
  for (engine::PageIndex page = 0; page < count; ++page) {
    if (store.table().holds_anything(engine::PageTable::stretch_of(page))) {
      const engine::Entry entry(store.table().entry(page).load());
      ASSERT_FALSE(entry.locked());
      units += entry.owns_room() ? engine::units_for(entry.size()) : 0;
      pages += entry.kind() != engine::Kind::empty ? 1 : 0;
    }
  }
  EXPECT_EQ(device.stats().orig_data_size, pages * device.page_size_bytes());
  store.pool().check_invariants(units);
}

struct Scene {
  std::string name;
  std::string algorithm;
  std::uint32_t page_size = 4096;
  std::uint32_t max_comp_streams = 0;
  Mode mode = Mode::nowait;
  bool checksum = false;
  bool train = false;
};

class DeviceModel : public ::testing::TestWithParam<Scene> {};

TEST_P(DeviceModel, threads_of_random_operations_agree_with_a_naive_device) {
  DeviceOptions options;
  options.disksize_bytes = 32 * kMiB;
  options.algorithm = GetParam().algorithm;
  options.page_size_bytes = GetParam().page_size;
  options.max_comp_streams = GetParam().max_comp_streams;
  options.mode = GetParam().mode;
  options.checksum = GetParam().checksum;
  options.train = GetParam().train;
  auto made = Device::create(options);
  ASSERT_TRUE(made) << made.error().message;
  Device& device = **made;
  if (options.train) {
    // Whatever is learnt is published.
    device.impl().training->set_eager(-1);
  }
  // Whatever can be shared is, however busy this machine is.
  const std::shared_ptr<engine::Workers> helpers = process_wide<engine::Workers>();
  helpers->set_eager(true);
  ASSERT_TRUE(helpers->start(2));
  const std::uint64_t table_before = device.stats().table_bytes;

  std::vector<std::unique_ptr<Worker>> workers;
  workers.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    workers.push_back(std::make_unique<Worker>(device, 100 + static_cast<std::uint64_t>(t)));
  }
  Random random(GetParam().name.size());
  std::size_t turn = 0;
  for (std::uint64_t sector = 0; sector < options.disksize_bytes / kSectorSize;) {
    // Mostly shorter than a few pages, some longer than a stretch of the table.
    const std::uint64_t most = random.below(20) == 0 ? 6000 : 60;
    const std::uint64_t length =
        std::min(1 + random.below(most), options.disksize_bytes / kSectorSize - sector);
    workers[turn++ % kThreads]->add_segment(sector * kSectorSize, length * kSectorSize);
    sector += length;
  }
  {
    const Disturber disturber(device, 3 * kMiB, GetParam().name == "changing_modes");
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (auto& worker : workers) {
      threads.emplace_back([&worker] { worker->run(3000 * rounds()); });
    }
    for (auto& thread : threads) {
      thread.join();
    }
  }
  for (auto& worker : workers) {
    worker->check_all();
  }
  check_structure(device);
  ASSERT_EQ(device.discard(0, options.disksize_bytes), Errc::ok);
  check_structure(device);
  const DeviceStats stats = device.stats();
  EXPECT_EQ(stats.orig_data_size, 0U);
  EXPECT_EQ(stats.compr_data_size, 0U);
  EXPECT_EQ(stats.huge_pages, 0U);
  EXPECT_EQ(stats.same_pages, 0U);
  EXPECT_LE(stats.mem_used_total, 2 * kMiB);
  RecordProperty("generations", static_cast<int>(stats.generations));
  // A reader that looks while a table page goes may leave an empty one behind. Room for sums is kept:
  // a 1024th of what the pool has been, which is less than twice the disk.
  const std::uint64_t sums = options.checksum ? options.disksize_bytes / 512 : 0;
  const std::uint64_t recipes = stats.generations * std::uint64_t{36} << 10;
  EXPECT_LE(stats.table_bytes, table_before + sums + recipes + 16 * 4096);
}

INSTANTIATE_TEST_SUITE_P(
    Scenes, DeviceModel,
    ::testing::Values(Scene{"lz4", "lz4"}, Scene{"zstd", "zstd"},
                      Scene{"shared_streams", "zstd", 4096, 2}, Scene{"pages_of_16k", "lz4", 16384},
                      Scene{"pagez", "pagez"},
                      Scene{"training", "pagez", 4096, 0, Mode::automatic, false, true},
                      Scene{"training_16k", "pagez", 16384, 2, Mode::nowait, false, true},
                      Scene{"checked_training", "pagez", 4096, 0, Mode::automatic, true, true},
                      Scene{"async", "lz4", 4096, 0, Mode::async},
                      Scene{"auto", "zstd", 4096, 0, Mode::automatic},
                      Scene{"checksums", "zstd", 4096, 0, Mode::automatic, true},
                      Scene{"checksums_of_16k", "lz4", 16384, 0, Mode::nowait, true},
                      Scene{"changing_modes", "lz4", 4096, 0, Mode::async}),
    [](const auto& param_info) { return param_info.param.name; });

// All threads at the same few pages. A sector is stamped with its own check sum, so whatever is
// read is one write's whole sector, or zeroes.
TEST(SharedPages, every_sector_read_is_one_that_was_written) {
  constexpr std::uint64_t kSectors = 64;
  DeviceOptions options;
  options.disksize_bytes = 4 * kMiB;
  auto made = Device::create(options);
  ASSERT_TRUE(made);
  Device& device = **made;
  const auto stamp = [](std::span<std::byte> sector, std::uint64_t seed) {
    for (std::size_t i = 0; i < sector.size(); i += 8) {
      const std::uint64_t word = i % 32 == 0 ? seed + i : seed;
      std::memcpy(sector.data() + i, &word, 8);
    }
  };
  const auto valid = [&](std::span<const std::byte> sector) {
    std::uint64_t seed = 0;
    std::memcpy(&seed, sector.data(), 8);
    std::vector<std::byte> expected(kSectorSize);
    if (seed != 0) {
      stamp(expected, seed);
    }
    return std::memcmp(expected.data(), sector.data(), kSectorSize) == 0;
  };
  const Disturber disturber(device, 64 << 10, true);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Random random(static_cast<std::uint64_t>(t));
      std::vector<std::byte> buffer(kSectors * kSectorSize);
      for (std::uint64_t i = 0; i < 1500 * rounds(); ++i) {
        const std::uint64_t first = random.below(kSectors);
        const std::uint64_t count = 1 + random.below(kSectors - first);
        const auto range = std::span(buffer).first(count * kSectorSize);
        const std::uint64_t offset = first * kSectorSize;
        Errc status = Errc::ok;
        switch (random.below(6)) {
          case 0:
            status = device.discard(offset, range.size());
            break;
          case 1:
            status = device.write_zeroes(offset, range.size(), random.below(2) == 0);
            break;
          case 2:
          case 3:
            for (std::uint64_t s = 0; s < count; ++s) {
              stamp(range.subspan(s * kSectorSize, kSectorSize), random.next() | 1);
            }
            status = device.write(offset, range);
            break;
          default:
            ASSERT_EQ(device.read(offset, range), Errc::ok);
            for (std::uint64_t s = 0; s < count; ++s) {
              ASSERT_TRUE(valid(range.subspan(s * kSectorSize, kSectorSize))) << first + s;
            }
        }
        ASSERT_TRUE(status == Errc::ok || status == Errc::no_space);
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
}

}  // namespace
}  // namespace uzram
