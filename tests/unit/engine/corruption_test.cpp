// What a device does with an object that is not what it was: Errc::corrupt for that page alone.
#include <algorithm>
#include <array>
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
#include "codec/codec.hpp"
#include "engine/device_impl.hpp"
#include "support/captured_log.hpp"
#include "support/eventually.hpp"
#include "support/made_bytes.hpp"

namespace uzram {
namespace {

using namespace std::chrono_literals;
using engine::Entry;
using engine::Kind;
using test::compressible_bytes;
using test::eventually;
using test::random_bytes;
using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

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
  const Bytes content = compressible_bytes(4096, 1);
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

// ---- with checksums ---------------------------------------------------------------------------

struct Scene {
  std::string algorithm;
  std::uint32_t page_size = 4096;
};

class Checksum : public ::testing::TestWithParam<Scene> {
 protected:
  void SetUp() override {
    DeviceOptions options;
    options.disksize_bytes = 16 * kMiB;
    options.page_size_bytes = page_size();
    options.algorithm = GetParam().algorithm;
    options.background = false;
    options.checksum = true;
    auto made = Device::create(options);
    ASSERT_TRUE(made) << made.error().message;
    device_ = std::move(*made);
    EXPECT_TRUE(device_->options().checksum);
  }

  [[nodiscard]] static std::uint32_t page_size() { return GetParam().page_size; }
  [[nodiscard]] Device& device() { return *device_; }

  void write(std::uint64_t page, const Bytes& content) {
    ASSERT_EQ(device().write(page * page_size(), content), Errc::ok);
  }

  // Pages 4, 5 and 6 of the kind. Returns what they hold.
  std::array<Bytes, 3> write_three(Kind kind) {
    std::array<Bytes, 3> contents;
    for (std::uint64_t i = 0; i < contents.size(); ++i) {
      switch (kind) {
        case Kind::raw:
          contents.at(i) = random_bytes(page_size(), i);
          break;
        case Kind::fill_slot: {
          const Bytes word = random_bytes(8, 77 + i);
          for (std::size_t at = 0; at < page_size(); at += word.size()) {
            contents.at(i).insert(contents.at(i).end(), word.begin(), word.end());
          }
          break;
        }
        default:
          contents.at(i) = compressible_bytes(page_size(), i);
      }
      write(4 + i, contents.at(i));
      EXPECT_EQ(entry_of(device(), 4 + i).kind(), kind);
    }
    return contents;
  }

  // Flips every `step`th bit of what is kept of page 5.
  void expect_flips_to_be_found(Kind kind, std::size_t step) {
    const std::array<Bytes, 3> contents = write_three(kind);
    const std::span<std::byte> object = object_of(device(), 5);
    std::uint64_t found = device().stats().corrupt_pages;
    Bytes read;
    for (std::size_t bit = 0; bit < object.size() * 8; bit += step) {
      const auto flip = static_cast<std::byte>(1U << (bit % 8));
      object[bit / 8] ^= flip;
      ASSERT_EQ(read_page(device(), 5, read), Errc::corrupt) << "bit " << bit;
      ASSERT_EQ(device().stats().corrupt_pages, ++found);
      object[bit / 8] ^= flip;
    }
    for (std::uint64_t i = 0; i < contents.size(); ++i) {
      expect_page(device(), 4 + i, contents.at(i));
    }
  }

