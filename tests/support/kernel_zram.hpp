// A private device of the kernel's zram, for comparison.
//
// Role: model tests and measurements. A device is made through zram-control/hot_add and removed
// again at destruction; existing ones are never touched.
// Errors: create says what is missing.
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "uzram/error.hpp"

namespace uzram::test {

class KernelZram {
 public:
  // Errors: unsupported when this kernel, or this user, cannot make one.
  static Result<std::unique_ptr<KernelZram>> create(const std::string& algorithm,
                                                    std::uint64_t disksize_bytes);
  ~KernelZram();
  KernelZram(const KernelZram&) = delete;
  KernelZram& operator=(const KernelZram&) = delete;

  // Opened with O_DIRECT; buffers, offsets and lengths must be multiples of 4096.
  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] bool discard(std::uint64_t offset, std::uint64_t length) const noexcept;

  struct MmStat {
    std::uint64_t orig_data_size = 0;
    std::uint64_t compr_data_size = 0;
    std::uint64_t mem_used_total = 0;
    std::uint64_t mem_limit = 0;
    std::uint64_t mem_used_max = 0;
    std::uint64_t same_pages = 0;
    std::uint64_t pages_compacted = 0;
    std::uint64_t huge_pages = 0;
  };
  [[nodiscard]] MmStat mm_stat() const;

 private:
  KernelZram() = default;
  int number_ = -1;
  int fd_ = -1;
  std::string path_;
};

}  // namespace uzram::test
