// Everything here changes a whole process, so each case has a child of its own.
#include "os/swap_fitness.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/memory_file.hpp"
#include "os/mounts.hpp"
#include "os/proc_text.hpp"
#include "support/loop_device.hpp"
#include "support/sanitizer.hpp"
#include "support/temporary_folder.hpp"

namespace uzram::os {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// What a child says: nothing when all is well, "skip: ..." or what is wrong.
std::string in_child(const std::function<std::string()>& work) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return "no pipe";
  }
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    const std::string said = work();
    (void)!::write(ends[1], said.data(), said.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string said;
  char room[512];
  for (ssize_t got = 0; (got = ::read(ends[0], room, sizeof room)) > 0;) {
    said.append(room, static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || status != 0) {
    return said + " the child failed, status " + std::to_string(status);
  }
  return said;
}

void expect_well(const std::function<std::string()>& work) {
  const std::string said = in_child(work);
  if (said.starts_with("skip: ")) {
    GTEST_SKIP() << said.substr(6);
  }
  EXPECT_EQ(said, "");
}

// What root of a restricted container may lack is no failure of ours.
std::string skip_or_fail(const Error& error) {
  const bool lacks = error.saved_errno == EPERM || error.saved_errno == EACCES ||
                     error.code == Errc::unsupported ||
                     (error.saved_errno == ENOMEM && ::geteuid() != 0);
  return (lacks ? "skip: " : "") + error.message;
}

// The number after `key` in the part of smaps of the mapping that begins at `address`; in KiB.
std::uint64_t smaps_kib(const void* address, std::string_view key) {
  const std::string text = slurp("/proc/self/smaps").value_or("");
  char begin[32];
  std::snprintf(begin, sizeof begin, "%lx-", reinterpret_cast<unsigned long>(address));
  const std::size_t mapping = ("\n" + text).find("\n" + std::string(begin));
  const std::size_t at = text.find("\n" + std::string(key) + ":", mapping);
  return at == std::string::npos
             ? 0
             : leading_number(std::string_view(text).substr(at + key.size() + 2)).value_or(0);
}

TEST(SwapFitness, locked_memory_covers_pools_which_can_still_grow_and_shrink) {
  if (test::kSanitized) {
    GTEST_SKIP() << "sanitizers make mlockall do nothing";
  }
  expect_well([]() -> std::string {
    if (const auto done = lock_memory(); !done) {
      return skip_or_fail(done.error());
    }
    if (!memory_is_locked()) {
      return "it does not know that it is locked";
    }
    auto file = MemoryFile::create("locked");
    constexpr std::uint64_t kSize = 64 * kMiB;
    if (!file || file->resize(kSize) != Errc::ok) {
      return "no memory file";
    }
    const Mapping mapping = file->map(0, kSize, kLargePage);
    if (mapping.data() == nullptr) {
      return "no mapping";
    }
    // Nothing is taken before it is asked for.
    if (file->resident_bytes() != 0) {
      return "mapping a file takes its memory";
    }
    if (file->take_room(mapping.data() + 4 * kMiB, 4 * kMiB, kMiB) != Errc::ok) {
      return "no room";
    }
    std::uint64_t taken = kMiB;
    const Errc large = file->take_large_page(mapping.data() + 8 * kMiB);
    if (large == Errc::ok) {
      taken += kLargePage;
    } else if (file->take_room(mapping.data() + 8 * kMiB, 8 * kMiB, kLargePage) == Errc::ok) {
      taken += kLargePage;
    }
    if (smaps_kib(mapping.data(), "Locked") != taken / 1024) {
      return "locked " + std::to_string(smaps_kib(mapping.data(), "Locked")) + " KiB of " +
             std::to_string(taken / 1024);
    }
    // Part of a large page, then all of it.
    if (file->give_back(8 * kMiB, kMiB) != Errc::ok || file->resident_bytes() != taken - kMiB) {
      return "half a large page does not go back";
    }
    if (file->give_back(4 * kMiB, 8 * kMiB) != Errc::ok || file->resident_bytes() != 0) {
      return "room does not go back";
    }
    const Mapping memory = reserve_private(kMiB);
    if (memory.data() == nullptr || take_private_room(memory.data(), kMiB / 2) != Errc::ok) {
      return "no private room";
    }
    if (smaps_kib(memory.data(), "Locked") < kMiB / 2 / 1024) {
      return "private room is not locked";
    }
    return "";
  });
}

TEST(SwapFitness, locked_memory_holds_the_program) {
  if (test::kSanitized) {
    GTEST_SKIP() << "sanitizers make mlockall do nothing";
  }
  expect_well([]() -> std::string {
    if (const auto done = lock_memory(); !done) {
      return skip_or_fail(done.error());
    }
    // The mapping that has this function's code.
    const auto here = reinterpret_cast<std::uintptr_t>(&smaps_kib);
    std::string maps = slurp("/proc/self/maps").value_or("");
    for (std::string_view rest = maps; !rest.empty();) {
      std::string_view line = take_until(rest, '\n');
      const auto begin = std::strtoul(std::string(take_until(line, '-')).c_str(), nullptr, 16);
      const auto end = std::strtoul(std::string(take_until(line, ' ')).c_str(), nullptr, 16);
      if (begin <= here && here < end) {
        const auto* const address = reinterpret_cast<const void*>(begin);
        // The system divides what several processes have by their number before it adds that up.
        return smaps_kib(address, "Rss") * 1024 == end - begin &&
                       smaps_kib(address, "Locked") == smaps_kib(address, "Pss")
                   ? ""
                   : "not all of the code is locked";
      }
    }
    return "the code is not mapped";
  });
}

TEST(SwapFitness, a_stack_is_taken_ahead) {
  if (test::kSanitized) {
    GTEST_SKIP() << "sanitizers make mlockall do nothing";
  }
  std::uint64_t before = 0;
  std::uint64_t after = 0;
  std::thread([&] {
    // Page faults of this thread alone.
    const auto faults = [] {
      const std::string text = slurp("/proc/thread-self/stat").value_or("");
      std::string_view rest = text;
      rest.remove_prefix(std::min(text.rfind(')') + 1, text.size()));
      for (int field = 2; field < 10; ++field) {
        take_until(rest, ' ');
      }
      return leading_number(rest).value_or(0);
    };
    (void)faults();
    before = faults();
    take_stack();
    after = faults();
    take_stack();
    EXPECT_LE(faults(), after + 2);
  }).join();
  EXPECT_GE(after, before);
}

constexpr std::uint64_t kMemallocNoio = 0x00080000;

// The kernel's flags of a thread of this process.
std::uint64_t flags_of(const std::string& thread) {
  const std::string text = slurp("/proc/self/task/" + thread + "/stat").value_or("");
  std::string_view rest = text;
  rest.remove_prefix(std::min(text.rfind(')') + 2, text.size()));
  for (int field = 3; field < 9; ++field) {
    take_until(rest, ' ');
  }
  return leading_number(rest).value_or(0);
}

TEST(SwapFitness, an_io_flusher_hands_that_on_to_threads_it_starts) {
  expect_well([]() -> std::string {
    if (is_io_flusher()) {
      return "it is one from the start";
    }
    const auto done = mark_io_flusher();
    if (!done) {
      return done.error().message.find("CAP_SYS_RESOURCE") != std::string::npos ||
                     done.error().code == Errc::unsupported
                 ? skip_or_fail(done.error())
                 : "the message does not say what to do: " + done.error().message;
    }
    std::string wrong;
    if (!is_io_flusher() || (flags_of(std::to_string(::getpid())) & kMemallocNoio) == 0) {
      wrong = "the thread itself is none";
    }
    std::thread([&wrong] {
      if (!is_io_flusher() || (flags_of(std::to_string(::gettid())) & kMemallocNoio) == 0) {
        wrong = "a thread started later is none";
      }
    }).join();
    return wrong;
  });
}

TEST(SwapFitness, the_oom_killer_is_told_to_leave_it_alone) {
  expect_well([]() -> std::string {
    if (const auto done = protect_from_oom_killer(); !done) {
      return done.error().message.find("OOMScoreAdjust") != std::string::npos
                 ? skip_or_fail(done.error())
                 : "the message does not say what to do: " + done.error().message;
    }
    const std::string value = slurp("/proc/self/oom_score_adj").value_or("");
    return value == "-1000\n" ? "" : "oom_score_adj is " + value;
  });
}

TEST(SwapFitness, mounts_of_its_own_are_refused_to_a_process_with_threads) {
  expect_well([]() -> std::string {
    int ends[2];
    if (::pipe(ends) != 0) {
      return "no pipe";
    }
    std::thread other([&ends] {
      char byte = 0;
      (void)!::read(ends[0], &byte, 1);
    });
    const auto done = own_mount_namespace({});
    ::close(ends[1]);
    other.join();
    return !done && done.error().code == Errc::invalid_argument ? "" : "it is not refused";
  });
}

// A file system on a block device, mounted in a mount namespace of the process that makes it.
struct MountedDisk {
  std::unique_ptr<test::LoopDevice> disk;
  test::TemporaryFolder folder;
  std::string point = folder / "mounted";

  // Says why there is none.
  std::string make() {
    auto made = test::LoopDevice::make(16 * kMiB);
    if (!made) {
      return "skip: " + made.error().message;
    }
    disk = std::move(*made);
    const std::string format = "mkfs.ext4 -q " + disk->path() + " >/dev/null 2>&1";
    if (std::system(format.c_str()) != 0) {  // NOLINT(cert-env33-c): our own words
      return "skip: mkfs.ext4 does not work here";
    }
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      return "skip: it may not have mounts of its own";
    }
    if (::mkdir(point.c_str(), 0700) != 0 ||
        ::mount(disk->path().c_str(), point.c_str(), "ext4", 0, nullptr) != 0) {
      return "skip: ext4 cannot be mounted here";
    }
    return "";
  }
  [[nodiscard]] bool is_free() const {
    const int fd = ::open(disk->path().c_str(), O_RDONLY | O_EXCL | O_CLOEXEC);
    if (fd >= 0) {
      ::close(fd);
    }
    return fd >= 0;
  }
};

