#include "bench/progress.hpp"

#include <cstdlib>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace uzram::bench {
namespace {

// A terminal of a given width, and what was written to it.
class Terminal {
 public:
  explicit Terminal(unsigned short columns)
      : master_(::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK)) {
    std::string name(64, '\0');
    if (::grantpt(master_) == 0 && ::unlockpt(master_) == 0 &&
        ::ptsname_r(master_, name.data(), name.size()) == 0) {
      fd_ = ::open(name.c_str(), O_RDWR | O_NOCTTY);
    }
    winsize size{};
    size.ws_col = columns;
    EXPECT_EQ(::ioctl(fd_, TIOCSWINSZ, &size), 0);
  }
  ~Terminal() {
    ::close(fd_);
    ::close(master_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  [[nodiscard]] int fd() const { return fd_; }

  // What has been written to it since the last call. The kernel hands it over in the background: all
  // of it is there when what is written after it is.
  [[nodiscard]] std::string shown() const {
    constexpr char kEnd = '\0';
    EXPECT_EQ(::write(fd_, &kEnd, 1), 1);
    std::string text;
    while (text.empty() || text.back() != kEnd) {
      pollfd ready = {master_, POLLIN, 0};
      char byte = 0;
      if (::poll(&ready, 1, 10'000) != 1 || ::read(master_, &byte, 1) != 1) {
        ADD_FAILURE() << "nothing more comes after " << text;
        return text;
      }
      text += byte;
    }
    text.pop_back();
    return text;
  }

 private:
  int master_;
  int fd_ = -1;
};

TEST(Progress, shows_the_part_done_and_the_step) {
  const Terminal terminal(80);
  Progress progress(4, terminal.fd());
  progress.step("round 1/2  write");
  EXPECT_EQ(terminal.shown(), "\r\x1b[K[          ]   0 %  round 1/2  write");
  progress.step("round 1/2  read");
  const std::string second = terminal.shown();
  EXPECT_TRUE(second.starts_with("\r\x1b[K[##        ]  25 %  round 1/2  read  ")) << second;
  EXPECT_TRUE(second.ends_with(" left")) << second;
}

TEST(Progress, is_cut_to_the_width_of_the_terminal) {
  const Terminal terminal(30);
  Progress progress(2, terminal.fd());
  progress.step("a step with a name that is longer than the line");
  EXPECT_EQ(terminal.shown().size(), 29 + std::string("\r\x1b[K").size());
}

TEST(Progress, clears_its_line_at_the_end) {
  const Terminal terminal(80);
  {
    Progress progress(1, terminal.fd());
    progress.step("only");
    EXPECT_NE(terminal.shown(), "");
  }
  EXPECT_EQ(terminal.shown(), "\r\x1b[K");
}

TEST(Progress, more_steps_than_announced_stay_at_the_end) {
  const Terminal terminal(80);
  Progress progress(0, terminal.fd());
  progress.step("one");
  progress.step("two");
  static_cast<void>(terminal.shown());
  progress.step("three");
  const std::string shown = terminal.shown();
  EXPECT_TRUE(shown.starts_with("\r\x1b[K[##########] 100 %  three")) << shown;
}

TEST(Progress, writes_nothing_where_there_is_no_terminal) {
  int pipe[2] = {-1, -1};
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC | O_NONBLOCK), 0);
  {
    Progress progress(1, pipe[1]);
    progress.step("one");
  }
  char byte = 0;
  EXPECT_LT(::read(pipe[0], &byte, 1), 0);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

}  // namespace
}  // namespace uzram::bench
