#include "engine/training.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "uzram/device.hpp"

#include "base/random.hpp"
#include "engine/device_impl.hpp"
#include "engine/recipes.hpp"
#include "support/eventually.hpp"
#include "support/scarce_room.hpp"
#include "support/unusual_pages.hpp"

namespace uzram::engine {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
// Less than any attempt saves.
constexpr double kWhatever = -1;

std::vector<Bytes> random_pages(std::size_t count) {
  Random random(7);
  std::vector<Bytes> pages(count, Bytes(kPage));
  for (Bytes& page : pages) {
    random.fill(page);
  }
  return pages;
}

class TrainingDevice : public testing::Test {
 protected:
  void make(double least_saving, const std::function<void(DeviceOptions&)>& change = {}) {
    DeviceOptions options;
    options.disksize_bytes = 16 * kMiB;
    options.algorithm = "pagez";
    options.train = true;
    options.mode = Mode::nowait;
    if (change) {
      change(options);
    }
    auto made = Device::create(options);
    ASSERT_TRUE(made) << made.error().message;
    device_ = *std::move(made);
    device_->impl().training->set_eager(least_saving);
  }

  [[nodiscard]] Training::Stats training() { return device_->impl().training->stats(); }

  void write(std::uint64_t page, const Bytes& content) {
    ASSERT_EQ(device_->write(page * kPage, content), Errc::ok);
  }
  [[nodiscard]] Bytes read(std::uint64_t page) {
    Bytes content(kPage);
    EXPECT_EQ(device_->read(page * kPage, content), Errc::ok);
    return content;
  }
  // Writes the pages over and over until so many attempts have ended.
  void write_until(std::uint32_t attempts, const std::vector<Bytes>& pages) {
    std::size_t at = 0;
    EXPECT_TRUE(test::eventually([&] {
      for (int i = 0; i < 100; ++i, ++at) {
        write(at % pages.size(), pages[at % pages.size()]);
      }
      return training().attempts >= attempts;
    }));
  }

  std::unique_ptr<Device> device_;
};

TEST_F(TrainingDevice, has_tables_of_its_own_where_the_program_s_fit_badly) {
  make(Training::kLeastSaving);
  const auto pages = test::unusual_pages(300, 1);
  write(1000, pages[0]);
  const std::uint64_t before = device_->stats().compr_data_size;
  EXPECT_FALSE(device_->stats().trained_saving);
  write_until(1, pages);
  const DeviceStats stats = device_->stats();
  EXPECT_EQ(stats.generations, 1U);
  ASSERT_TRUE(stats.trained_saving);
  EXPECT_GT(*stats.trained_saving, Training::kLeastSaving);
  ASSERT_EQ(device_->discard(0, 16 * kMiB), Errc::ok);
  write(1000, pages[0]);
  EXPECT_LT(device_->stats().compr_data_size, before);
  EXPECT_EQ(read(1000), pages[0]);
}

TEST_F(TrainingDevice, keeps_tables_that_are_good_enough) {
  make(Training::kLeastSaving);
  const auto pages = test::unusual_pages(300, 1);
  write_until(1, pages);
  ASSERT_EQ(training().generations, 1U);
  write_until(4, pages);
  EXPECT_EQ(training().generations, 1U);
}

TEST_F(TrainingDevice, learns_nothing_from_random_pages) {
  make(Training::kLeastSaving);
  write_until(2, random_pages(100));
  EXPECT_EQ(training().generations, 0U);
  EXPECT_FALSE(device_->stats().trained_saving);
}

TEST_F(TrainingDevice, reads_pages_of_every_generation) {
  make(kWhatever);
  const auto pages = test::unusual_pages(64 * codec::kMostGenerations, 3);
  for (std::uint32_t generation = 0; generation < codec::kMostGenerations; ++generation) {
    ASSERT_GE(training().generations, generation);
    for (std::size_t at = generation * 64; at < (generation + 1) * 64; ++at) {
      write(1024 + at, pages[at]);
    }
    write_until(generation + 1, pages);
  }
  EXPECT_EQ(training().generations, codec::kMostGenerations);
  for (std::size_t at = 0; at < pages.size(); ++at) {
    ASSERT_EQ(read(1024 + at), pages[at]) << at;
  }
  // It is over then.
  const std::uint32_t attempts = training().attempts;
  for (const Bytes& page : pages) {
    write(0, page);
  }
  EXPECT_EQ(training().attempts, attempts);
}

TEST_F(TrainingDevice, goes_on_reading_and_writing_while_generations_are_published) {
  make(kWhatever);
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  threads.reserve(3);
  for (std::uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const auto pages = test::unusual_pages(100, t);
      std::vector<std::size_t> held(512, pages.size());
      Random random(t);
      Bytes content(kPage);
      while (!done.load() && !HasFailure()) {
        const std::size_t at = random.below(held.size());
        const std::uint64_t offset = (t * held.size() + at) * kPage;
        if (held[at] != pages.size()) {
          ASSERT_EQ(device_->read(offset, content), Errc::ok);
          ASSERT_EQ(content, pages[held[at]]);
        }
        held[at] = random.below(pages.size());
        ASSERT_EQ(device_->write(offset, pages[held[at]]), Errc::ok);
      }
    });
  }
  EXPECT_TRUE(
      test::eventually([&] { return training().generations >= 5; }, std::chrono::seconds(100)));
  done.store(true);
  for (auto& thread : threads) {
    thread.join();
  }
}