bool has_mount(const std::string& point, const std::string& process = "self") {
  const auto mounts = parse_mounts(slurp("/proc/" + process + "/mountinfo").value_or(""));
  return std::ranges::find(mounts, point, &Mount::point) != mounts.end();
}

// Runs `work` in a child that stays until the caller has looked at what the host sees.
std::string while_child_stays(const std::function<std::string()>& work,
                              const std::function<std::string(const std::string& child)>& look) {
  int ready[2];
  int done[2];
  if (::pipe2(ready, O_CLOEXEC) != 0 || ::pipe2(done, O_CLOEXEC) != 0) {
    return "no pipe";
  }
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(done[1]);
    const std::string said = work();
    (void)!::write(ready[1], said.data(), said.size());
    ::close(ready[1]);
    char byte = 0;
    (void)!::read(done[0], &byte, 1);
    ::_exit(0);
  }
  ::close(ready[1]);
  std::string said;
  char room[512];
  for (ssize_t got = 0; (got = ::read(ready[0], room, sizeof room)) > 0;) {
    said.append(room, static_cast<std::size_t>(got));
  }
  if (said.empty()) {
    said = look(std::to_string(child));
  }
  ::close(done[1]);
  ::waitpid(child, nullptr, 0);
  return said;
}

// In a child that has mounted a disk.
void expect_well_with_disk(const std::function<std::string(MountedDisk&)>& work) {
  if (test::kHasThreadOfSanitizer) {
    GTEST_SKIP() << "mounts of its own need a process of one thread";
  }
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root";
  }
  expect_well([&]() -> std::string {
    MountedDisk mounted;
    std::string why = mounted.make();
    return why.empty() ? work(mounted) : why;
  });
}

