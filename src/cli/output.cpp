#include "cli/output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "os/write_all.hpp"

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

bool write_output(std::string_view text) noexcept { return os::write_all(STDOUT_FILENO, text); }

}  // namespace uzram::cli
