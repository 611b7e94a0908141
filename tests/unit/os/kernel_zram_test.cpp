#include "os/kernel_zram.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/block_device.hpp"

namespace uzram::os {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::size_t kPage = 4096;

// Other tests make devices too, and a number is used again at once: which device a name stands for.
std::string sequence_of(const std::string& name) {
  std::ifstream file("/sys/block/" + name + "/diskseq");
  std::string sequence;
  file >> sequence;
  return sequence;
}

// What /proc/PID/status says after `field`.
std::string status_field(pid_t pid, const std::string& field) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, field.size() + 1, field + ":") == 0) {
      return line.substr(field.size() + 2);
    }
  }
  return {};
}

bool comes_true(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

// The children of this process that are keepers.
std::vector<pid_t> keepers() {
  std::vector<pid_t> found;
  std::error_code ended;
  for (fs::directory_iterator entry("/proc", ended); entry != fs::directory_iterator();
       entry.increment(ended)) {
    const std::string name = entry->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) {
      continue;
    }
    const pid_t pid = static_cast<pid_t>(std::stol(name));
    if (status_field(pid, "PPid") == std::to_string(::getpid()) &&
        status_field(pid, "Name") == "uzram-zram") {
      found.push_back(pid);
    }
  }
  return found;
}

// What a keeper has open beside its one socket, /dev/null and the file to remove its device by.
std::string held_needlessly(pid_t keeper) {
  std::string held;
  int sockets = 0;
  for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(keeper) + "/fd")) {
    const std::string target = fs::read_symlink(entry.path()).string();
    const bool socket = target.compare(0, 7, "socket:") == 0;
    sockets += socket ? 1 : 0;
    const bool needed = (socket && sockets == 1) || target == "/dev/null" ||
                        target == "/sys/class/zram-control/hot_remove" ||
                        target == "/sys/devices/virtual/zram-control/hot_remove";
    held += needed ? "" : target + " ";
  }
  return held + (sockets == 0 ? "no socket" : "");
}

class KernelZramTest : public testing::Test {
 protected:
  void SetUp() override {
    if (auto probe = ZramKeeper::start(); !probe) {
      GTEST_SKIP() << probe.error().message;
    }
  }
};

using FreeAligned = decltype(&std::free);

std::unique_ptr<std::byte, FreeAligned> page_of(std::byte value) {
  auto* const bytes = static_cast<std::byte*>(std::aligned_alloc(kPage, kPage));
  std::fill_n(bytes, kPage, value);
  return {bytes, &std::free};
}

TEST_F(KernelZramTest, a_device_holds_what_is_written_and_is_gone_afterwards) {
  std::string name;
  std::string sequence;
  {
    auto device = KernelZram::create("lzo-rle", std::nullopt, 16 * kMiB);
    ASSERT_TRUE(device) << device.error().message;
    name = (*device)->name();
    sequence = sequence_of(name);
    EXPECT_FALSE(sequence.empty());
    EXPECT_EQ((*device)->path(), "/dev/" + name);
    EXPECT_EQ(zram_algorithm(name), "lzo-rle");
    auto page = page_of(std::byte{0});
    for (std::size_t i = 0; i < kPage; ++i) {
      page.get()[i] = static_cast<std::byte>(i / 64);
    }
    ASSERT_EQ(::pwrite((*device)->fd(), page.get(), kPage, 8 * kPage), ssize_t{kPage});
    const ZramMmStat stat = (*device)->mm_stat();
    EXPECT_EQ(stat.orig_data_size, kPage);
    EXPECT_GT(stat.compr_data_size, 0U);
    EXPECT_LT(stat.compr_data_size, kPage);
    EXPECT_GE(stat.mem_used_max, stat.compr_data_size);
    auto same = page_of(std::byte{7});
    ASSERT_EQ(::pwrite((*device)->fd(), same.get(), kPage, 0), ssize_t{kPage});
    EXPECT_EQ((*device)->mm_stat().same_pages, 1U);
    ASSERT_EQ(::pread((*device)->fd(), same.get(), kPage, 8 * kPage), ssize_t{kPage});
    EXPECT_TRUE(std::equal(page.get(), page.get() + kPage, same.get()));
    EXPECT_EQ(discard_range((*device)->fd(), false, 0, 16 * kMiB), 0);
    EXPECT_EQ((*device)->mm_stat().orig_data_size, 0U);
    EXPECT_TRUE(reset_zram_mem_used_max(name));
  }
  EXPECT_NE(sequence_of(name), sequence);
  EXPECT_TRUE(keepers().empty());
}