TEST(SwapFitness, mounts_of_its_own_do_not_hold_disks_of_the_host) {
  expect_well_with_disk([](MountedDisk& mounted) -> std::string {
    return while_child_stays(
        [&]() -> std::string {
          if (::chdir(mounted.point.c_str()) != 0) {
            return "its folder cannot be the current one";
          }
          const std::vector<std::string> needed = {"/run/uzram/no-such.sock"};
          if (const auto done = own_mount_namespace(needed); !done) {
            return skip_or_fail(done.error());
          }
          return has_mount(mounted.point)               ? "the disk is still mounted"
                 : has_mount("/") && has_mount("/proc") ? ""
                                                        : "other mounts are missing";
        },
        [&](const std::string&) -> std::string {
          if (!has_mount(mounted.point) || mounted.is_free()) {
            return "the host's own mount is gone";
          }
          if (::umount(mounted.point.c_str()) != 0) {
            return "the host cannot unmount it";
          }
          return mounted.is_free() ? "" : "the disk is still held";
        });
  });
}

TEST(SwapFitness, mounts_of_its_own_do_not_see_what_the_host_mounts_later) {
  expect_well_with_disk([](MountedDisk& mounted) -> std::string {
    // The host's mounts are shared, as init makes them.
    if (::umount(mounted.point.c_str()) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_SHARED, nullptr) != 0) {
      return "skip: mounts cannot be shared";
    }
    return while_child_stays(
        [&]() -> std::string {
          const auto done = own_mount_namespace({});
          return done ? "" : skip_or_fail(done.error());
        },
        [&](const std::string& child) -> std::string {
          if (::mount(mounted.disk->path().c_str(), mounted.point.c_str(), "ext4", 0, nullptr) !=
              0) {
            return "the host cannot mount it";
          }
          const bool seen = has_mount(mounted.point, child);
          if (::umount(mounted.point.c_str()) != 0) {
            return "the host cannot unmount it";
          }
          return seen ? "the server sees the mount" : mounted.is_free() ? "" : "the disk is held";
        });
  });
}

