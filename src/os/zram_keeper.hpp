// ZramKeeper: the process that makes a device of the kernel's zram and takes it away again.
//
// Role: under KernelZram. The keeper reads zram-control/hot_add itself and hands the number over, so
// that there is no moment at which a device exists that nobody would remove. It removes it when
// its socket reports that the other side is gone: destroyed, exited, crashed or killed.
// Ownership: one process and one device for each object; the device must not be open any more
// when the object is destroyed (others who look at it for a moment are waited for).
// Errors: start() says what is missing; a device that stays in use for half a minute is left, with
// a warning that says how to remove it.
// Threads: start() from any thread of any process, however many threads it has; a child of fork must
// not destroy the object.
// Cost: a fork; what the process writes afterwards of its private memory is copied once. The keeper
// is not chosen when memory runs out.
#pragma once

#include <memory>
#include <string>

#include <sys/types.h>

#include "uzram/error.hpp"

#include "os/descriptor.hpp"

namespace uzram::os {

class ZramKeeper {
 public:
  // Errors: unsupported when this kernel has no zram or this user may not use it; system.
  static Result<std::unique_ptr<ZramKeeper>> start();
  // Whether start() would get that far, without making anything. Errors: as start().
  static Result<void> may_start();
  // Returns when the device is gone.
  ~ZramKeeper();
  ZramKeeper(const ZramKeeper&) = delete;
  ZramKeeper& operator=(const ZramKeeper&) = delete;

  // The kernel's name of the device: "zram5".
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

 private:
  ZramKeeper(pid_t pid, Descriptor socket) noexcept;

  const pid_t pid_;
  Descriptor socket_;
  std::string name_;
};

}  // namespace uzram::os
