// A folder of a test's own, removed with all it holds. Its path is short enough for sockets.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace uzram::test {

class TemporaryFolder {
 public:
  // Without a path when it could not be made.
  TemporaryFolder() {
    std::string name = "/tmp/uzram-test-XXXXXX";
    if (::mkdtemp(name.data()) != nullptr) {
      path_ = name;
    }
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] std::string operator/(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace uzram::test
