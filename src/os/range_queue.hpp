// RangeQueue: discards and zeroes of a block device or a file, many in flight for one thread.
//
// Role: for whoever gives much room back to a device without waiting for it: the bench and
// writeback. How a piece is done depends on what is there to do it:
//   discard, block device   BLOCK_URING_CMD_DISCARD through io_uring (Linux 6.12); with
//                           IOSQE_ASYNC where the device's queue takes no request that may not
//                           wait; BLKDISCARD by threads where the kernel has no such command
//   discard, file           fallocate, FALLOC_FL_PUNCH_HOLE, through io_uring
//   zeroes, block device    BLKZEROOUT by threads: there is no command for it
//   zeroes, file            fallocate, FALLOC_FL_ZERO_RANGE, through io_uring
// Without io_uring threads do it all. Ranges are cut at the device's max_discard: a longer discard
// would need several requests of the block layer and give way to a kernel thread.
// Source: the command and its errors are those of the kernel's block/ioctl.c (blkdev_uring_cmd).
// Units: bytes.
// Errors: create() as system; a range ends with the errno of its first piece that failed:
// EOPNOTSUPP (the device has no discard), EBADF (not open for writing), EPERM (read-only), EINVAL
// (not aligned to the logical block, empty or out of range). After an error the range's content is
// undefined.
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "uzram/error.hpp"

namespace uzram::os {

enum class RangeOp : std::uint8_t { discard, write_zeroes };

// How pieces are done.
enum class RangeWay : std::uint8_t { uring, uring_worker, threads };

// One range; belongs to the caller, who leaves it alone from submit to reap.
struct Range {
  RangeOp op = RangeOp::discard;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint64_t user_data = 0;
  // An errno; 0: done.
  int failed_errno = 0;

  // Of the queue's, while it has the range: what no piece has been made of, and the pieces in
  // flight.
  std::uint64_t left = 0;
  std::uint32_t pieces = 0;
  Range* next = nullptr;
};

struct RangeQueueOptions {
  // Pieces in flight.
  std::uint32_t depth = 64;
  // The best way that may be taken: uring, or one that a test forces.
  RangeWay best = RangeWay::uring;
  // Where threads do it.
  std::uint32_t threads = 8;
};

class RangeQueue {
 public:
  // Of a descriptor of the caller's, open for writing while the queue lives.
  static Result<std::unique_ptr<RangeQueue>> create(int fd, const RangeQueueOptions& options);
  // Waits for what is in flight.
  ~RangeQueue();
  RangeQueue(const RangeQueue&) = delete;
  RangeQueue& operator=(const RangeQueue&) = delete;

  // Starts a range. Any number may be submitted; their pieces go in the order of submission.
  void submit(Range& range) noexcept;
  // Waits for a range to end; nullptr when none is left.
  [[nodiscard]] Range* reap() noexcept;
  // Whether reap() would return a range without waiting.
  [[nodiscard]] bool has_completed() noexcept;

  // How the next pieces of the operation will be done; what the kernel refuses changes it.
  [[nodiscard]] RangeWay way(RangeOp op) const noexcept;

 private:
  class Impl;
  explicit RangeQueue(std::unique_ptr<Impl> impl) noexcept;

  const std::unique_ptr<Impl> impl_;
};

}  // namespace uzram::os
