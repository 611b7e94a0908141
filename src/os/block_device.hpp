// BlockDevice: a block device of the user's, or a file in its place, opened to be overwritten.
//
// Role: for experiments on devices. Opening is exclusive: the kernel refuses what is mounted, swapped
// on or held by another device, also through a partition, and keeps it from being so meanwhile. A
// program that has the device open without a claim, as virtual machines do, is not seen. A file is
// locked (flock), which only those see who lock it, too.
// Units: bytes.
// Ownership: closes the device; its contents are the caller's business.
// Errors: open() says what uses a busy device; ranges return 0 or an errno.
// Threads: members may be called from any thread.
#pragma once

#include <cstdint>
#include <string>

#include <sys/types.h>

#include "uzram/error.hpp"

#include "os/descriptor.hpp"

namespace uzram::os {

class BlockDevice {
 public:
  // Errors: not_found; invalid_argument (neither device nor file, without size); read_only; busy;
  // system.
  static Result<BlockDevice> open(const std::string& path);

  // For direct I/O, where a file's filesystem has it: buffers, offsets and lengths must be multiples
  // of logical_block_bytes().
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  // As given.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  // The kernel's: "loop3"; empty for a file.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] std::uint64_t size_bytes() const noexcept { return size_bytes_; }
  [[nodiscard]] std::uint32_t logical_block_bytes() const noexcept { return logical_block_bytes_; }
  // Files can, unless their filesystem has no holes.
  [[nodiscard]] bool can_discard() const noexcept { return can_discard_; }
  [[nodiscard]] bool is_file() const noexcept { return is_file_; }

  // For people: "/dev/loop3 (1G, loop3 on /tmp/image)", "/dev/sda1 (1.5T, partition of sda, SAMSUNG
  // MZ7L3)", "/tmp/image (1G, file)".
  [[nodiscard]] std::string description() const;

 private:
  BlockDevice() = default;
  static Result<BlockDevice> open_file(const std::string& path, std::uint64_t size_bytes);

  std::string path_;
  std::string name_;
  std::string folder_;
  std::uint64_t size_bytes_ = 0;
  std::uint32_t logical_block_bytes_ = 0;
  bool can_discard_ = false;
  bool is_file_ = false;
  Descriptor fd_;
};

// What the queue of a device, or of the disk that has the partition, takes as one discard; 0 bytes:
// it does not discard.
struct DiscardLimits {
  std::uint64_t most_bytes = 0;
  std::uint64_t granularity_bytes = 0;
};
[[nodiscard]] DiscardLimits discard_limits(dev_t number);

// Drops the range. Returns 0 or an errno; EOPNOTSUPP when the device, or the file's filesystem,
// cannot.
[[nodiscard]] int discard_range(int fd, bool is_file, std::uint64_t offset,
                                std::uint64_t length) noexcept;

// Makes the range read as zeroes and keeps it allocated. As discard_range.
[[nodiscard]] int zero_range(int fd, bool is_file, std::uint64_t offset,
                             std::uint64_t length) noexcept;

// What fallocate() is asked for a file's range that is discarded or zeroed.
[[nodiscard]] int hole_mode() noexcept;
[[nodiscard]] int zero_mode() noexcept;

}  // namespace uzram::os
