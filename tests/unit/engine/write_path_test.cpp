// What a write needs of the system while a reserve lasts: nothing. The process is ended by the
// kernel at any call but those that wake or await another thread.
#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uzram/device.hpp"

#include "allocation_count.hpp"
#include "base/random.hpp"
#include "os/swap_fitness.hpp"
#include "support/sanitizer.hpp"

namespace uzram {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr int kSkipped = 77;

// From now on any other call of this thread ends the process.
bool allow_nothing_but_futexes() {
  constexpr auto kAllowed = [](unsigned call) -> std::array<sock_filter, 2> {
    return {sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, 1, call},
            sock_filter{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
  };
  std::vector<sock_filter> filter = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)}};
  for (const unsigned call : {SYS_futex, SYS_sched_yield, SYS_exit_group}) {
    const auto pair = kAllowed(call);
    filter.insert(filter.end(), pair.begin(), pair.end());
  }
  filter.push_back({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS});
  sock_fprog program = {static_cast<unsigned short>(filter.size()), filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Writes as much as the reserve holds, all over the disk; what the child is to exit with.
int write_a_burst(const std::string& algorithm, Mode mode, bool checksum) {
  DeviceOptions options;
  options.disksize_bytes = 256 * kMiB;
  options.reserve_bytes = 8 * kMiB;
  options.algorithm = algorithm;
  options.mode = mode;
  options.checksum = checksum;
  auto device = Device::create(options);
  if (!device) {
    return 1;
  }
  std::vector<std::vector<std::byte>> pages;
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    // From same-filled over compressible to raw.
    std::vector<std::byte> page(4096);
    Random(seed).fill(std::span(page).first(seed * 64));
    pages.push_back(std::move(page));
  }
  // The stack, and what compressors and libraries make when they are first used.
  for (std::uint64_t seed = 0; seed < pages.size(); ++seed) {
    if ((*device)->write(seed * 4096, pages[seed]) != Errc::ok) {
      return 2;
    }
  }
  if (!allow_nothing_but_futexes()) {
    return kSkipped;
  }
  const std::size_t allocations = test::allocation_count();
  for (std::uint64_t number = 0; number < 3500; ++number) {
    const std::uint64_t offset = (number * 73 % 65536 + 1000) * 4096 % options.disksize_bytes;
    if ((*device)->write(offset, pages[number % pages.size()]) != Errc::ok) {
      ::_exit(3);
    }
  }
  ::_exit(test::allocation_count() == allocations ? 0 : 4);
}

class WritePath : public ::testing::TestWithParam<const char*> {};

TEST_P(WritePath, with_a_reserve_needs_no_call_of_the_system_and_no_heap) {
  if (test::kSanitized) {
    GTEST_SKIP() << "sanitizers call the system themselves";
  }
  constexpr std::array<std::pair<Mode, bool>, 3> kScenes = {
      {{Mode::nowait, false}, {Mode::automatic, false}, {Mode::nowait, true}}};
  for (const auto& [mode, checksum] : kScenes) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::_exit(write_a_burst(GetParam(), mode, checksum));
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == kSkipped) {
      GTEST_SKIP() << "calls cannot be filtered here";
    }
    EXPECT_EQ(status, 0) << mode_name(mode)
                         << (WIFSIGNALED(status) ? ": ended by signal " : ": status ")
                         << (WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  }
}

// The KiB after `key` of all mappings of pools.
std::uint64_t kib_of_pools(const std::string& key) {
  std::ifstream smaps("/proc/self/smaps");
  std::uint64_t sum = 0;
  bool of_pool = false;
  for (std::string line; std::getline(smaps, line);) {
    if (line.find('-') < line.find(' ') && line.find(':') > line.find(' ')) {
      of_pool = line.find("uzram-pool") != std::string::npos;
    } else if (of_pool && line.starts_with(key + ":")) {
      sum += std::stoull(line.substr(key.size() + 1));
    }
  }
  return sum;
}

// What is not mapped is not locked, and may be swapped out to the device it belongs to.
TEST(LockedMemory, covers_all_of_a_pool_also_after_much_of_it_has_gone_back) {
  if (test::kSanitized) {
    GTEST_SKIP() << "sanitizers make mlockall do nothing";
  }
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!os::lock_memory()) {
      ::_exit(kSkipped);
    }
    DeviceOptions options;
    options.disksize_bytes = 256 * kMiB;
    const auto device = Device::create(options);
    std::vector<std::byte> data(kMiB);
    Random random(1);
    for (std::uint64_t at = 0; device && at < options.disksize_bytes; at += kMiB) {
      random.fill(data);
      (void)(*device)->write(at, data);
    }
    for (std::uint64_t at = 0; device && at < options.disksize_bytes; at += 8 * kMiB) {
      (void)(*device)->discard(at, 7 * kMiB + kMiB / 2);
    }
    (void)(*device)->compact();
    const std::uint64_t used = (*device)->stats().mem_used_total / 1024;
    ::_exit(used != 0 && kib_of_pools("Locked") >= used ? 0 : 5);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kSkipped) {
    GTEST_SKIP() << "memory cannot be locked here";
  }
  EXPECT_EQ(status, 0);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, WritePath, ::testing::Values("lz4", "zstd"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace uzram
