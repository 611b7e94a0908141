// IoQueue: one hardware queue of a ublk device, and the thread that serves it.
//
// Role: turns the requests that the kernel hands to a tag into Requests of a Device, and their results
// into commits. All that has arrived by one wake-up is submitted as one batch; what has completed is
// committed with the system call that waits for more.
// Units: bytes; sectors where the protocol has them.
// Ownership: the descriptor of the character device is the Server's; the Device outlives the queue.
// Errors: trouble with a request fails that request. Every tag that was fetched is committed, whatever
// happens: one that is not blocks the removal of the device, and with it all of the driver's commands.
// Threads: create, start, join by one thread; give_up by any; everything private by the queue's own, for
// the kernel takes a commit only from the thread that has fetched. Completions of workers come back to
// it by the doorbell of its Queue.
// Invariants: 1. A tag is the kernel's (fetched, nothing to do), waits for a buffer, is carried out, or
// has ended. 2. A buffer belongs to one tag, from before its data is fetched until after its commit has
// been submitted where the driver copies, and until the data has been handed over where we do.
// Cost: one system call for a batch, and one for each read and write to bring its data over (user_copy).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <sched.h>

#include "uzram/device.hpp"
#include "uzram/error.hpp"
#include "uzram/fifo.hpp"
#include "uzram/request.hpp"

#include "frontend/ublk/abi.hpp"
#include "frontend/ublk/buffer_arena.hpp"
#include "frontend/ublk/features.hpp"
#include "os/descriptor.hpp"
#include "os/memory_file.hpp"
#include "os/ring.hpp"

namespace uzram::ublk {

struct QueueConfig {
  // Of the character device.
  int fd = -1;
  std::uint32_t index = 0;
  std::uint32_t depth = 0;
  std::uint32_t max_io_bytes = 0;
  DataPath data_path = DataPath::user_copy;
  bool ioctl_encoding = true;
  bool read_only = false;
  // The memory of the buffers is taken when the queue is made.
  bool present_buffers = false;
  // Where its requests come from; none: anywhere.
  cpu_set_t cpus{};
};

class IoQueue {
 public:
  // Errors: no_space, system, unsupported (no io_uring).
  static Result<std::unique_ptr<IoQueue>> create(const QueueConfig& config, Device& device);
  // Gives up and joins.
  ~IoQueue();
  IoQueue(const IoQueue&) = delete;
  IoQueue& operator=(const IoQueue&) = delete;

  // Starts the thread and returns when it has fetched all tags. `on_end` is called by it as the last
  // thing it does, with nothing of the device mapped any more. Errors: system.
  Result<void> start(std::function<void()> on_end);
  // Has the thread end though its tags have not come back: for devices that never started.
  void give_up() noexcept;
  // Returns when the kernel has taken all tags back, or after give_up().
  void join();

 private:
  struct Tag {
    Request request;
    IoKind kind = IoKind::read;
    // The driver has been asked for its data.
    bool data_asked = false;
    // Of request.buffer; 0: it has none.
    std::size_t buffer_bytes = 0;
  };

  IoQueue(const QueueConfig& config, Device& device);
  Result<void> set_up();

  void run() noexcept;
  [[nodiscard]] int fetch_all() noexcept;
  void serve() noexcept;
  void end() noexcept;
  void bind() const noexcept;
  [[nodiscard]] bool may_wait() noexcept;

  void arm_wake() noexcept;
  void dispatch(std::uint64_t user_data, std::int32_t result) noexcept;
  void on_tag(std::uint32_t index, std::int32_t result) noexcept;
  // Reads the tag's descriptor.
  void read_descriptor(std::uint32_t index) noexcept;
  // Puts what has arrived into the batch, as far as there are buffers.
  void take_in() noexcept;
  [[nodiscard]] bool take_buffer(Tag& tag) noexcept;
  void release_buffer(Tag& tag) noexcept;
  void release_committed() noexcept;
  // A write's data from the kernel, a read's to it. 0 or a negative errno.
  [[nodiscard]] std::int32_t copy_data(const Tag& tag) const noexcept;
  void finish(Request& request) noexcept;
  void commit(Tag& tag, std::int32_t result) noexcept;
  void send(IoOp op, std::uint32_t index, std::int32_t result, const std::byte* address) noexcept;

  [[nodiscard]] Tag& tag_of(const Request& request) noexcept { return tags_[request.user_data]; }

  const QueueConfig config_;
  os::Mapping descriptors_;
  std::unique_ptr<BufferArena> arena_;
  std::unique_ptr<os::Ring> ring_;
  os::Descriptor wake_;
  Queue queue_;
  std::vector<Tag> tags_;

  static constexpr int kNotYet = 1;
  // 0 when all tags have been fetched, or a negative errno.
  std::atomic<int> fetched_{kNotYet};
  std::atomic<bool> given_up_{false};
  std::function<void()> on_end_;
  std::thread thread_;

  // Below: the queue's thread only, once started.
  std::uint64_t wake_count_ = 0;
  bool wake_armed_ = false;
  // Tags that have not come back for good.
  std::uint32_t live_tags_ = 0;
  // What the driver has refused, 0 for nothing.
  int refused_ = 0;
  // Arrived, waiting for a buffer.
  Fifo<Request> incoming_;
  bool buffers_freed_ = false;
  std::vector<Request*> batch_;
  // Committed; their buffers are the driver's until that has been submitted.
  std::vector<Tag*> committed_;
};

}  // namespace uzram::ublk
