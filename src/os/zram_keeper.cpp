#include "os/zram_keeper.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.hpp"

namespace uzram::os {
namespace {

constexpr const char* kHotAdd = "/sys/class/zram-control/hot_add";
constexpr const char* kHotRemove = "/sys/class/zram-control/hot_remove";

enum class Step : std::uint8_t { open_hot_add, open_hot_remove, add };

// What the keeper tells once: a number, or what failed.
struct Report {
  Step step = Step::add;
  int failed_errno = 0;
  std::size_t size = 0;
  std::array<char, 16> number{};
};

// From here to run_keeper all runs in a child forked from a process that may have other threads:
// system calls only, no heap, no locks.

// Closes those from `first` on that /proc lists; false when it does not. Not by readdir(), which
// takes memory. Closing while listing is fine: what is left keeps its place.
bool close_listed(int first) noexcept {
  // As getdents64() fills it in.
  struct Entry {
    std::uint64_t inode;
    std::int64_t place;
    std::uint16_t length;
    std::uint8_t type;
  };
  constexpr std::size_t kName = offsetof(Entry, type) + 1;
  const int folder = ::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) {
    return false;
  }
  alignas(Entry) std::array<char, 2048> room{};
  long got = 0;
  while ((got = ::syscall(SYS_getdents64, folder, room.data(), room.size())) > 0) {
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      const char* const entry = room.data() + at;
      int fd = 0;
      const char* digit = entry + kName;
      for (; *digit >= '0' && *digit <= '9'; ++digit) {
        fd = fd * 10 + (*digit - '0');
      }
      // "." and "..": no number.
      if (digit != entry + kName && fd >= first && fd != folder) {
        ::close(fd);
      }
      std::uint16_t length = 0;
      std::memcpy(&length, entry + offsetof(Entry, length), sizeof length);
      at += length;
    }
  }
  ::close(folder);
  return got == 0;
}

// Before Linux 5.9 there is no close_range(), and filters refuse it.
void close_from(int first) noexcept {
  if (::syscall(SYS_close_range, first, ~0U, 0) == 0 || close_listed(first)) {
    return;
  }
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  constexpr rlim_t kMost = 1 << 20;
  for (int fd = first; static_cast<rlim_t>(fd) < std::min(limit.rlim_cur, kMost); ++fd) {
    ::close(fd);
  }
}

// The keeper's socket becomes descriptor 3; nothing else stays open but /dev/null on 0, 1, 2.
int keep_only(int socket) noexcept {
  constexpr int kSocket = 3;
  const int copy = ::fcntl(socket, F_DUPFD_CLOEXEC, kSocket + 1);
  if (copy < 0 || ::dup2(copy, kSocket) < 0) {
    ::_exit(1);
  }
  close_from(kSocket + 1);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < kSocket; ++fd) {
    if (null < 0) {
      ::close(fd);
    } else {
      ::dup2(null, fd);
    }
  }
  if (null > kSocket) {
    ::close(null);
  }
  return kSocket;
}

// The memory counted as the keeper's is its parent's: without it the device would stay.
void outlive_memory_shortage() noexcept {
  const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd >= 0) {
    [[maybe_unused]] const ssize_t written = ::write(fd, "-1000", 5);
    ::close(fd);
  }
}

// Makes a device; `hot_remove` is open before there is anything to remove.
Report add_device(int& hot_remove) noexcept {
  Report report;
  hot_remove = ::open(kHotRemove, O_WRONLY | O_CLOEXEC);
  if (hot_remove < 0) {
    report.step = Step::open_hot_remove;
    report.failed_errno = errno;
    return report;
  }
  const int hot_add = ::open(kHotAdd, O_RDONLY | O_CLOEXEC);
  if (hot_add < 0) {
    report.step = Step::open_hot_add;
    report.failed_errno = errno;
    return report;
  }
  const ssize_t got = ::read(hot_add, report.number.data(), report.number.size());
  report.failed_errno = got < 0 ? errno : got == 0 ? EIO : 0;
  report.size = got > 0 ? static_cast<std::size_t>(got) : 0;
  ::close(hot_add);
  return report;
}

// Whatever looks at new block devices, and the kernel's end of a killed process's requests, may
// hold the device for a moment.
bool remove_device(int hot_remove, const Report& report) noexcept {
  constexpr std::int64_t kLongestPause = 50'000'000;
  constexpr std::int64_t kPatience = 30'000'000'000;
  std::int64_t pause_ns = 1'000'000;
  for (std::int64_t waited_ns = 0;; waited_ns += pause_ns) {
    if (::write(hot_remove, report.number.data(), report.size) >= 0 || errno == ENODEV) {
      return true;
    }
    if (waited_ns > kPatience) {
      return false;
    }
    pause_ns = pause_ns * 2 < kLongestPause ? pause_ns * 2 : kLongestPause;
    const timespec pause = {0, pause_ns};
    ::nanosleep(&pause, nullptr);
  }
}

