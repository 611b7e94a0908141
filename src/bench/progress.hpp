// Progress: one line at the bottom of a terminal while a run goes on.
//
// Role: for people; nothing when standard error is no terminal.
// Threads: one.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace uzram::bench {

class Progress {
 public:
  // `steps`: how many times step() will be called. Writes to `fd` when that is a terminal.
  Progress(std::size_t steps, int fd);
  // Clears the line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // A step begins: "[####      ]  40 %  round 2/5  cc1plus lz4 write zram  1:10 left", cut to the
  // terminal's width.
  void step(std::string_view what);

 private:
  const std::size_t steps_;
  const int fd_;
  const bool terminal_;
  std::size_t done_ = 0;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace uzram::bench
