// A child process whose private memory holds numbered pages, for tests that read it.
//
// Each page begins with a mark and its number; the rest is the number again and again. A shared and
// a locked mapping hold the same marks with numbers from kUnwanted on.
// Threads: one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace uzram::test {

class ProcessWithPages {
 public:
  static constexpr std::uint64_t kUnwanted = 1'000'000;

  explicit ProcessWithPages(std::size_t pages) {
    std::array<int, 2> ready{};
    if (::pipe(ready.data()) != 0) {
      return;
    }
    pid_ = ::fork();
    if (pid_ == 0) {
      fill(MAP_PRIVATE, pages, 0);
      fill(MAP_SHARED, 1, kUnwanted);
      void* const locked = fill(MAP_PRIVATE, 1, kUnwanted + 1);
      // Sanitizers make mlock do nothing. Without the right to lock memory there is none locked.
      if (::syscall(SYS_mlock, locked, kPage) != 0) {
        ::munmap(locked, kPage);
      }
      const char done = 1;
      // Until a signal comes, which ends it.
      ::_exit(::write(ready[1], &done, 1) == 1 ? ::pause() : 1);
    }
    ::close(ready[1]);
    char done = 0;
    ready_ = ::read(ready[0], &done, 1) == 1;
    ::close(ready[0]);
  }
  ~ProcessWithPages() { end(); }
  ProcessWithPages(const ProcessWithPages&) = delete;
  ProcessWithPages& operator=(const ProcessWithPages&) = delete;

  [[nodiscard]] bool is_ready() const noexcept { return ready_; }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  void end() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(std::exchange(pid_, -1), nullptr, 0);
    }
  }

  // The number of a page of such a process.
  [[nodiscard]] static std::optional<std::uint64_t> number_of(std::span<const std::byte> page) {
    std::array<std::uint64_t, kWords> words{};
    std::memcpy(words.data(), page.data(), kPage);
    if (words.front() != kMark) {
      return std::nullopt;
    }
    for (std::size_t at = 2; at < kWords; ++at) {
      if (words.at(at) != words[1]) {
        return std::nullopt;
      }
    }
    return words[1];
  }

 private:
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kWords = kPage / sizeof(std::uint64_t);
  static constexpr std::uint64_t kMark = 0x7061676573212121;

  // Writes in place, so that no copy of a page lies elsewhere.
  static void* fill(int sharing, std::size_t pages, std::uint64_t first) {
    void* const memory =
        ::mmap(nullptr, pages * kPage, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      ::_exit(1);
    }
    auto* const words = static_cast<std::uint64_t*>(memory);
    for (std::size_t page = 0; page < pages; ++page) {
      words[page * kWords] = kMark;
      for (std::size_t at = 1; at < kWords; ++at) {
        words[page * kWords + at] = first + page;
      }
    }
    return memory;
  }

  pid_t pid_ = -1;
  bool ready_ = false;
};

}  // namespace uzram::test