TEST_F(KernelZramTest, a_killed_process_leaves_no_device) {
  for (const int signal : {SIGKILL, SIGTERM, SIGSEGV}) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::prctl(PR_SET_DUMPABLE, 0);
      std::signal(SIGSEGV, SIG_DFL);
      auto device = KernelZram::create("lzo", std::nullopt, kMiB);
      const std::string name = device ? (*device)->name() : std::string("?");
      [[maybe_unused]] const ssize_t written = ::write(pipe[1], name.data(), name.size());
      while (true) {
        ::pause();
      }
    }
    std::array<char, 32> text{};
    const ssize_t got = ::read(pipe[0], text.data(), text.size());
    ::close(pipe[0]);
    ::close(pipe[1]);
    ASSERT_GT(got, 0);
    const std::string name(text.data(), static_cast<std::size_t>(got));
    const std::string sequence = sequence_of(name);
    EXPECT_FALSE(sequence.empty()) << name;
    ASSERT_EQ(::kill(child, signal), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_TRUE(comes_true([&] { return sequence_of(name) != sequence; })) << name << " is left";
  }
}

TEST_F(KernelZramTest, the_keeper_keeps_no_file_and_no_signal_ends_it) {
  auto device = KernelZram::create("lzo", std::nullopt, kMiB);
  ASSERT_TRUE(device) << device.error().message;
  const auto children = keepers();
  ASSERT_EQ(children.size(), 1U);
  const pid_t keeper = children.front();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    ASSERT_EQ(::kill(keeper, signal), 0);
  }
  EXPECT_EQ(::getsid(keeper), keeper);
  EXPECT_EQ(fs::read_symlink("/proc/" + std::to_string(keeper) + "/cwd"), "/");
  EXPECT_EQ(held_needlessly(keeper), "");
  int status = 0;
  EXPECT_EQ(::waitpid(keeper, &status, WNOHANG), 0);
}

// From now on close_range() fails in this process and its children.
bool refuse_close_range() {
  std::array<sock_filter, 4> filter = {{
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_close_range},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSYS},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  }};
  const sock_fprog program = {static_cast<unsigned short>(filter.size()), filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// In a child, as a filter stays.
TEST_F(KernelZramTest, the_keeper_keeps_no_file_where_close_range_is_refused) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // Many, and one beyond what may be opened from now on.
    constexpr int kHigh = 900;
    constexpr int kMany = 300;
    bool ready = ::dup2(pipe[1], kHigh) == kHigh;
    for (int i = 0; i < kMany; ++i) {
      ready = ready && ::dup(pipe[1]) >= 0;
    }
    rlimit limit{};
    ready = ready && ::getrlimit(RLIMIT_NOFILE, &limit) == 0;
    limit.rlim_cur = kHigh / 2;
    ready = ready && ::setrlimit(RLIMIT_NOFILE, &limit) == 0 && refuse_close_range();
    std::string found = "cannot prepare";
    if (ready) {
      const auto keeper = ZramKeeper::start();
      found = keeper ? held_needlessly((*keeper)->pid()) : keeper.error().message;
    }
    [[maybe_unused]] const ssize_t written = ::write(pipe[1], found.data(), found.size());
    ::_exit(0);
  }
  ::close(pipe[1]);
  std::string found(4096, ' ');
  const ssize_t got = ::read(pipe[0], found.data(), found.size());
  ::close(pipe[0]);
  ASSERT_GE(got, 0);
  found.resize(static_cast<std::size_t>(got));
  EXPECT_EQ(found, "");
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
}

