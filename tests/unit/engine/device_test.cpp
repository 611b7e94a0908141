#include "uzram/device.hpp"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "codec/codec.hpp"
#include "support/hostile.hpp"
#include "support/made_bytes.hpp"

namespace uzram {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
using test::compressible_bytes;
using test::random_bytes;
using Bytes = std::vector<std::byte>;

std::unique_ptr<Device> make(const DeviceOptions& options) {
  auto device = Device::create(options);
  EXPECT_TRUE(device) << device.error().message;
  return device ? std::move(*device) : nullptr;
}

std::unique_ptr<Device> make(std::uint64_t size) {
  DeviceOptions options;
  options.disksize_bytes = size;
  return make(options);
}

Bytes read_back(Device& device, std::uint64_t offset, std::size_t size) {
  Bytes bytes(size, std::byte{0xee});
  EXPECT_EQ(device.read(offset, bytes), Errc::ok);
  return bytes;
}

bool all_zero(const Bytes& bytes) { return bytes == Bytes(bytes.size()); }

TEST(Device, refuses_options_that_make_no_sense_and_names_them) {
  const auto refused = [](const DeviceOptions& options, const std::string& named) {
    const auto device = Device::create(options);
    ASSERT_FALSE(device);
    EXPECT_EQ(device.error().code, Errc::invalid_argument);
    EXPECT_NE(device.error().message.find(named), std::string::npos) << device.error().message;
  };
  DeviceOptions good;
  good.disksize_bytes = kMiB;
  DeviceOptions bad = good;
  bad.disksize_bytes = 0;
  refused(bad, "size 0");
  bad.disksize_bytes = 5000;
  refused(bad, "5000");
  bad.disksize_bytes = kMaxDiskSize + 4096;
  refused(bad, std::to_string(kMaxDiskSize + 4096));
  bad = good;
  bad.page_size_bytes = 2048;
  refused(bad, "2048");
  bad.page_size_bytes = 32768;
  refused(bad, "32768");
  bad = good;
  bad.algorithm = "lz5";
  refused(bad, "lz5");
  bad = good;
  bad.level = 1000000000;
  refused(bad, "1000000000");
  bad = good;
  bad.max_comp_streams = kMaxCompStreams + 1;
  refused(bad, std::to_string(kMaxCompStreams + 1));
}

TEST(Device, an_empty_device_reads_as_zeroes_and_stores_nothing) {
  const auto device = make(std::uint64_t{16} << 40);
  for (std::uint64_t gib = 0; gib < 16 * 1024; gib += 512) {
    ASSERT_TRUE(all_zero(read_back(*device, gib << 30, 4096)));
  }
  EXPECT_TRUE(all_zero(read_back(*device, kMaxDiskSize - 4096, 4096)));
  EXPECT_EQ(device->stats().mem_used_total, 0U);
  EXPECT_LE(device->stats().table_bytes, 2 * kMiB);
}

TEST(Device, the_last_page_of_the_largest_device_can_be_written) {
  const auto device = make(kMaxDiskSize);
  const Bytes data = random_bytes(4096, 1);
  ASSERT_EQ(device->write(kMaxDiskSize - 4096, data), Errc::ok);
  EXPECT_EQ(read_back(*device, kMaxDiskSize - 4096, 4096), data);
  EXPECT_TRUE(all_zero(read_back(*device, kMaxDiskSize - 8192, 4096)));
}

class DeviceOfEachCodec : public ::testing::TestWithParam<std::string> {};

TEST_P(DeviceOfEachCodec, hostile_and_ordinary_pages_come_back) {
  for (const std::uint32_t page_size : {4096U, 8192U, 16384U}) {
    DeviceOptions options;
    options.disksize_bytes = 64 * kMiB;
    options.page_size_bytes = page_size;
    options.algorithm = GetParam();
    const auto device = make(options);
    const auto pages = test::hostile_pages(page_size, 7);
    ASSERT_LE(pages.size() * page_size, options.disksize_bytes);
    for (std::size_t i = 0; i < pages.size(); ++i) {
      ASSERT_EQ(device->write(i * page_size, pages[i].bytes), Errc::ok) << pages[i].name;
    }
    for (std::size_t i = 0; i < pages.size(); ++i) {
      EXPECT_EQ(read_back(*device, i * page_size, page_size), pages[i].bytes) << pages[i].name;
    }
    // Partial writes and reads go through the same pages.
    const Bytes patch = random_bytes(512, 3);
    for (std::size_t i = 0; i < pages.size(); ++i) {
      ASSERT_EQ(device->write(i * page_size + 1024, patch), Errc::ok);
      Bytes expected = pages[i].bytes;
      std::copy(patch.begin(), patch.end(), expected.begin() + 1024);
      EXPECT_EQ(read_back(*device, i * page_size, page_size), expected) << pages[i].name;
      EXPECT_EQ(read_back(*device, i * page_size + 512, 2048),
                Bytes(expected.begin() + 512, expected.begin() + 2560));
    }
  }
}

std::vector<std::string> codec_names() {
  std::vector<std::string> names;
  for (const auto& info : codec::registry()) {
    names.emplace_back(info.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Codecs, DeviceOfEachCodec, ::testing::ValuesIn(codec_names()),
                         [](const auto& param_info) { return param_info.param; });

TEST(Device, counts_as_zram_does) {
  const auto device = make(64 * kMiB);
  ASSERT_EQ(device->write(0, compressible_bytes(4096, 1)), Errc::ok);
  ASSERT_EQ(device->write(4096, random_bytes(4096, 2)), Errc::ok);
  ASSERT_EQ(device->write(8192, Bytes(4096)), Errc::ok);
  ASSERT_EQ(device->write(12288, Bytes(4096, std::byte{7})), Errc::ok);
  DeviceStats stats = device->stats();
  EXPECT_EQ(stats.orig_data_size, 4 * 4096U);
  EXPECT_EQ(stats.same_pages, 2U);
  EXPECT_EQ(stats.huge_pages, 1U);
  EXPECT_EQ(stats.huge_pages_since, 1U);
  EXPECT_GT(stats.compr_data_size, 4096U + 1000U);
  EXPECT_LT(stats.compr_data_size, 4096U + 3000U);
  EXPECT_GE(stats.mem_used_total, stats.compr_data_size);
  // Room may be taken ahead between the two.
  EXPECT_GE(stats.mem_used_max, stats.mem_used_total);

  ASSERT_EQ(device->write(4096, Bytes(4096)), Errc::ok);
  stats = device->stats();
  EXPECT_EQ(stats.same_pages, 3U);
  EXPECT_EQ(stats.huge_pages, 0U);
  EXPECT_EQ(stats.huge_pages_since, 1U);

  ASSERT_EQ(device->discard(0, 64 * kMiB), Errc::ok);
  stats = device->stats();
  EXPECT_EQ(stats.orig_data_size, 0U);
  EXPECT_EQ(stats.compr_data_size, 0U);
  EXPECT_EQ(stats.same_pages, 0U);
  EXPECT_EQ(stats.notify_free, 64 * kMiB / 4096);
}

TEST(Device, a_fill_word_that_does_not_fit_an_entry_counts_as_same_filled) {
  const auto device = make(kMiB);
  Bytes page(4096);
  const std::uint64_t word = 0x123456789abcdef0;
  for (std::size_t i = 0; i < page.size(); i += sizeof word) {
    std::memcpy(page.data() + i, &word, sizeof word);
  }
  ASSERT_EQ(device->write(4096, page), Errc::ok);
  EXPECT_EQ(read_back(*device, 4096, 4096), page);
  EXPECT_EQ(read_back(*device, 4096 + 512, 1024), Bytes(page.begin(), page.begin() + 1024));
  const DeviceStats stats = device->stats();
  EXPECT_EQ(stats.same_pages, 1U);
  EXPECT_EQ(stats.compr_data_size, 0U);
  EXPECT_GT(stats.mem_used_total, 0U);
}

TEST(Device, requests_out_of_range_or_unaligned_are_refused_and_counted) {
  const auto device = make(kMiB);
  Bytes buffer(4096);
  EXPECT_EQ(device->read(kMiB, buffer), Errc::out_of_range);
  EXPECT_EQ(device->write(kMiB - 512, buffer), Errc::out_of_range);
  EXPECT_EQ(device->discard(512, kMiB), Errc::out_of_range);
  EXPECT_EQ(device->discard(~std::uint64_t{511}, 512), Errc::out_of_range);
  EXPECT_EQ(device->discard(512, ~std::uint64_t{511}), Errc::out_of_range);
  EXPECT_EQ(device->read(1, buffer), Errc::invalid_argument);
  EXPECT_EQ(device->read(0, std::span(buffer).first(100)), Errc::invalid_argument);
  EXPECT_EQ(device->read(0, {}), Errc::invalid_argument);
  EXPECT_EQ(device->write_zeroes(100, 512, false), Errc::invalid_argument);
  EXPECT_EQ(device->stats().invalid_io, 9U);
}

TEST(Device, discard_leaves_partial_pages_alone_and_write_zeroes_patches_them) {
  const auto device = make(kMiB);
  const Bytes data = compressible_bytes(4 * 4096, 5);
  ASSERT_EQ(device->write(0, data), Errc::ok);
  ASSERT_EQ(device->discard(512, 3 * 4096), Errc::ok);
  Bytes expected = data;
  std::fill(expected.begin() + 4096, expected.begin() + 3 * 4096, std::byte{0});
  EXPECT_EQ(read_back(*device, 0, data.size()), expected);

  ASSERT_EQ(device->write(0, data), Errc::ok);
  ASSERT_EQ(device->write_zeroes(512, 3 * 4096, false), Errc::ok);
  expected = data;
  std::fill(expected.begin() + 512, expected.begin() + 512 + 3 * 4096, std::byte{0});
  EXPECT_EQ(read_back(*device, 0, data.size()), expected);
  EXPECT_EQ(device->stats().orig_data_size, 2 * 4096U);

  ASSERT_EQ(device->write(0, data), Errc::ok);
  ASSERT_EQ(device->write_zeroes(1024, 512, false), Errc::ok);
  expected = data;
  std::fill(expected.begin() + 1024, expected.begin() + 1536, std::byte{0});
  EXPECT_EQ(read_back(*device, 0, data.size()), expected);
}

TEST(Device, write_zeroes_can_keep_pages_allocated) {
  const auto device = make(16 * kMiB);
  ASSERT_EQ(device->write_zeroes(512, 8 * kMiB, true), Errc::ok);
  EXPECT_EQ(device->stats().orig_data_size, 8 * kMiB + 4096);
  EXPECT_TRUE(all_zero(read_back(*device, 0, 9 * kMiB)));
  const Extent extent = device->extent_at(0, 16 * kMiB);
  EXPECT_EQ(extent.state, ExtentState::zero);
  EXPECT_EQ(extent.length, 8 * kMiB + 4096);
}

TEST(Device, extents_tell_holes_zeroes_and_data_apart) {
  const auto device = make(std::uint64_t{16} << 40);
  const std::uint64_t far = (std::uint64_t{9} << 40) + 4096;
  ASSERT_EQ(device->write(far, random_bytes(8192, 1)), Errc::ok);
  ASSERT_EQ(device->write(far + 8192, Bytes(4096)), Errc::ok);
  Extent extent = device->extent_at(0, kMaxDiskSize);
  EXPECT_EQ(extent.state, ExtentState::hole);
  EXPECT_EQ(extent.length, far);
  extent = device->extent_at(512, 1024);
  EXPECT_EQ(extent.length, 512U);
  extent = device->extent_at(far + 512, kMaxDiskSize);
  EXPECT_EQ(extent.state, ExtentState::data);
  EXPECT_EQ(extent.length, 8192U - 512U);
  extent = device->extent_at(far + 8192, kMaxDiskSize);
  EXPECT_EQ(extent.state, ExtentState::zero);
  EXPECT_EQ(extent.length, 4096U);
  extent = device->extent_at(far + 12288, kMaxDiskSize);
  EXPECT_EQ(extent.state, ExtentState::hole);
  EXPECT_EQ(extent.length, kMaxDiskSize - far - 12288);
}

TEST(Device, a_write_over_mem_limit_fails_and_the_old_content_stays) {
  DeviceOptions options;
  options.disksize_bytes = 64 * kMiB;
  options.mem_limit_bytes = 2 * kMiB;
  const auto device = make(options);
  std::uint64_t written = 0;
  while (written < 64 * kMiB && device->write(written, random_bytes(4096, written)) == Errc::ok) {
    written += 4096;
  }
  ASSERT_LT(written, 2 * kMiB + 4096);
  EXPECT_GE(written, 2 * kMiB * 9 / 10);
  EXPECT_EQ(device->stats().failed_writes, 1U);
  EXPECT_EQ(device->stats().mem_limit, 2 * kMiB);
  EXPECT_EQ(device->write(0, random_bytes(65536, 99)), Errc::no_space);
  EXPECT_EQ(device->write(512, random_bytes(512, 98)), Errc::no_space);
  EXPECT_EQ(device->write(8192, Bytes(4096)), Errc::ok) << "same-filled pages are exempt";
  for (std::uint64_t offset = 0; offset < written; offset += 4096) {
    const Bytes expected = offset == 8192 ? Bytes(4096) : random_bytes(4096, offset);
    ASSERT_EQ(read_back(*device, offset, 4096), expected) << offset;
  }
  device->set_mem_limit(0);
  EXPECT_EQ(device->write(512, random_bytes(512, 98)), Errc::ok);
}

TEST(Device, freed_room_can_be_written_again_under_mem_limit) {
  DeviceOptions options;
  options.disksize_bytes = 64 * kMiB;
  options.mem_limit_bytes = 4 * kMiB;
  const auto device = make(options);
  for (std::uint64_t round = 0; round < 20; ++round) {
    for (std::uint64_t i = 0; i < 900; ++i) {
      ASSERT_EQ(device->write(i * 4096, random_bytes(4096, round * 1000 + i)), Errc::ok)
          << round << " " << i;
    }
    ASSERT_EQ(device->discard(0, 64 * kMiB), Errc::ok);
  }
}

TEST(Device, fragmented_room_is_compacted_before_a_write_fails) {
  DeviceOptions options;
  options.disksize_bytes = 256 * kMiB;
  options.mem_limit_bytes = 16 * kMiB;
  const auto device = make(options);
  std::uint64_t pages = 0;
  while (device->write(pages * 4096, compressible_bytes(4096, pages)) == Errc::ok) {
    ++pages;
  }
  // Every other object goes; what is left is half of the room, in pieces too small for raw pages.
  for (std::uint64_t i = 0; i < pages; i += 2) {
    ASSERT_EQ(device->discard(i * 4096, 4096), Errc::ok);
  }
  std::uint64_t raw = 0;
  while (device->write((pages + raw) * 4096, random_bytes(4096, raw)) == Errc::ok) {
    ++raw;
  }
  EXPECT_GE(raw * 4096, 6 * kMiB);
  for (std::uint64_t i = 1; i < pages; i += 2) {
    ASSERT_EQ(read_back(*device, i * 4096, 4096), compressible_bytes(4096, i));
  }
}

// A page whose lz4 object is a little larger than `bytes`.
Bytes page_of_object(std::size_t bytes, std::uint64_t seed) {
  Bytes page(4096);
  Random(seed).fill(std::span(page).first(bytes));
  page.back() = std::byte{1};
  return page;
}

// A device of 1 GiB with a limit, filled to it with objects of `bytes`; returns the pages written.
std::uint64_t fill_to_the_limit(std::unique_ptr<Device>& device, std::uint64_t limit,
                                std::size_t bytes) {
  DeviceOptions options;
  options.disksize_bytes = 1024 * kMiB;
  options.mem_limit_bytes = limit;
  device = make(options);
  std::uint64_t pages = 0;
  while (device->write(pages * 4096, page_of_object(bytes, pages)) == Errc::ok) {
    ++pages;
  }
  return pages;
}

TEST(Device, slots_of_fill_words_do_not_let_objects_pass_the_limit) {
  std::unique_ptr<Device> device;
  std::uint64_t pages = fill_to_the_limit(device, 8 * kMiB, 1000);
  std::uint64_t slots = 0;
  for (int i = 0; i < 3000; ++i) {
    if (device->write(pages * 4096, page_of_object(1000, pages)) == Errc::ok) {
      ++pages;
      continue;
    }
    Bytes fill(4096);
    const std::uint64_t word = 0x123456789abcdef0 + ++slots;
    for (std::size_t at = 0; at < fill.size(); at += sizeof word) {
      std::memcpy(fill.data() + at, &word, sizeof word);
    }
    ASSERT_EQ(device->write((100000 + slots) * 4096, fill), Errc::ok);
  }
  EXPECT_GT(slots, 2000U);
  EXPECT_LE(device->stats().mem_used_total, 8 * kMiB + 65536 * (1 + slots * 16 / 65536));
}

TEST(Device, small_pools_at_their_limit_can_be_compacted) {
  for (const std::uint64_t limit : {2 * kMiB, 3 * kMiB, 4 * kMiB, 16 * kMiB}) {
    for (const std::size_t bytes : {1200U, 2000U, 3000U}) {
      std::unique_ptr<Device> device;
      const std::uint64_t pages = fill_to_the_limit(device, limit, 900);
      for (std::uint64_t i = 0; i < pages; i += 2) {
        ASSERT_EQ(device->discard(i * 4096, 4096), Errc::ok);
      }
      std::uint64_t more = 0;
      while (device->write((100000 + more) * 4096, page_of_object(bytes, more)) == Errc::ok) {
        ++more;
      }
      const DeviceStats stats = device->stats();
      EXPECT_GE(stats.compr_data_size * 100, stats.mem_used_total * 85)
          << limit << " " << bytes << " " << more;
      for (std::uint64_t i = 1; i < pages; i += 2) {
        ASSERT_EQ(read_back(*device, i * 4096, 4096), page_of_object(900, i));
      }
    }
  }
}

TEST(Device, a_hole_that_fits_is_found_behind_many_that_do_not) {
  DeviceOptions options;
  options.disksize_bytes = 1024 * kMiB;
  options.mem_limit_bytes = 16 * kMiB;
  const auto device = make(options);
  constexpr std::uint64_t kSmall = 5600;
  for (std::uint64_t i = 0; i < kSmall; ++i) {
    ASSERT_EQ(device->write(i * 4096, page_of_object(50, i)), Errc::ok);
  }
  std::uint64_t large = 0;
  while (device->write((kSmall + large) * 4096, page_of_object(2000, large)) == Errc::ok) {
    ++large;
  }
  for (std::uint64_t i = 0; i < kSmall; i += 2) {
    ASSERT_EQ(device->discard(i * 4096, 4096), Errc::ok);
  }
  std::uint64_t holes = 0;
  for (std::uint64_t i = 0; i < large; i += 32, ++holes) {
    ASSERT_EQ(device->discard((kSmall + i) * 4096, 4096), Errc::ok);
  }
  for (std::uint64_t i = 0; i < holes; ++i) {
    ASSERT_EQ(device->write((200000 + i) * 4096, page_of_object(2000, 777 + i)), Errc::ok) << i;
  }
}

TEST(Device, discarded_data_gives_its_memory_back) {
  const auto device = make(std::uint64_t{1} << 30);
  const std::uint64_t table_before = device->stats().table_bytes;
  for (std::uint64_t offset = 0; offset < 64 * kMiB; offset += kMiB) {
    ASSERT_EQ(device->write(offset, random_bytes(kMiB, offset)), Errc::ok);
  }
  EXPECT_GE(device->stats().mem_used_total, 64 * kMiB);
  EXPECT_EQ(device->stats().table_bytes, table_before + 64 * kMiB / 512);
  // In pieces, so that stretches become empty by and by.
  for (std::uint64_t offset = 0; offset < 64 * kMiB; offset += 65536) {
    ASSERT_EQ(device->discard(offset, 65536), Errc::ok);
  }
  EXPECT_LE(device->stats().mem_used_total, 2 * kMiB);
  EXPECT_EQ(device->stats().table_bytes, table_before);
}

TEST(Device, compact_packs_what_scattered_discards_leave) {
  DeviceOptions options;
  options.disksize_bytes = 256 * kMiB;
  options.background = false;
  const auto device = make(options);
  constexpr std::uint64_t kPages = 16384;
  for (std::uint64_t i = 0; i < kPages; ++i) {
    ASSERT_EQ(
        device->write(i * 4096, i % 8 == 7 ? random_bytes(4096, i) : compressible_bytes(4096, i)),
        Errc::ok);
  }
  for (std::uint64_t i = 0; i < kPages; ++i) {
    if (i % 4 != 3) {
      ASSERT_EQ(device->discard(i * 4096, 4096), Errc::ok);
    }
  }
  const DeviceStats before = device->stats();
  EXPECT_GT(before.mem_used_total, before.compr_data_size * 2);
  const std::uint64_t freed = device->compact();
  const DeviceStats after = device->stats();
  EXPECT_EQ(after.compr_data_size, before.compr_data_size);
  EXPECT_EQ(freed, before.mem_used_total - after.mem_used_total);
  EXPECT_EQ(after.pages_compacted, freed / 4096);
  EXPECT_LE(after.mem_used_total, after.compr_data_size * 105 / 100 + 2 * kMiB);
  for (std::uint64_t i = 3; i < kPages; i += 4) {
    ASSERT_EQ(read_back(*device, i * 4096, 4096),
              i % 8 == 7 ? random_bytes(4096, i) : compressible_bytes(4096, i));
  }
  EXPECT_EQ(device->compact(), 0U);
}

TEST(Queue, a_batch_completes_and_is_delivered_by_reap_alone) {
  const auto device = make(kMiB);
  Queue queue(*device);
  EXPECT_EQ(queue.reap(), nullptr);
  Bytes data = compressible_bytes(8192, 1);
  Bytes out(8192);
  std::vector<Request> requests(5);
  requests[0] = {.op = Op::write, .offset = 0, .length = 8192, .buffer = data.data()};
  requests[1] = {.op = Op::flush};
  requests[2] = {.op = Op::read, .offset = 2 * kMiB, .length = 4096, .buffer = out.data()};
  requests[3] = {.op = Op::discard, .offset = 65536, .length = 4096};
  requests[4] = {.op = static_cast<Op>(99)};
  std::vector<Request*> batch;
  for (auto& request : requests) {
    request.user_data = batch.size();
    batch.push_back(&request);
  }
  queue.submit(batch);
  std::vector<bool> seen(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Request* const done = queue.reap();
    ASSERT_NE(done, nullptr);
    EXPECT_FALSE(seen.at(done->user_data));
    seen.at(done->user_data) = true;
  }
  EXPECT_EQ(queue.reap(), nullptr);
  EXPECT_EQ(requests[0].status, Errc::ok);
  EXPECT_EQ(requests[1].status, Errc::ok);
  EXPECT_EQ(requests[2].status, Errc::out_of_range);
  EXPECT_EQ(requests[3].status, Errc::ok);
  EXPECT_EQ(requests[4].status, Errc::invalid_argument);
  Request read = {.op = Op::read, .offset = 0, .length = 8192, .buffer = out.data()};
  Request* one = &read;
  queue.submit({&one, 1});
  EXPECT_EQ(queue.reap(), &read);
  EXPECT_EQ(out, data);
}

}  // namespace
}  // namespace uzram