 private:
  std::unique_ptr<Device> device_;
};

TEST_P(Checksum, every_flipped_bit_of_an_object_is_found) {
  expect_flips_to_be_found(Kind::object, 1);
}

TEST_P(Checksum, every_flipped_bit_of_a_raw_page_is_found) {
  expect_flips_to_be_found(Kind::raw, 1);
}

TEST_P(Checksum, every_flipped_bit_of_a_fill_word_in_a_slot_is_found) {
  expect_flips_to_be_found(Kind::fill_slot, 1);
}

TEST_P(Checksum, a_flipped_bit_of_a_raw_page_s_sum_is_found) {
  const std::array<Bytes, 3> contents = write_three(Kind::raw);
  const engine::PlaceSums& sums = *device().impl().store.table().sums();
  const engine::Place place = entry_of(device(), 5).place();
  sums.store(place, sums.load(place) ^ 1);
  Bytes read;
  EXPECT_EQ(read_page(device(), 5, read), Errc::corrupt);
  expect_page(device(), 4, contents[0]);
  expect_page(device(), 6, contents[2]);
}

TEST_P(Checksum, a_corrupt_page_fails_alone_and_its_neighbours_stay_readable) {
  for (const Kind kind : {Kind::object, Kind::raw, Kind::fill_slot}) {
    const std::array<Bytes, 3> contents = write_three(kind);
    object_of(device(), 5)[3] ^= std::byte{0x10};
    Bytes read;
    EXPECT_EQ(read_page(device(), 5, read), Errc::corrupt);
    Bytes sector(kSectorSize);
    EXPECT_EQ(device().read(5 * page_size() + 1024, sector), Errc::corrupt);
    Bytes all(3 * page_size());
    EXPECT_EQ(device().read(4 * page_size(), all), Errc::corrupt);
    expect_page(device(), 4, contents[0]);
    expect_page(device(), 6, contents[2]);
  }
}

TEST_P(Checksum, a_partial_write_of_a_corrupt_page_fails_and_changes_nothing) {
  for (const Kind kind : {Kind::object, Kind::raw, Kind::fill_slot}) {
    const std::array<Bytes, 3> contents = write_three(kind);
    std::byte& flipped = object_of(device(), 5)[3];
    flipped ^= std::byte{0x10};
    const Entry before = entry_of(device(), 5);
    const DeviceStats stats = device().stats();
    const Bytes sector = random_bytes(kSectorSize, 9);
    EXPECT_EQ(device().write(5 * page_size() + 512, sector), Errc::corrupt);
    EXPECT_EQ(entry_of(device(), 5).bits(), before.bits());
    EXPECT_EQ(device().stats().corrupt_pages, stats.corrupt_pages + 1);
    EXPECT_EQ(device().stats().failed_writes, stats.failed_writes + 1);
    EXPECT_EQ(device().stats().compr_data_size, stats.compr_data_size);
    flipped ^= std::byte{0x10};
    expect_page(device(), 5, contents[1]);
  }
}

TEST_P(Checksum, writing_a_corrupt_page_whole_makes_it_good_and_discarding_it_frees_it) {
  for (const Kind kind : {Kind::object, Kind::raw, Kind::fill_slot}) {
    write_three(kind);
    for (const std::uint64_t page : {5, 6}) {
      object_of(device(), page)[3] ^= std::byte{0x10};
    }
    const Bytes content = compressible_bytes(page_size(), 12);
    write(5, content);
    expect_page(device(), 5, content);
    ASSERT_EQ(device().discard(6 * page_size(), page_size()), Errc::ok);
    expect_page(device(), 6, Bytes(page_size()));
  }
  ASSERT_EQ(device().discard(0, device().disksize_bytes()), Errc::ok);
  EXPECT_EQ(device().stats().orig_data_size, 0U);
  EXPECT_EQ(device().stats().compr_data_size, 0U);
}

TEST_P(Checksum, partial_writes_and_reads_of_good_pages_work) {
  for (const Kind kind : {Kind::object, Kind::raw, Kind::fill_slot}) {
    Bytes content = write_three(kind)[1];
    const Bytes sector = random_bytes(kSectorSize, 9);
    ASSERT_EQ(device().write(5 * page_size() + 512, sector), Errc::ok);
    std::copy(sector.begin(), sector.end(), content.begin() + 512);
    expect_page(device(), 5, content);
    Bytes read(kSectorSize);
    ASSERT_EQ(device().read(5 * page_size() + 512, read), Errc::ok);
    EXPECT_TRUE(read == sector);
  }
}

// Nothing is taken for good on the way that was corrupt before.
TEST_P(Checksum, compaction_keeps_sums_and_what_is_corrupt_corrupt) {
  const std::uint64_t pages = device().disksize_bytes() / page_size();
  const auto content = [](std::uint64_t page) {
    return page % 2 == 0 ? random_bytes(page_size(), page) : compressible_bytes(page_size(), page);
  };
  for (std::uint64_t page = 0; page < pages; ++page) {
    write(page, content(page));
  }
  for (std::uint64_t page = 0; page < pages; ++page) {
    if (page % 8 > 1) {
      ASSERT_EQ(device().discard(page * page_size(), page_size()), Errc::ok);
    }
  }
  const auto is_flipped = [](std::uint64_t page) { return page % 32 < 2; };
  std::uint64_t moved = 0;
  std::vector<Entry> before(pages);
  for (std::uint64_t page = 0; page < pages; ++page) {
    before[page] = entry_of(device(), page);
    if (is_flipped(page)) {
      object_of(device(), page)[page % 64] ^= std::byte{1};
    }
  }
  device().compact();
  Bytes read;
  for (std::uint64_t page = 0; page < pages; ++page) {
    if (page % 8 > 1) {
      continue;
    }
    moved += entry_of(device(), page).bits() != before[page].bits() ? 1 : 0;
    if (is_flipped(page)) {
      EXPECT_EQ(read_page(device(), page, read), Errc::corrupt) << page;
    } else {
      expect_page(device(), page, content(page));
    }
  }
  EXPECT_GT(moved, pages / 16);
}

TEST_P(Checksum, room_for_sums_is_taken_with_the_pool_s) {
  const std::uint64_t table_before = device().stats().table_bytes;
  const std::uint64_t pages = device().disksize_bytes() / page_size();
  for (std::uint64_t page = 0; page < pages; ++page) {
    write(page, random_bytes(page_size(), page));
  }
  const std::uint64_t sums = device().stats().mem_used_total / 4096 * 4;
  const std::uint64_t entries = pages * 8;
  EXPECT_GE(device().stats().table_bytes, table_before + sums);
  EXPECT_LE(device().stats().table_bytes, table_before + sums + entries + 2 * 4096);
}

std::vector<Scene> scenes() {
  std::vector<Scene> all;
  for (const auto& info : codec::registry()) {
    all.push_back({std::string(info.name)});
  }
  all.push_back({"lz4", 16384});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Codecs, Checksum, ::testing::ValuesIn(scenes()),
                         [](const auto& param_info) {
                           return param_info.param.algorithm + "_" +
                                  std::to_string(param_info.param.page_size);
                         });

}  // namespace
}  // namespace uzram