TEST_F(KernelZramTest, a_copy_of_its_socket_in_another_child_does_not_keep_the_device) {
  auto device = KernelZram::create("lzo", std::nullopt, kMiB);
  ASSERT_TRUE(device) << device.error().message;
  const std::string name = (*device)->name();
  const std::string sequence = sequence_of(name);
  const int device_fd = (*device)->fd();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::close(device_fd);
    while (true) {
      ::pause();
    }
  }
  // An open device waits for the child to close it.
  *device = nullptr;
  EXPECT_NE(sequence_of(name), sequence);
  ::kill(child, SIGKILL);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
}

TEST_F(KernelZramTest, an_unknown_algorithm_is_refused_with_those_there_are) {
  for (const std::string algorithm : {"brotli", "", "lz4 lzo"}) {
    const auto device = KernelZram::create(algorithm, std::nullopt, kMiB);
    ASSERT_FALSE(device) << algorithm;
    EXPECT_EQ(device.error().code, Errc::unsupported);
    EXPECT_NE(device.error().message.find('"' + algorithm + '"'), std::string::npos)
        << device.error().message;
    EXPECT_NE(device.error().message.find("lzo"), std::string::npos) << device.error().message;
    EXPECT_TRUE(keepers().empty());
  }
}

TEST_F(KernelZramTest, a_size_that_the_kernel_refuses_leaves_no_device) {
  const auto device = KernelZram::create("lzo", std::nullopt, 0);
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code, Errc::invalid_argument);
  EXPECT_NE(device.error().message.find("disksize"), std::string::npos) << device.error().message;
  EXPECT_TRUE(keepers().empty());
}

TEST_F(KernelZramTest, a_level_is_given_to_those_that_have_levels) {
  const auto known = KernelZram::algorithms();
  ASSERT_TRUE(known) << known.error().message;
  const bool has_parameters = [] {
    const auto keeper = ZramKeeper::start();
    return keeper && fs::exists("/sys/block/" + (*keeper)->name() + "/algorithm_params");
  }();
  if (std::find(known->begin(), known->end(), "lz4") == known->end()) {
    GTEST_SKIP() << "this kernel's zram has no lz4";
  }
  const auto device = KernelZram::create("lz4", 3, kMiB);
  EXPECT_EQ(device.has_value(), has_parameters);
  if (!device) {
    EXPECT_EQ(device.error().code, Errc::unsupported) << device.error().message;
  }
  const auto refused = KernelZram::create("lzo", 3, kMiB);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("level 3: lzo has no levels"), std::string::npos)
      << refused.error().message;
}

TEST_F(KernelZramTest, the_list_of_algorithms_is_sorted_and_without_brackets) {
  const auto names = KernelZram::algorithms();
  ASSERT_TRUE(names) << names.error().message;
  ASSERT_FALSE(names->empty());
  EXPECT_TRUE(std::is_sorted(names->begin(), names->end()));
  for (const std::string& name : *names) {
    EXPECT_EQ(name.find_first_of("[] "), std::string::npos) << name;
    EXPECT_TRUE(KernelZram::create(name, std::nullopt, kMiB).has_value()) << name;
  }
}

TEST_F(KernelZramTest, devices_come_and_go_in_many_threads_at_once) {
  std::atomic<int> made = 0;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&made] {
      for (int round = 0; round < 5; ++round) {
        const auto device = KernelZram::create("lzo", std::nullopt, kMiB);
        made += device.has_value() ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(made, 20);
  EXPECT_TRUE(keepers().empty());
}

TEST(ZramStat, there_is_none_of_a_device_that_is_no_zram) {
  EXPECT_FALSE(zram_mm_stat("loop0").has_value());
  EXPECT_EQ(zram_algorithm("loop0"), "");
  EXPECT_FALSE(reset_zram_mem_used_max("loop0"));
}

}  // namespace
}  // namespace uzram::os
