#include "os/range_queue.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "uzram/fifo.hpp"

#include "os/background_thread.hpp"
#include "os/block_device.hpp"
#include "os/descriptor.hpp"

namespace uzram::os {
namespace {

// BLOCK_URING_CMD_DISCARD of linux/blkdev.h, which Debian 12 does not have.
constexpr std::uint32_t kUringDiscard = _IO(0x12, 0);
// Pieces where the device names no limit, and pieces of zeroes, which it may have to write.
constexpr std::uint64_t kMostDiscardBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kMostZeroBytes = std::uint64_t{16} << 20;
constexpr std::uint32_t kMostDepth = 16384;
// user_data of the poll that waits for threads.
constexpr std::uint64_t kBell = ~std::uint64_t{0};

// What the kernel is asked at once.
struct Piece {
  Range* range = nullptr;
  RangeWay way = RangeWay::uring;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  int failed_errno = 0;
  Piece* next = nullptr;
};

int fallocate_mode(RangeOp op) noexcept {
  return op == RangeOp::discard ? hole_mode() : zero_mode();
}

// The device or file, and how it takes a piece from a thread.
struct Subject {
  int fd = -1;
  bool is_device = false;
  bool can_discard = true;
  std::uint64_t most_discard_bytes = kMostDiscardBytes;

  [[nodiscard]] std::uint64_t most_bytes(RangeOp op) const noexcept {
    return op == RangeOp::discard ? most_discard_bytes : kMostZeroBytes;
  }
  // Returns 0 or an errno.
  [[nodiscard]] int carry_out(const Piece& piece) const noexcept {
    return piece.range->op == RangeOp::discard
               ? discard_range(fd, !is_device, piece.offset, piece.length)
               : zero_range(fd, !is_device, piece.offset, piece.length);
  }
};

Result<Subject> examine(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    return system_error("discards: the descriptor", errno);
  }
  Subject subject;
  subject.fd = fd;
  subject.is_device = S_ISBLK(status.st_mode);
  if (subject.is_device) {
    const DiscardLimits limits = discard_limits(status.st_rdev);
    subject.can_discard = limits.most_bytes != 0;
    // A piece of whole granules leaves none to be discarded by halves.
    const std::uint64_t granule = std::max<std::uint64_t>(1, limits.granularity_bytes);
    const std::uint64_t most = std::min(limits.most_bytes, kMostDiscardBytes) / granule * granule;
    subject.most_discard_bytes = most == 0 ? kMostDiscardBytes : most;
  } else if (!S_ISREG(status.st_mode)) {
    return Error{Errc::invalid_argument, 0,
                 "discards: expected a block device or a file with holes"};
  }
  return subject;
}

// Threads that do pieces, one at a time each, and ring when one is done. They are started when they
// are needed.
class PieceThreads {
 public:
  PieceThreads(const Subject& subject, std::uint32_t most, int bell_fd)
      : subject_(subject), most_(std::max(1U, most)), bell_fd_(bell_fd) {
    threads_.reserve(most_);
  }
  ~PieceThreads() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    work_.notify_all();
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }
  PieceThreads(const PieceThreads&) = delete;
  PieceThreads& operator=(const PieceThreads&) = delete;

  void start(Piece& piece) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push(piece);
      ++unfinished_;
    }
    if (threads_.size() < std::min<std::size_t>(most_, unfinished_)) {
      add_thread();
    }
    if (threads_.empty()) {
      // There are none to be had, so it is done here.
      std::unique_lock lock(mutex_);
      do_one(lock);
    } else {
      work_.notify_one();
    }
  }

  // nullptr: none is done.
  Piece* collect() noexcept {
    const std::lock_guard lock(mutex_);
    Piece* const piece = done_.pop();
    unfinished_ -= piece == nullptr ? 0 : 1;
    return piece;
  }
  // Pieces started and not collected.
  [[nodiscard]] std::size_t unfinished() const noexcept { return unfinished_; }

 private:
  void add_thread() noexcept {
    try {
      if (auto thread = start_background_thread("uzram-range", [this] { serve(); }); thread) {
        threads_.push_back(*std::move(thread));
      }
    } catch (const std::bad_alloc&) {
      // Those there are have to do.
    }
  }

  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      work_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
      if (waiting_.empty()) {
        return;
      }
      do_one(lock);
    }
  }

  // REQUIRES: a piece waits.
  void do_one(std::unique_lock<std::mutex>& lock) {
    Piece& piece = *waiting_.pop();
    lock.unlock();
    piece.failed_errno = subject_.carry_out(piece);
    lock.lock();
    done_.push(piece);
    ::eventfd_write(bell_fd_, 1);
  }

  const Subject& subject_;
  const std::size_t most_;
  const int bell_fd_;
  std::mutex mutex_;
  std::condition_variable work_;
  Fifo<Piece> waiting_;
  Fifo<Piece> done_;
  bool stopping_ = false;
  // Of the queue's thread.
  std::size_t unfinished_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace

