// What the program logs while an object of this class lives: standard error goes to a file.
//
// Threads: any may log; one looks.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace uzram::test {

class CapturedLog {
 public:
  CapturedLog()
      : file_(::memfd_create("captured log", MFD_CLOEXEC)),
        saved_(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) {
    if (file_ < 0 || saved_ < 0 || ::dup2(file_, STDERR_FILENO) < 0) {
      std::abort();
    }
  }
  ~CapturedLog() {
    ::dup2(saved_, STDERR_FILENO);
    ::close(saved_);
    ::close(file_);
  }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;

  [[nodiscard]] std::string text() const {
    std::string all;
    std::array<char, 4096> piece{};
    ssize_t got = 0;
    while ((got = ::pread(file_, piece.data(), piece.size(), static_cast<off_t>(all.size()))) > 0) {
      all.append(piece.data(), static_cast<std::size_t>(got));
    }
    return all;
  }
  [[nodiscard]] std::size_t lines() const {
    const std::string all = text();
    return static_cast<std::size_t>(std::count(all.begin(), all.end(), '\n'));
  }

 private:
  const int file_;
  const int saved_;
};

}  // namespace uzram::test
