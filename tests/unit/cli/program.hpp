// The program `uzram` as a child process of a test.
//
// Threads: one for each Program.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace uzram::test {

// Of the program: what becomes of its standard output.
enum class Output { captured, closed, full };

// `uzram` with some arguments. Killed on destruction if it still runs.
class Program {
 public:
  // The exit code when it could not be run at all.
  static constexpr int kCannotRun = 127;

  // As the user `user` when one is given; that needs root.
  explicit Program(std::vector<std::string> arguments, Output output = Output::captured,
                   std::optional<uid_t> user = std::nullopt) {
    arguments.insert(arguments.begin(), UZRAM_PROGRAM);
    std::vector<char*> argv;
    argv.reserve(arguments.size() + 1);
    for (std::string& argument : arguments) {
      argv.push_back(argument.data());
    }
    argv.push_back(nullptr);
    std::array<int, 2> out{};
    std::array<int, 2> err{};
    if (::pipe2(out.data(), O_CLOEXEC) != 0 || ::pipe2(err.data(), O_CLOEXEC) != 0) {
      return;
    }
    pid_ = ::fork();
    if (pid_ == 0) {
      if (output == Output::captured) {
        ::dup2(out[1], STDOUT_FILENO);
      } else {
        ::close(STDOUT_FILENO);
        if (output == Output::full) {
          ::open("/dev/full", O_WRONLY);
        }
      }
      ::dup2(err[1], STDERR_FILENO);
      if (user && (::setgroups(0, nullptr) != 0 || ::setgid(*user) != 0 || ::setuid(*user) != 0)) {
        ::_exit(kCannotRun);
      }
      ::execv(argv[0], argv.data());
      ::_exit(kCannotRun);
    }
    ::close(out[1]);
    ::close(err[1]);
    out_ = out[0];
    err_ = err[0];
  }
  ~Program() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(out_);
    ::close(err_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Reads standard output until the line "ready"; false when it ends before.
  bool wait_ready() {
    std::array<char, 1024> room{};
    while (!printed_.ends_with("\nready\n")) {
      const ssize_t got = ::read(out_, room.data(), room.size());
      if (got <= 0) {
        return false;
      }
      printed_.append(room.data(), static_cast<std::size_t>(got));
    }
    return true;
  }
  void signal(int number) const { ::kill(pid_, number); }
  // Waits for the end. The exit code, or minus the signal that ended it.
  int wait() {
    printed_ += rest_of(out_);
    complaint_ = rest_of(err_);
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  [[nodiscard]] const std::string& printed() const { return printed_; }
  [[nodiscard]] const std::string& complaint() const { return complaint_; }

 private:
  static std::string rest_of(int fd) {
    std::string text;
    std::array<char, 4096> room{};
    for (ssize_t got = 0; (got = ::read(fd, room.data(), room.size())) > 0;) {
      text.append(room.data(), static_cast<std::size_t>(got));
    }
    return text;
  }

  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
  std::string printed_;
  std::string complaint_;
};

}  // namespace uzram::test
