#include "bench/progress.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace uzram::bench {
namespace {

constexpr std::size_t kBar = 10;

void write_all(int fd, std::string_view text) {
  // What a terminal refuses is lost; it is no result.
  const ssize_t ignored = ::write(fd, text.data(), text.size());
  static_cast<void>(ignored);
}

std::size_t width_of(int fd) {
  winsize size{};
  const bool known = ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

std::string time_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::ceil(std::clamp(seconds, 0.0, 1e9)));
  return whole < 3600 ? fmt::format("{}:{:02}", whole / 60, whole % 60)
                      : fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace

Progress::Progress(std::size_t steps, int fd)
    : steps_(std::max<std::size_t>(steps, 1)), fd_(fd), terminal_(::isatty(fd) == 1) {}

Progress::~Progress() {
  if (terminal_) {
    write_all(fd_, "\r\x1b[K");
  }
}

void Progress::step(std::string_view what) {
  const std::size_t done = std::min(done_++, steps_);
  if (!terminal_) {
    return;
  }
  const std::size_t filled = done * kBar / steps_;
  std::string line = fmt::format("[{}{}] {:>3} %  {}", std::string(filled, '#'),
                                 std::string(kBar - filled, ' '), done * 100 / steps_, what);
  if (done > 0) {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
    const double left =
        spent.count() / static_cast<double>(done) * static_cast<double>(steps_ - done);
    line += fmt::format("  {} left", time_text(left));
  }
  // The last column stays free: a character there makes some terminals go to the next line.
  line.resize(std::min(line.size(), width_of(fd_) - 1));
  write_all(fd_, "\r\x1b[K" + line);
}

}  // namespace uzram::bench
