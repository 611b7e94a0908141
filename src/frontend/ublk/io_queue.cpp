#include "frontend/ublk/io_queue.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <liburing.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.hpp"
#include "base/size.hpp"
#include "frontend/ublk/wire_result.hpp"
#include "os/background_thread.hpp"
#include "os/swap_fitness.hpp"

namespace uzram::ublk {
namespace {

// Large requests in flight in one queue.
constexpr std::size_t kLargestInFlight = 4;
// What a completion is about when it is no tag.
constexpr std::uint64_t kWake = ~std::uint64_t{0};

std::uint32_t opcode(IoOp op, bool ioctl_encoding) noexcept {
  return (ioctl_encoding ? kWritesIo : 0) | static_cast<std::uint32_t>(op);
}

// Room for the largest requests, and for a page of each tag.
std::size_t arena_bytes(const QueueConfig& config) noexcept {
  const std::size_t large = kLargestInFlight * config.max_io_bytes;
  const std::size_t small = std::size_t{config.depth} * BufferArena::kUnitBytes;
  return round_up(std::max(large, small), BufferArena::kUnitBytes);
}

bool has_data(IoKind kind) noexcept { return kind == IoKind::read || kind == IoKind::write; }

std::optional<Op> op_of(IoKind kind, std::uint32_t flags) noexcept {
  switch (kind) {
    case IoKind::read:
      return Op::read;
    case IoKind::write:
      return Op::write;
    case IoKind::flush:
      return Op::flush;
    case IoKind::discard:
      return Op::discard;
    case IoKind::write_zeroes:
      return (flags & kNoUnmap) != 0 ? Op::allocate_zeroes : Op::write_zeroes;
  }
  return std::nullopt;
}

// Calls transfer(done) for the bytes that are left until all `size` are over. 0 or a negative errno.
template <typename Transfer>
std::int32_t transfer_all(std::size_t size, Transfer transfer) noexcept {
  for (std::size_t done = 0; done < size;) {
    const ssize_t moved = transfer(done);
    if (moved > 0) {
      done += static_cast<std::size_t>(moved);
    } else if (moved == 0 || errno != EINTR) {
      return moved == 0 ? -EIO : -errno;
    }
  }
  return 0;
}

}  // namespace

IoQueue::IoQueue(const QueueConfig& config, Device& device) : config_(config), queue_(device) {}

Result<std::unique_ptr<IoQueue>> IoQueue::create(const QueueConfig& config, Device& device) {
  std::unique_ptr<IoQueue> queue(new IoQueue(config, device));
  if (Result<void> made = queue->set_up(); !made) {
    return std::move(made).error();
  }
  return queue;
}

Result<void> IoQueue::set_up() {
  const std::size_t bytes =
      round_up(std::uint64_t{config_.depth} * sizeof(IoDescriptor), os::kSystemPage);
  descriptors_ = os::map_driver_memory(config_.fd, descriptors_offset(config_.index), bytes);
  if (descriptors_.data() == nullptr) {
    return system_error(fmt::format("ublk: descriptors of queue {}", config_.index), errno);
  }
  Result<std::unique_ptr<BufferArena>> arena =
      BufferArena::create(arena_bytes(config_), config_.present_buffers);
  if (!arena) {
    return std::move(arena).error();
  }
  arena_ = std::move(*arena);
  Result<std::unique_ptr<os::Ring>> ring =
      os::Ring::create(config_.depth + 1, 2 * config_.depth + 2);
  if (!ring) {
    return std::move(ring).error();
  }
  ring_ = std::move(*ring);
  wake_ = os::Descriptor(::eventfd(0, EFD_CLOEXEC));
  if (!wake_.is_open()) {
    return system_error("ublk: eventfd", errno);
  }
  queue_.set_doorbell(wake_.get());
  tags_.resize(config_.depth);
  for (std::uint32_t i = 0; i < config_.depth; ++i) {
    tags_[i].request.user_data = i;
  }
  batch_.reserve(config_.depth);
  committed_.reserve(config_.depth);
  return {};
}

IoQueue::~IoQueue() {
  give_up();
  join();
}

Result<void> IoQueue::start(std::function<void()> on_end) {
  on_end_ = std::move(on_end);
  Result<std::thread> thread =
      os::start_background_thread(fmt::format("ublk-{}", config_.index), [this] { run(); });
  if (!thread) {
    return std::move(thread).error();
  }
  thread_ = std::move(*thread);
  fetched_.wait(kNotYet, std::memory_order_acquire);
  const int fetched = fetched_.load(std::memory_order_acquire);
  return fetched < 0 ? Result<void>(system_error(
                           fmt::format("ublk: fetching from queue {}", config_.index), -fetched))
                     : Result<void>();
}

void IoQueue::give_up() noexcept {
  given_up_.store(true, std::memory_order_relaxed);
  if (wake_.is_open()) {
    ::eventfd_write(wake_.get(), 1);
  }
}

void IoQueue::join() {
  if (thread_.joinable()) {
    thread_.join();
  }
}

void IoQueue::run() noexcept {
  bind();
  if (os::memory_is_locked()) {
    os::take_stack();
  }
  const int fetched = fetch_all();
  fetched_.store(fetched, std::memory_order_release);
  fetched_.notify_one();
  serve();
  end();
  on_end_();
}

void IoQueue::bind() const noexcept {
  cpu_set_t usable;
  cpu_set_t wanted;
  if (::sched_getaffinity(0, sizeof usable, &usable) != 0) {
    return;
  }
  CPU_AND(&wanted, &usable, &config_.cpus);
  if (CPU_COUNT(&wanted) != 0) {
    ::sched_setaffinity(0, sizeof wanted, &wanted);
  }
}

// Returns 0 or a negative errno.
int IoQueue::fetch_all() noexcept {
  if (const int enabled = ring_->enable(); enabled < 0) {
    return enabled;
  }
  arm_wake();
  live_tags_ = config_.depth;
  for (std::uint32_t i = 0; i < config_.depth; ++i) {
    send(IoOp::fetch, i, 0, nullptr);
  }
  // What the driver refuses it refuses at once.
  ring_->submit(false, std::nullopt);
  ring_->for_each_completion(
      [this](std::uint64_t user_data, int result) noexcept { dispatch(user_data, result); });
  return refused_;
}

void IoQueue::serve() noexcept {
  while (live_tags_ != 0 && !given_up_.load(std::memory_order_relaxed)) {
    ring_->submit(may_wait(), std::nullopt);
    release_committed();
    ring_->for_each_completion(
        [this](std::uint64_t user_data, int result) noexcept { dispatch(user_data, result); });
    take_in();
    queue_.submit(batch_);
    batch_.clear();
    while (Request* const request = queue_.reap()) {
      finish(*request);
    }
  }
}

// Whether there is nothing to do until something completes: each source of it will wake the ring.
bool IoQueue::may_wait() noexcept {
  if (!incoming_.empty() && (buffers_freed_ || !committed_.empty())) {
    return false;
  }
  return queue_.outstanding() == 0 || queue_.arm_doorbell();
}

void IoQueue::end() noexcept {
  while (queue_.wait() != nullptr) {
  }
  // The ring may not be left with a read into this object.
  ::eventfd_write(wake_.get(), 1);
  while (wake_armed_) {
    ring_->submit(true, std::nullopt);
    ring_->for_each_completion([this](std::uint64_t user_data, int) noexcept {
      wake_armed_ = wake_armed_ && user_data != kWake;
    });
  }
  descriptors_ = os::Mapping();
}

void IoQueue::arm_wake() noexcept {
  io_uring_sqe& entry = ring_->entry();
  io_uring_prep_read(&entry, wake_.get(), &wake_count_, sizeof wake_count_, 0);
  io_uring_sqe_set_data64(&entry, kWake);
  wake_armed_ = true;
}

void IoQueue::dispatch(std::uint64_t user_data, std::int32_t result) noexcept {
  if (user_data == kWake) {
    arm_wake();
    return;
  }
  on_tag(static_cast<std::uint32_t>(user_data), result);
}

void IoQueue::on_tag(std::uint32_t index, std::int32_t result) noexcept {
  if (result < 0) {
    --live_tags_;
    // ENODEV: the device is being stopped.
    if (result != -ENODEV && refused_ == 0) {
      refused_ = result;
      log(LogLevel::error,
          system_error(fmt::format("ublk: queue {}, tag {}", config_.index, index), -result)
              .message);
    }
    return;
  }
  read_descriptor(index);
}

void IoQueue::read_descriptor(std::uint32_t index) noexcept {
  Tag& tag = tags_[index];
  IoDescriptor descriptor;
  std::memcpy(&descriptor, descriptors_.data() + index * sizeof descriptor, sizeof descriptor);
  tag.kind = static_cast<IoKind>(descriptor.operation & kKindMask);
  const std::optional<Op> op = op_of(tag.kind, descriptor.operation);
  tag.request.offset = descriptor.start_sector * kSectorSize;
  tag.request.length = std::uint64_t{descriptor.sectors} * kSectorSize;
  if (tag.data_asked) {
    // It has come, perhaps not all of it: the kernel sends the rest again.
    tag.data_asked = false;
    batch_.push_back(&tag.request);
  } else if (!op) {
    commit(tag, wire_error(Errc::unsupported));
  } else if (config_.read_only && *op != Op::read && *op != Op::flush) {
    commit(tag, wire_error(Errc::read_only));
  } else if (has_data(tag.kind) && tag.request.length > config_.max_io_bytes) {
    commit(tag, wire_error(Errc::out_of_range));
  } else {
    tag.request.op = *op;
    incoming_.push(tag.request);
  }
}

void IoQueue::take_in() noexcept {
  buffers_freed_ = false;
  while (Request* const request = incoming_.front()) {
    Tag& tag = tag_of(*request);
    if (!take_buffer(tag)) {
      return;
    }
    incoming_.pop();
    if (tag.kind == IoKind::write && config_.data_path == DataPath::get_data) {
      tag.data_asked = true;
      send(IoOp::need_get_data, static_cast<std::uint32_t>(request->user_data), 0, request->buffer);
      continue;
    }
    const std::int32_t copied = tag.kind == IoKind::write ? copy_data(tag) : 0;
    if (copied < 0) {
      commit(tag, copied);
    } else {
      batch_.push_back(request);
    }
  }
}

bool IoQueue::take_buffer(Tag& tag) noexcept {
  if (!has_data(tag.kind)) {
    return true;
  }
  tag.request.buffer = arena_->take(tag.request.length);
  tag.buffer_bytes = tag.request.buffer == nullptr ? 0 : tag.request.length;
  return tag.request.buffer != nullptr;
}

void IoQueue::release_buffer(Tag& tag) noexcept {
  if (tag.buffer_bytes != 0) {
    arena_->give_back(tag.request.buffer, std::exchange(tag.buffer_bytes, 0));
    tag.request.buffer = nullptr;
    buffers_freed_ = true;
  }
}

void IoQueue::release_committed() noexcept {
  for (Tag* const tag : committed_) {
    release_buffer(*tag);
  }
  committed_.clear();
}

std::int32_t IoQueue::copy_data(const Tag& tag) const noexcept {
  const std::uint64_t data =
      data_offset(config_.index, static_cast<std::uint32_t>(tag.request.user_data));
  return transfer_all(tag.request.length, [&](std::size_t done) noexcept {
    std::byte* const piece = tag.request.buffer + done;
    const std::size_t left = tag.request.length - done;
    const auto at = static_cast<off_t>(data + done);
    return tag.kind == IoKind::write ? ::pread(config_.fd, piece, left, at)
                                     : ::pwrite(config_.fd, piece, left, at);
  });
}

void IoQueue::finish(Request& request) noexcept {
  Tag& tag = tag_of(request);
  std::int32_t result = wire_error(request.status);
  if (result == 0 && tag.kind == IoKind::read && config_.data_path == DataPath::user_copy) {
    result = copy_data(tag);
  }
  if (result == 0 && has_data(tag.kind)) {
    result = static_cast<std::int32_t>(request.length);
  }
  commit(tag, result);
}

void IoQueue::commit(Tag& tag, std::int32_t result) noexcept {
  const auto index = static_cast<std::uint32_t>(tag.request.user_data);
  if (config_.data_path == DataPath::user_copy) {
    send(IoOp::commit_and_fetch, index, result, nullptr);
    release_buffer(tag);
    return;
  }
  // A read's commit must name a buffer, also when there is nothing in it.
  const std::byte* const buffer =
      tag.buffer_bytes != 0 ? tag.request.buffer : reinterpret_cast<const std::byte*>(&tag.request);
  send(IoOp::commit_and_fetch, index, result, tag.kind == IoKind::read ? buffer : nullptr);
  committed_.push_back(&tag);
}

void IoQueue::send(IoOp op, std::uint32_t index, std::int32_t result,
                   const std::byte* address) noexcept {
  io_uring_sqe& entry = ring_->entry();
  io_uring_prep_rw(IORING_OP_URING_CMD, &entry, config_.fd, nullptr, 0, 0);
  entry.cmd_op = opcode(op, config_.ioctl_encoding);
  io_uring_sqe_set_data64(&entry, index);
  IoCommand command{};
  command.queue_id = static_cast<std::uint16_t>(config_.index);
  command.tag = static_cast<std::uint16_t>(index);
  command.result = result;
  command.address = reinterpret_cast<std::uintptr_t>(address);
  std::memcpy(reinterpret_cast<std::byte*>(&entry) + kCommandOffset, &command, sizeof command);
}

}  // namespace uzram::ublk
