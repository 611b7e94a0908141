#include "bench/gnuplot.hpp"

#include <array>
#include <cerrno>
#include <cstddef>

#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/result_cells.hpp"
#include "os/write_all.hpp"

namespace uzram::bench {
namespace {

Error gnuplot_error(std::string_view doing, int errno_value) {
  return system_error(fmt::format("gnuplot: {}", doing), errno_value);
}

// A file without a name. Unlike pipes, three of them need nobody to read while the program writes.
class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("uzram-gnuplot", MFD_CLOEXEC)) {}
  ~MemoryFile() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  [[nodiscard]] int fd() const noexcept { return fd_; }

  // Leaves the position at the start.
  [[nodiscard]] bool fill(std::string_view text) const {
    return os::write_all(fd_, text) && ::lseek(fd_, 0, SEEK_SET) == 0;
  }

  [[nodiscard]] std::string content() const {
    std::string text;
    std::array<char, 65536> piece;
    ssize_t count = 0;
    while ((count = ::pread(fd_, piece.data(), piece.size(), static_cast<off_t>(text.size()))) >
           0) {
      text.append(piece.data(), static_cast<std::size_t>(count));
    }
    return text;
  }

 private:
  int fd_;
};

Result<pid_t> start(const MemoryFile& input, const MemoryFile& output, const MemoryFile& errors) {
  std::string program = "gnuplot";
  std::string no_settings = "-d";
  const std::array<char*, 3> arguments = {program.data(), no_settings.data(), nullptr};
  posix_spawn_file_actions_t actions;
  if (const int problem = ::posix_spawn_file_actions_init(&actions); problem != 0) {
    return gnuplot_error("start", problem);
  }
  int problem = ::posix_spawn_file_actions_adddup2(&actions, input.fd(), STDIN_FILENO);
  problem = problem != 0 ? problem
                         : ::posix_spawn_file_actions_adddup2(&actions, output.fd(), STDOUT_FILENO);
  problem = problem != 0 ? problem
                         : ::posix_spawn_file_actions_adddup2(&actions, errors.fd(), STDERR_FILENO);
  pid_t pid = 0;
  problem = problem != 0 ? problem
                         : ::posix_spawnp(&pid, program.c_str(), &actions, nullptr,
                                          arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (problem == ENOENT) {
    return Error{Errc::unsupported, problem, "gnuplot: not found; install the package gnuplot-nox"};
  }
  if (problem != 0) {
    return gnuplot_error("start", problem);
  }
  return pid;
}

}  // namespace

std::string gnuplot_quote(std::string_view text) {
  // Single quotes will not do: gnuplot 5.4 takes the second of two doubled ones for the end. In
  // double quotes, octal escapes are read after backquotes and macros are.
  constexpr std::string_view kPlain = " .,:;-_()/+=";
  std::string quoted = "\"";
  for (const char byte : printable(text)) {
    const auto code = static_cast<unsigned char>(byte);
    const bool letter = (code | 0x20U) >= 'a' && (code | 0x20U) <= 'z';
    const bool digit = code >= '0' && code <= '9';
    if (letter || digit || code >= 0x80 || kPlain.find(byte) != std::string_view::npos) {
      quoted += byte;
    } else {
      quoted += fmt::format("\\{:03o}", code);
    }
  }
  return quoted + "\"";
}

Result<std::string> run_gnuplot(std::string_view script) {
  const MemoryFile input;
  const MemoryFile output;
  const MemoryFile errors;
  if (input.fd() < 0 || output.fd() < 0 || errors.fd() < 0 || !input.fill(script)) {
    return gnuplot_error("temporary file", errno);
  }
  const Result<pid_t> pid = start(input, output, errors);
  if (!pid) {
    return pid.error();
  }
  int status = 0;
  while (::waitpid(*pid, &status, 0) < 0) {
    if (errno != EINTR) {
      return gnuplot_error("wait", errno);
    }
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return Error{Errc::system, 0, fmt::format("gnuplot failed: {}", errors.content())};
  }
  return output.content();
}

}  // namespace uzram::bench