TEST_F(TrainingDevice, counts_what_it_takes_and_gives_it_back) {
  make(Training::kLeastSaving);
  const std::uint64_t before = training().memory_bytes;
  const auto pages = test::unusual_pages(300, 1);
  write_until(1, pages);
  ASSERT_TRUE(device_->set_training(false));
  const std::size_t tables =
      codec::make("pagez", std::nullopt, kPage)
          .value()
          ->trainable()
          ->train(std::vector<std::span<const std::byte>>(pages.begin(), pages.begin() + 10),
                  std::atomic<bool>{false})
          .value()
          ->memory_bytes();
  EXPECT_TRUE(test::eventually([&] { return training().memory_bytes == before + tables; }));
  EXPECT_GE(device_->stats().metadata_bytes, before + tables);
}

TEST_F(TrainingDevice, pauses_and_goes_on) {
  make(Training::kLeastSaving);
  ASSERT_TRUE(device_->set_training(false));
  EXPECT_FALSE(device_->options().train);
  const auto pages = test::unusual_pages(300, 1);
  for (int turn = 0; turn < 5; ++turn) {
    for (std::size_t at = 0; at < pages.size(); ++at) {
      write(at, pages[at]);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(training().attempts, 0U);
  ASSERT_TRUE(device_->set_training(true));
  EXPECT_TRUE(device_->options().train);
  write_until(1, pages);
  EXPECT_EQ(training().generations, 1U);
}

TEST_F(TrainingDevice, ends_in_the_middle_of_an_attempt) {
  for (int turn = 0; turn < 5; ++turn) {
    make(kWhatever);
    const auto pages = test::unusual_pages(300, 1);
    for (std::size_t at = 0; at < pages.size() * 2; ++at) {
      write(at % 100, pages[at % pages.size()]);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(turn * 5));
  }
}

TEST_F(TrainingDevice, trains_with_large_pages_and_shared_streams_too) {
  make(Training::kLeastSaving, [](DeviceOptions& options) {
    options.page_size_bytes = 16384;
    options.max_comp_streams = 2;
  });
  const auto pages = test::unusual_pages(100, 1, 16384);
  EXPECT_TRUE(test::eventually([&] {
    for (std::size_t at = 0; at < pages.size(); ++at) {
      EXPECT_EQ(device_->write(at * 16384, pages[at]), Errc::ok);
    }
    return training().generations == 1;
  }));
  Bytes content(16384);
  for (std::size_t at = 0; at < pages.size(); ++at) {
    ASSERT_EQ(device_->read(at * 16384, content), Errc::ok);
    ASSERT_EQ(content, pages[at]);
  }
}

TEST(TrainOption, does_not_disturb_devices_without_it) {
  DeviceOptions options;
  options.disksize_bytes = kMiB;
  options.algorithm = "pagez";
  const auto first = Device::create(options);
  ASSERT_TRUE(first);
  EXPECT_FALSE((*first)->impl().training.has_value());
  EXPECT_TRUE((*first)->set_training(false));
  const auto refused = (*first)->set_training(true);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::invalid_argument);
  EXPECT_NE(refused.error().message.find("train on"), std::string::npos);
}

void expect_refused(const DeviceOptions& options, const std::vector<std::string>& parts) {
  const auto device = Device::create(options);
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code, Errc::invalid_argument);
  for (const std::string& part : parts) {
    EXPECT_NE(device.error().message.find(part), std::string::npos) << device.error().message;
  }
}