class RangeQueue::Impl {
 public:
  Impl(const Subject& subject, const RangeQueueOptions& options, int bell_fd)
      : subject_(subject),
        bell_(bell_fd),
        pieces_(options.depth),
        threads_(subject_, options.threads, bell_fd) {
    for (Piece& piece : pieces_) {
      free_.push(piece);
    }
    set_ways(options.best);
  }

  ~Impl() {
    while (reap() != nullptr) {
    }
    if (has_ring_) {
      ::io_uring_queue_exit(&ring_);
    }
  }

  // Where there is no ring, or it knows too little, threads do the work.
  void make_ring(std::uint32_t depth) noexcept {
    if (discard_way_ == RangeWay::threads && zero_way_ == RangeWay::threads) {
      return;
    }
    const std::uint8_t opcode =
        subject_.is_device ? std::uint8_t{IORING_OP_URING_CMD} : std::uint8_t{IORING_OP_FALLOCATE};
    // One entry more for the bell.
    has_ring_ = ::io_uring_queue_init(depth + 1, &ring_, 0) == 0;
    if (!has_ring_ || !knows(opcode)) {
      discard_way_ = RangeWay::threads;
      zero_way_ = RangeWay::threads;
    }
  }

  void submit(Range& range) noexcept {
    range.failed_errno = 0;
    range.left = range.length;
    range.pieces = 0;
    ++unreaped_;
    if (range.length == 0) {
      // As the kernel says of an empty one.
      range.failed_errno = EINVAL;
      ended_.push(range);
      return;
    }
    waiting_.push(range);
    fill();
    enter(false);
  }

  Range* reap() noexcept {
    while (ended_.empty() && unreaped_ != 0) {
      wait();
    }
    Range* const range = ended_.pop();
    unreaped_ -= range == nullptr ? 0 : 1;
    return range;
  }

  bool has_completed() noexcept {
    if (ended_.empty()) {
      collect();
    }
    return !ended_.empty();
  }

  [[nodiscard]] RangeWay way(RangeOp op) const noexcept {
    return op == RangeOp::discard ? discard_way_ : zero_way_;
  }

 private:
  void set_ways(RangeWay best) noexcept {
    discard_way_ = best;
    zero_way_ = subject_.is_device ? RangeWay::threads : best;
  }

  [[nodiscard]] bool knows(std::uint8_t opcode) noexcept {
    io_uring_probe* const probe = ::io_uring_get_probe_ring(&ring_);
    const bool known = probe != nullptr && ::io_uring_opcode_supported(probe, opcode) != 0;
    ::io_uring_free_probe(probe);
    return known;
  }

  // Makes pieces of the ranges that wait, as many as may be in flight.
  void fill() noexcept {
    while (Range* const range = waiting_.front()) {
      Piece* const piece = free_.pop();
      if (piece == nullptr) {
        return;
      }
      piece->range = range;
      piece->way = way(range->op);
      piece->offset = range->offset + (range->length - range->left);
      piece->length = std::min(range->left, subject_.most_bytes(range->op));
      range->left -= piece->length;
      ++range->pieces;
      if (range->left == 0) {
        waiting_.pop();
      }
      start(*piece);
    }
  }

  void start(Piece& piece) noexcept {
    if (piece.way == RangeWay::threads) {
      threads_.start(piece);
      return;
    }
    // There is one for each piece.
    io_uring_sqe& entry = *::io_uring_get_sqe(&ring_);
    if (subject_.is_device) {
      ::io_uring_prep_rw(IORING_OP_URING_CMD, &entry, subject_.fd, nullptr, 0, 0);
      entry.cmd_op = kUringDiscard;
      entry.addr = piece.offset;
      entry.addr3 = piece.length;
    } else {
      ::io_uring_prep_fallocate(&entry, subject_.fd, fallocate_mode(piece.range->op),
                                static_cast<off_t>(piece.offset), static_cast<off_t>(piece.length));
    }
    if (piece.way == RangeWay::uring_worker) {
      entry.flags |= IOSQE_ASYNC;
    }
    entry.user_data = static_cast<std::uint64_t>(&piece - pieces_.data());
  }

