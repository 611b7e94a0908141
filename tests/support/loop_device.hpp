// A loop device over a file of its own, for tests that overwrite or mount a block device.
//
// Ownership: the file goes with the object; the kernel detaches the device when nobody has it open any
// more, also when the test dies.
// Errors: make() says what is missing: mostly root.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "uzram/error.hpp"

#include "support/temporary_folder.hpp"

namespace uzram::test {

class LoopDevice {
 public:
  static Result<std::unique_ptr<LoopDevice>> make(std::uint64_t size_bytes, bool read_only = false);
  // Over a file in ramfs, which cannot punch holes.
  static Result<std::unique_ptr<LoopDevice>> make_without_discard(std::uint64_t size_bytes);
  ~LoopDevice();
  LoopDevice(const LoopDevice&) = delete;
  LoopDevice& operator=(const LoopDevice&) = delete;

  // "/dev/loop3".
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  // "loop3".
  [[nodiscard]] std::string name() const { return path_.substr(5); }
  [[nodiscard]] std::string file() const { return folder_ / "image"; }

 private:
  LoopDevice() = default;
  Result<void> attach(std::uint64_t size_bytes, bool read_only);

  TemporaryFolder folder_;
  std::string path_;
  int fd_ = -1;
};

}  // namespace uzram::test
