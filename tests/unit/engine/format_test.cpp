// Another process maps a device's two memory files read-only and reads every page back by them.
#include "engine/format.hpp"

#include <string>
#include <tuple>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uzram/device.hpp"

#include "base/random.hpp"
#include "codec/codec.hpp"
#include "engine/device_impl.hpp"
#include "support/eventually.hpp"
#include "support/hostile.hpp"
#include "support/unusual_pages.hpp"

namespace uzram {
namespace {

using Bytes = std::vector<std::byte>;

// Runs image_reader on the device and returns what it wrote.
Bytes read_in_another_process(const Device& device) {
  int out[2];
  EXPECT_EQ(::pipe2(out, O_CLOEXEC), 0);
  const std::string table = std::to_string(device.table_fd());
  const std::string pool = std::to_string(device.pool_fd());
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(out[1], STDOUT_FILENO);
    ::fcntl(device.table_fd(), F_SETFD, 0);
    ::fcntl(device.pool_fd(), F_SETFD, 0);
    ::execl(UZRAM_IMAGE_READER, "image_reader", table.c_str(), pool.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(out[1]);
  Bytes all;
  Bytes piece(1 << 16);
  ssize_t got = 0;
  while ((got = ::read(out[0], piece.data(), piece.size())) > 0) {
    all.insert(all.end(), piece.begin(), piece.begin() + got);
  }
  ::close(out[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  return all;
}

class Format : public ::testing::TestWithParam<std::tuple<std::string, bool>> {};

TEST_P(Format, a_second_process_reads_every_page_back_by_table_and_pool_alone) {
  DeviceOptions options;
  options.disksize_bytes = std::uint64_t{24} << 20;
  options.algorithm = std::get<0>(GetParam());
  options.checksum = std::get<1>(GetParam());
  auto device = Device::create(options);
  ASSERT_TRUE(device) << device.error().message;
  Bytes disk(options.disksize_bytes);
  Random random(11);
  const auto hostile = test::hostile_pages(4096, 3);
  // The stretch in the middle stays empty, some pages are written twice, some dropped.
  for (int i = 0; i < 6000; ++i) {
    const std::uint64_t page = random.below(disk.size() / 4096);
    if (page / engine::kStretchPages == 6) {
      continue;
    }
    std::byte* const content = disk.data() + page * 4096;
    switch (random.below(5)) {
      case 0:
        std::fill_n(content, 4096, std::byte{0});
        ASSERT_EQ((*device)->discard(page * 4096, 4096), Errc::ok);
        continue;
      case 1:
        random.fill({content, 4096});
        break;
      default:
        std::copy_n(hostile[random.below(hostile.size())].bytes.data(), 4096, content);
        random.fill({content + 512, 64});
    }
    ASSERT_EQ((*device)->write(page * 4096, {content, 4096}), Errc::ok);
    if (i == 4000) {
      (*device)->compact();
    }
  }
  EXPECT_EQ(read_in_another_process(**device), disk);
}

TEST(FormatWithRecipes, a_second_process_reads_what_trained_tables_have_compressed) {
  DeviceOptions options;
  options.disksize_bytes = std::uint64_t{4} << 20;
  options.algorithm = "pagez";
  options.train = true;
  auto device = Device::create(options);
  ASSERT_TRUE(device) << device.error().message;
  (*device)->impl().training->set_eager(-1);
  Bytes disk(options.disksize_bytes);
  const auto pages = test::unusual_pages(200, 1);
  // All of it by the program's tables, then parts of it by two generations.
  std::uint64_t at = 0;
  EXPECT_TRUE(test::eventually([&] {
    for (int i = 0; i < 64; ++i, ++at) {
      const std::uint64_t page = at % (at < 1024 ? 1024 : 300);
      const Bytes& content = pages[at % pages.size()];
      std::copy(content.begin(), content.end(), disk.data() + page * 4096);
      EXPECT_EQ((*device)->write(page * 4096, content), Errc::ok);
    }
    return at > 2000 && (*device)->stats().generations >= 2;
  }));
  EXPECT_EQ(read_in_another_process(**device), disk);
}

std::vector<std::string> codec_names() {
  std::vector<std::string> names;
  for (const auto& info : codec::registry()) {
    names.emplace_back(info.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Codecs, Format,
                         ::testing::Combine(::testing::ValuesIn(codec_names()), ::testing::Bool()),
                         [](const auto& param_info) {
                           return std::get<0>(param_info.param) +
                                  (std::get<1>(param_info.param) ? "_with_checksums" : "");
                         });

}  // namespace
}  // namespace uzram
