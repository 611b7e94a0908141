#include "cli/output.hpp"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace uzram::cli {

void ensure_standard_descriptors() noexcept {
  int fd = 0;
  // open gives the lowest free number, so this ends with the first one above standard error.
  do {
    fd = ::open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) {
    ::close(fd);
  }
}

bool write_output(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno != EINTR) {
      return false;
    }
    if (written > 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  return true;
}

}  // namespace uzram::cli
