#include "os/swap_fitness.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "os/descriptor.hpp"
#include "os/mapped_files.hpp"
#include "os/memory_file.hpp"
#include "os/mounts.hpp"
#include "os/proc_text.hpp"

namespace uzram::os {
namespace {

// PR_SET_IO_FLUSHER of linux/prctl.h.
constexpr int kSetIoFlusher = 57;
constexpr int kGetIoFlusher = 58;

std::atomic<bool> locked{false};

Error failure(std::string_view tried, int errno_value, std::string_view advice) {
  Error error = system_error(tried, errno_value);
  error.message.append("; ").append(advice);
  return error;
}

// Takes the pages of program and libraries: of what they write, copies of their own.
int take_program_pages() {
  for (const MappedRange& range : program_ranges(slurp("/proc/self/maps").value_or(""))) {
    if (const int failed =
            make_present(reinterpret_cast<std::byte*>(range.begin), range.end - range.begin,
                         range.writable ? Touch::write : Touch::read);
        failed != 0) {
      return failed;
    }
  }
  return 0;
}

std::vector<Mount> own_mounts() { return parse_mounts(slurp("/proc/self/mountinfo").value_or("")); }

// What must stay mounted: each mount on the way to one of `paths`.
std::set<std::uint64_t> mounts_on_the_way(const std::vector<Mount>& mounts,
                                          const std::set<std::string>& paths) {
  std::set<std::uint64_t> ids;
  for (const std::string& path : paths) {
    auto id = mount_id_of(path);
    while (id && ids.insert(*id).second) {
      const auto at = std::ranges::find(mounts, *id, &Mount::id);
      id = at == mounts.end() ? std::nullopt : std::optional(at->parent);
    }
  }
  return ids;
}

// The mounts of `mounts` that are to go, in their order.
std::vector<Mount> mounts_to_leave(const std::vector<Mount>& mounts,
                                   std::span<const std::string> needed) {
  std::set<std::string> paths(needed.begin(), needed.end());
  paths.insert("/");
  for (const MappedRange& range : program_ranges(slurp("/proc/self/maps").value_or(""))) {
    if (range.path.starts_with('/')) {
      paths.insert(range.path);
    }
  }
  const std::set<std::uint64_t> kept = mounts_on_the_way(mounts, paths);
  std::set<dev_t> kept_disks = {0};
  for (const Mount& mount : mounts) {
    if (kept.contains(mount.id)) {
      kept_disks.insert(disk_of(mount));
    }
  }
  std::vector<Mount> leaving;
  std::ranges::copy_if(mounts, std::back_inserter(leaving), [&](const Mount& mount) {
    return !kept.contains(mount.id) && !kept_disks.contains(disk_of(mount));
  });
  return leaving;
}

Result<void> leave_disks(std::span<const std::string> needed) {
  if (!mount_id_of("/")) {
    return Error{Errc::unsupported, 0,
                 "cannot leave the mounts of disks: this kernel does not tell which mount holds a "
                 "file (statx); use Linux 5.8 or later"};
  }
  const std::vector<Mount> leaving = mounts_to_leave(own_mounts(), needed);
  const auto is_leaving = [&](std::optional<std::uint64_t> id) {
    return id && std::ranges::find(leaving, *id, &Mount::id) != leaving.end();
  };
  if (is_leaving(mount_id_of(".")) && ::chdir("/") != 0) {
    return failure("cannot leave the current folder", errno, "start the server in another one");
  }
  int failed = 0;
  // What is mounted in others, or over them, comes behind them.
  for (auto mount = leaving.rbegin(); mount != leaving.rend(); ++mount) {
    if (mount_id_of(mount->point) == mount->id &&
        ::umount2(mount->point.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0) {
      failed = errno;
    }
  }
  std::string left;
  for (const Mount& mount : own_mounts()) {
    if (is_leaving(mount.id)) {
      left += (left.empty() ? "" : ", ") + mount.point;
    }
  }
  if (!left.empty()) {
    return failure("cannot leave the mounts " + left, failed != 0 ? failed : EBUSY,
                   "stop the server before these are unmounted");
  }
  return {};
}

bool has_one_thread() {
  const std::string status = slurp("/proc/self/status").value_or("");
  constexpr std::string_view kKey = "\nThreads:\t";
  const std::size_t at = status.find(kKey);
  return at != std::string::npos &&
         leading_number(std::string_view(status).substr(at + kKey.size())) == 1U;
}

}  // namespace

Result<void> lock_memory() {
  if (::mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0) {
    return failure("cannot lock memory (mlockall)", errno,
                   "run as root or with CAP_IPC_LOCK, or raise the limit of locked memory "
                   "(ulimit -l, LimitMEMLOCK)");
  }
  locked.store(true, std::memory_order_relaxed);
  take_stack();
  if (const int failed = take_program_pages(); failed == EINVAL) {
    return Error{Errc::unsupported, failed,
                 "cannot load the whole program into memory ahead (madvise MADV_POPULATE_READ): "
                 "this kernel does not know it; use Linux 5.14 or later"};
  } else if (failed != 0) {
    return failure("cannot load the whole program into memory ahead (madvise)", failed,
                   "free some memory and start it again");
  }
  return {};
}

bool memory_is_locked() noexcept { return locked.load(std::memory_order_relaxed); }

[[gnu::noinline]] void take_stack() noexcept {
  constexpr std::size_t kPage = 4096;
  std::array<volatile char, kTakenStack> room;  // NOLINT: it is touched, not used
  for (std::size_t at = 0; at < room.size(); at += kPage) {
    room[at] = 0;
  }
}

Result<void> mark_io_flusher() {
  if (::prctl(kSetIoFlusher, 1, 0, 0, 0) == 0) {
    return {};
  }
  if (errno == EINVAL) {
    return Error{Errc::unsupported, EINVAL,
                 "cannot mark the process as an I/O flusher (prctl PR_SET_IO_FLUSHER): this kernel "
                 "does not know it; use Linux 5.6 or later"};
  }
  return failure("cannot mark the process as an I/O flusher (prctl PR_SET_IO_FLUSHER)", errno,
                 "run as root with CAP_SYS_RESOURCE");
}

bool is_io_flusher() noexcept { return ::prctl(kGetIoFlusher, 0, 0, 0, 0) == 1; }

Result<void> protect_from_oom_killer() {
  constexpr const char* kPath = "/proc/self/oom_score_adj";
  constexpr std::string_view kNever = "-1000";
  const Descriptor file = open_at(AT_FDCWD, kPath, O_WRONLY);
  if (!file.is_open() ||
      ::write(file.get(), kNever.data(), kNever.size()) != static_cast<ssize_t>(kNever.size())) {
    return failure(
        "cannot be kept from the out-of-memory killer (-1000 to " + std::string(kPath) + ")", errno,
        "run as root with CAP_SYS_RESOURCE, or set OOMScoreAdjust=-1000 in its unit");
  }
  return {};
}

Result<void> own_mount_namespace(std::span<const std::string> needed) {
  constexpr std::string_view kTried = "cannot have mounts of its own (unshare CLONE_NEWNS)";
  if (!has_one_thread()) {
    return Error{Errc::invalid_argument, 0,
                 std::string(kTried) + ": it has threads already; call this before they start"};
  }
  if (::unshare(CLONE_NEWNS) != 0) {
    return failure(kTried, errno, "run as root with CAP_SYS_ADMIN");
  }
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return failure("cannot keep mounts apart from the host's (mount MS_PRIVATE)", errno,
                   "run as root with CAP_SYS_ADMIN");
  }
  return leave_disks(needed);
}

std::vector<Error> make_swap_fit(std::span<const std::string> needed) {
  std::vector<Error> missing;
  const auto keep = [&missing](Result<void> result) {
    if (!result) {
      missing.push_back(std::move(result).error());
    }
  };
  keep(own_mount_namespace(needed));
  keep(mark_io_flusher());
  keep(protect_from_oom_killer());
  keep(lock_memory());
  return missing;
}

}  // namespace uzram::os