TEST(TrainOption, needs_an_algorithm_that_can_be_trained_and_the_background) {
  DeviceOptions options;
  options.disksize_bytes = kMiB;
  options.train = true;
  expect_refused(options, {"uzram0", "train on", "\"lz4\"", "pagez", "train off"});
  options.algorithm = "lz77";
  expect_refused(options, {"\"lz77\"", "expected one of"});
  options.algorithm = "pagez";
  options.background = false;
  expect_refused(options, {"train on", "background on"});
}

// Training without a device, in a room that may be scarce.
class TrainingParts : public testing::Test {
 protected:
  void make(Room& room) {
    auto streams = StreamSet::make_trainable("pagez", std::nullopt, kPage, 1);
    ASSERT_TRUE(streams);
    streams_ = *std::move(streams);
    Header header = {};
    header.page_size_bytes = kPage;
    header.disksize_bytes = kMiB;
    header.recipe_slot_bytes =
        static_cast<std::uint32_t>(streams_->trainable()->max_recipe_bytes());
    auto table = PageTable::create("test", header, room);
    ASSERT_TRUE(table) << table.error().message;
    table_ = *std::move(table);
    training_.emplace(*streams_, *table_, room, kPage);
    training_->set_eager(kWhatever);
  }
  void offer_until(std::uint32_t attempts) {
    const auto pages = test::unusual_pages(100, 1);
    EXPECT_TRUE(test::eventually([&] {
      for (const Bytes& page : pages) {
        const StreamLease stream(*streams_);
        stream->samples->offer(page);
      }
      return training_->stats().attempts >= attempts;
    }));
  }
  // The table file as another process would map it.
  [[nodiscard]] Bytes table_file() const {
    struct stat status = {};
    EXPECT_EQ(::fstat(table_->fd(), &status), 0);
    const auto size = static_cast<std::size_t>(status.st_size);
    void* const address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, table_->fd(), 0);
    EXPECT_NE(address, MAP_FAILED);
    const auto* const from = static_cast<const std::byte*>(address);
    Bytes bytes(from, from + size);
    ::munmap(address, size);
    return bytes;
  }
  [[nodiscard]] static std::unique_ptr<codec::Codec> fresh(const std::string& name = "pagez") {
    return codec::make(name, std::nullopt, kPage).value();
  }

  Room plenty_{nullptr};
  std::shared_ptr<StreamSet> streams_;
  std::unique_ptr<PageTable> table_;
  std::optional<Training> training_;
};

TEST_F(TrainingParts, samples_one_page_of_each_period) {
  make(plenty_);
  streams_->sampling()->set_period(Sampling::kPeriod);
  Stream& stream = streams_->stream(0);
  Bytes page(kPage);
  for (std::uint32_t at = 1; at <= Sampling::kPeriod; ++at) {
    EXPECT_EQ(stream.samples->pages(), 0U);
    std::fill(page.begin(), page.end(), static_cast<std::byte>(at));
    stream.samples->offer(page);
  }
  EXPECT_EQ(stream.samples->pages(), Sampling::kPeriod);
}

