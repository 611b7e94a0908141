// KernelZram: a private device of the kernel's zram, and what zram tells of any device.
//
// Role: for comparison, in experiments and model tests. Existing devices are read, never changed.
// Units: bytes.
// Ownership: a device goes with its object, and with the process however that ends (zram_keeper.hpp).
// Errors: create() names what was asked for and what this kernel has.
// Threads: members may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "uzram/error.hpp"

#include "os/descriptor.hpp"
#include "os/zram_keeper.hpp"

namespace uzram::os {

// Fields that an older kernel lacks are 0.
struct ZramMmStat {
  std::uint64_t orig_data_size = 0;
  std::uint64_t compr_data_size = 0;
  std::uint64_t mem_used_total = 0;
  std::uint64_t mem_limit = 0;
  std::uint64_t mem_used_max = 0;
  std::uint64_t same_pages = 0;
  std::uint64_t pages_compacted = 0;
  std::uint64_t huge_pages = 0;
  std::uint64_t huge_pages_since = 0;
};

// Of the device that the kernel calls `name` ("zram0"); none when there is no such zram device or
// it has no disksize.
[[nodiscard]] std::optional<ZramMmStat> zram_mm_stat(std::string_view name);

// The compressor in use, empty when there is no such zram device.
[[nodiscard]] std::string zram_algorithm(std::string_view name);

// Restarts mem_used_max at the present use. Returns false when that is not possible.
bool reset_zram_mem_used_max(std::string_view name);

class KernelZram {
 public:
  // Errors: unsupported when this kernel has no zram, this user may not use it, or it lacks the
  // algorithm or levels; invalid_argument (level, size); busy; system.
  static Result<std::unique_ptr<KernelZram>> create(const std::string& algorithm,
                                                    std::optional<int> level,
                                                    std::uint64_t disksize_bytes);
  // Whether this user can make one at all, without making it. Errors: unsupported, saying why.
  static Result<void> available() { return ZramKeeper::may_start(); }
  KernelZram(const KernelZram&) = delete;
  KernelZram& operator=(const KernelZram&) = delete;

  // The compressors of this kernel, from an existing device or else a private one. Errors: those of
  // making a device.
  static Result<std::vector<std::string>> algorithms();

  // Opened with O_DIRECT; buffers, offsets and lengths must be multiples of 4096. Opened with O_EXCL
  // too: it is not to be mounted or swapped on, and discards of many threads need not wait for each
  // other to claim it.
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  // "/dev/zram5".
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  // "zram5".
  [[nodiscard]] const std::string& name() const noexcept { return keeper_->name(); }
  [[nodiscard]] ZramMmStat mm_stat() const;

 private:
  explicit KernelZram(std::unique_ptr<ZramKeeper> keeper);

  Result<void> set_algorithm(const std::string& algorithm) const;
  Result<void> set_level(const std::string& algorithm, int level) const;
  Result<void> set_disksize(std::uint64_t disksize_bytes) const;

  // Destroyed last: a device that is open cannot be removed.
  const std::unique_ptr<ZramKeeper> keeper_;
  const std::string path_;
  Descriptor fd_;
};

}  // namespace uzram::os