  void wait() noexcept {
    collect();
    if (!ended_.empty()) {
      return;
    }
    if (!has_ring_) {
      hear_bell();
    } else {
      if (threads_.unfinished() != 0 && !bell_armed_) {
        io_uring_sqe& entry = *::io_uring_get_sqe(&ring_);
        ::io_uring_prep_poll_add(&entry, bell_.get(), POLLIN);
        entry.user_data = kBell;
        bell_armed_ = true;
      }
      enter(true);
    }
    collect();
  }

  // Waits until a thread has rung since this was last called.
  void hear_bell() const noexcept {
    eventfd_t rings = 0;
    ::eventfd_read(bell_.get(), &rings);
  }

  // Tells the kernel of what has been started; fails for a moment only.
  void enter(bool wait) noexcept {
    if (has_ring_ && (wait || ::io_uring_sq_ready(&ring_) != 0)) {
      ::io_uring_submit_and_wait(&ring_, wait ? 1 : 0);
    }
  }

  void collect() noexcept {
    if (has_ring_) {
      std::array<io_uring_cqe*, 64> completions{};
      while (const unsigned count =
                 ::io_uring_peek_batch_cqe(&ring_, completions.data(), completions.size())) {
        for (unsigned i = 0; i < count; ++i) {
          take(completions[i]->user_data, completions[i]->res);
        }
        ::io_uring_cq_advance(&ring_, count);
      }
    }
    while (Piece* const piece = threads_.collect()) {
      end(*piece, piece->failed_errno);
    }
    fill();
    enter(false);
  }

  void take(std::uint64_t user_data, int result) noexcept {
    if (user_data == kBell) {
      bell_armed_ = false;
      hear_bell();
      return;
    }
    Piece& piece = pieces_[user_data];
    if (result == -EINTR || result == -EAGAIN) {
      start(piece);
    } else if (result == -EOPNOTSUPP && subject_.is_device && subject_.can_discard) {
      // Of this way, not of the device: the next one.
      piece.way = piece.way == RangeWay::uring ? RangeWay::uring_worker : RangeWay::threads;
      discard_way_ = std::max(discard_way_, piece.way);
      start(piece);
    } else {
      end(piece, -result);
    }
  }

  void end(Piece& piece, int failed_errno) noexcept {
    Range& range = *piece.range;
    free_.push(piece);
    if (failed_errno != 0 && range.failed_errno == 0) {
      range.failed_errno = failed_errno;
      // What has not begun will not.
      if (range.left != 0) {
        range.left = 0;
        waiting_.pop();
      }
    }
    if (--range.pieces == 0 && range.left == 0) {
      ended_.push(range);
    }
  }

  const Subject subject_;
  const Descriptor bell_;
  std::vector<Piece> pieces_;
  Fifo<Piece> free_;
  PieceThreads threads_;
  RangeWay discard_way_ = RangeWay::threads;
  RangeWay zero_way_ = RangeWay::threads;
  io_uring ring_{};
  bool has_ring_ = false;
  bool bell_armed_ = false;
  // Ranges of which pieces are still to be made, those that have ended, and all that were not
  // reaped.
  Fifo<Range> waiting_;
  Fifo<Range> ended_;
  std::size_t unreaped_ = 0;
};

RangeQueue::RangeQueue(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
RangeQueue::~RangeQueue() = default;

Result<std::unique_ptr<RangeQueue>> RangeQueue::create(int fd, const RangeQueueOptions& options) {
  if (options.depth == 0 || options.depth > kMostDepth) {
    return Error{Errc::invalid_argument, 0,
                 "discards in flight " + std::to_string(options.depth) + ": expected 1 to " +
                     std::to_string(kMostDepth)};
  }
  auto subject = examine(fd);
  if (!subject) {
    return std::move(subject).error();
  }
  const int bell_fd = ::eventfd(0, EFD_CLOEXEC);
  if (bell_fd < 0) {
    return system_error("discards: eventfd", errno);
  }
  auto impl = std::make_unique<Impl>(*subject, options, bell_fd);
  impl->make_ring(options.depth);
  return std::unique_ptr<RangeQueue>(new RangeQueue(std::move(impl)));
}

void RangeQueue::submit(Range& range) noexcept { impl_->submit(range); }
Range* RangeQueue::reap() noexcept { return impl_->reap(); }
bool RangeQueue::has_completed() noexcept { return impl_->has_completed(); }
RangeWay RangeQueue::way(RangeOp op) const noexcept { return impl_->way(op); }

}  // namespace uzram::os