TEST(SwapFitness, mounts_of_its_own_keep_what_is_needed) {
  expect_well_with_disk([](MountedDisk& mounted) -> std::string {
    // Needed lies on a mount within the disk's.
    const std::string inner = mounted.point + "/run";
    if (::mkdir(inner.c_str(), 0700) != 0 ||
        ::mount("none", inner.c_str(), "tmpfs", 0, nullptr) != 0) {
      return "skip: no tmpfs";
    }
    std::string said = in_child([&]() -> std::string {
      const std::vector<std::string> needed = {inner + "/new/control.sock"};
      if (const auto done = own_mount_namespace(needed); !done) {
        return skip_or_fail(done.error());
      }
      return has_mount(mounted.point) && has_mount(inner) ? "" : "they are gone";
    });
    ::umount(inner.c_str());
    ::umount(mounted.point.c_str());
    return said;
  });
}

TEST(SwapFitness, all_at_once_tells_what_it_lacks_and_what_to_do) {
  if (test::kHasThreadOfSanitizer) {
    GTEST_SKIP() << "mounts of its own need a process of one thread";
  }
  expect_well([]() -> std::string {
    for (const Error& error : make_swap_fit({})) {
      if (skip_or_fail(error).rfind("skip: ", 0) != 0) {
        return error.message;
      }
      if (error.message.find("; ") == std::string::npos) {
        return "it does not say what to do: " + error.message;
      }
    }
    return "";
  });
}

}  // namespace
}  // namespace uzram::os