TEST_F(TrainingParts, recipes_are_in_the_table_file_before_their_tables_are_in_use) {
  make(plenty_);
  EXPECT_TRUE(load_recipes(table_file(), *fresh("lz4")));
  for (std::uint32_t generation = 1; generation <= 3; ++generation) {
    offer_until(generation);
    const std::uint32_t in_use = streams_->trainable()->generation();
    const Bytes file = table_file();
    const auto reader = fresh();
    const Result<void> loaded = load_recipes(file, *reader);
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_GE(reader->trainable()->generation(), in_use);
    EXPECT_GE(in_use, generation);
  }
}

TEST_F(TrainingParts, a_reader_decodes_every_object_by_the_recipes_alone) {
  make(plenty_);
  const auto pages = test::unusual_pages(20, 9);
  const auto workspace = streams_->codec().make_workspace();
  ASSERT_TRUE(workspace);
  std::vector<std::pair<Bytes, Bytes>> written;
  for (std::uint32_t generation = 0; generation <= 3; ++generation) {
    for (const Bytes& page : pages) {
      Bytes object(kPage);
      const auto result = streams_->codec().compress(**workspace, page, object);
      ASSERT_EQ(result.status, Errc::ok);
      object.resize(result.size);
      written.emplace_back(page, object);
    }
    offer_until(generation + 1);
  }
  const auto reader = fresh();
  ASSERT_TRUE(load_recipes(table_file(), *reader));
  for (const auto& [page, object] : written) {
    Bytes content(kPage);
    ASSERT_EQ(reader->decompress(nullptr, object, content), Errc::ok);
    EXPECT_EQ(content, page);
  }
}

TEST_F(TrainingParts, damaged_recipes_are_refused) {
  make(plenty_);
  offer_until(1);
  const Bytes file = table_file();
  Header header = {};
  std::memcpy(&header, file.data(), sizeof header);
  const auto expect_corrupt = [&](const Header& changed, const Bytes& bytes,
                                  const std::string& codec = "pagez") {
    Bytes damaged = bytes;
    std::memcpy(damaged.data(), &changed, sizeof changed);
    const Result<void> loaded = load_recipes(damaged, *fresh(codec));
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, Errc::corrupt);
  };
  expect_corrupt(header, file, "lz4");
  Header changed = header;
  changed.recipe_count = kRecipeSlots + 1;
  expect_corrupt(changed, file);
  changed = header;
  changed.recipes_offset = file.size() - 100;
  expect_corrupt(changed, file);
  changed.recipes_offset = ~std::uint64_t{0} - 10;
  expect_corrupt(changed, file);
  changed = header;
  changed.recipe_slot_bytes = ~std::uint32_t{0};
  expect_corrupt(changed, file);
  changed.recipe_slot_bytes = 100;
  expect_corrupt(changed, file);
  Bytes damaged = file;
  damaged[header.recipes_offset + 1000] ^= std::byte{1};
  expect_corrupt(header, damaged);
  EXPECT_FALSE(load_recipes(std::span(file).first(100), *fresh()));
}

TEST_F(TrainingParts, gives_up_where_there_is_no_memory) {
  test::ScarceRoom scarce(2 * kMiB);
  ASSERT_TRUE(scarce.opened());
  make(scarce.room());
  scarce.set_available(0);
  // What has been granted is used up first.
  while (scarce.room().ask(kPage)) {
  }
  const auto pages = test::unusual_pages(100, 1);
  for (int turn = 0; turn < 20; ++turn) {
    for (const Bytes& page : pages) {
      const StreamLease stream(*streams_);
      stream->samples->offer(page);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(training_->stats().generations, 0U);
  scarce.set_available(64 * kMiB);
  offer_until(1);
  EXPECT_TRUE(test::eventually([&] { return training_->stats().generations != 0; }));
}

TEST_F(TrainingParts, an_algorithm_that_cannot_be_trained_has_no_such_streams) {
  const auto set = StreamSet::make_trainable("zstd", std::nullopt, kPage, 1);
  ASSERT_FALSE(set);
  EXPECT_NE(set.error().message.find("pagez"), std::string::npos);
  EXPECT_EQ(StreamSet::get("pagez", std::nullopt, kPage, 1).value()->trainable(), nullptr);
}

}  // namespace
}  // namespace uzram::engine