// Runs with all signals blocked, so that none meant for the terminal's programs ends it early.
[[noreturn]] void run_keeper(int socket) noexcept {
  ::setsid();
  // Not by prctl(): AddressSanitizer's takes a lock that another thread may have held at the fork.
  ::syscall(SYS_prctl, PR_SET_NAME, "uzram-zram", 0, 0, 0);
  socket = keep_only(socket);
  [[maybe_unused]] const int changed = ::chdir("/");
  outlive_memory_shortage();
  int hot_remove = -1;
  const Report report = add_device(hot_remove);
  ::send(socket, &report, sizeof report, MSG_NOSIGNAL);
  if (report.failed_errno != 0) {
    ::_exit(1);
  }
  char ignored = 0;
  ssize_t got = 0;
  do {
    got = ::recv(socket, &ignored, sizeof ignored, 0);
  } while (got > 0 || (got < 0 && errno == EINTR));
  ::_exit(remove_device(hot_remove, report) ? 0 : 1);
}

pid_t fork_keeper(int socket) noexcept {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::fork();
  if (pid == 0) {
    run_keeper(socket);
  }
  const int failed = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = failed;
  return pid;
}

Error refusal(const Report& report) {
  const char* const file = report.step == Step::open_hot_remove ? kHotRemove : kHotAdd;
  Error error =
      system_error(std::string("cannot make a kernel zram device: ") + file, report.failed_errno);
  switch (report.failed_errno) {
    case ENOENT:
    case ENOTDIR:
      error.code = Errc::unsupported;
      error.message += ": this kernel's zram is not loaded or not there; try modprobe zram";
      break;
    case EACCES:
    case EPERM:
      error.code = Errc::unsupported;
      error.message += ": run as root";
      break;
    case EROFS:
      error.code = Errc::unsupported;
      error.message += ": expected a /sys that may be written to, which containers often lack";
      break;
    default:
      break;
  }
  return error;
}

}  // namespace

Result<void> ZramKeeper::may_start() {
  Report report;
  if (::access(kHotRemove, W_OK) != 0) {
    report.step = Step::open_hot_remove;
    report.failed_errno = errno;
  } else if (::access(kHotAdd, R_OK) != 0) {
    report.step = Step::open_hot_add;
    report.failed_errno = errno;
  }
  return report.failed_errno == 0 ? Result<void>() : Result<void>(refusal(report));
}

ZramKeeper::ZramKeeper(pid_t pid, Descriptor socket) noexcept
    : pid_(pid), socket_(std::move(socket)) {}

Result<std::unique_ptr<ZramKeeper>> ZramKeeper::start() {
  std::array<int, 2> sockets{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
    return system_error("cannot make a kernel zram device: socketpair", errno);
  }
  Descriptor ours(sockets[0]);
  Descriptor theirs(sockets[1]);
  const pid_t pid = fork_keeper(theirs.get());
  if (pid < 0) {
    return system_error("cannot make a kernel zram device: fork", errno);
  }
  theirs.reset();
  auto keeper = std::unique_ptr<ZramKeeper>(new ZramKeeper(pid, std::move(ours)));
  Report report;
  ssize_t got = 0;
  do {
    got = ::recv(keeper->socket_.get(), &report, sizeof report, 0);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof report)) {
    return Error{Errc::system, got < 0 ? errno : 0,
                 "cannot make a kernel zram device: the process that keeps it ended"};
  }
  if (report.failed_errno != 0) {
    return refusal(report);
  }
  std::string number(report.number.data(), report.size);
  number.resize(std::min(number.find_first_not_of("0123456789"), number.size()));
  keeper->name_ = "zram" + number;
  return keeper;
}

ZramKeeper::~ZramKeeper() {
  // Not by closing alone: a child that this process forked meanwhile may have a copy.
  ::shutdown(socket_.get(), SHUT_RDWR);
  int status = 0;
  pid_t ended = 0;
  do {
    ended = ::waitpid(pid_, &status, 0);
  } while (ended < 0 && errno == EINTR);
  const bool removed = ended < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
  if (!removed && !name_.empty()) {
    log(LogLevel::warning, name_ +
                               " is still there, as something uses it or its keeper was killed; "
                               "remove it with: echo " +
                               name_.substr(4) + " > " + kHotRemove);
  }
}

}  // namespace uzram::os
