#include "frontend/nbd/event_loop.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.hpp"
#include "frontend/nbd/event_loop_parts.hpp"

namespace uzram::nbd {
namespace {

constexpr unsigned kRingEntries = 512;
constexpr unsigned kCompletions = 2048;

}  // namespace

EventLoop::EventLoop(const ExportTable& exports, const LoopOptions& options,
                     std::atomic<std::uint32_t>& connections, ConnectionSink& sink)
    : exports_(exports), options_(options), connection_count_(connections), sink_(sink) {
  // Nothing below grows these, so nothing below runs out of memory by them.
  connections_.reserve(options.max_connections);
  ready_.reserve(options.max_connections);
  working_.reserve(options.max_connections);
  for (Device* const device : exports.devices) {
    const auto same = [device](const auto& lane) { return lane->device == device; };
    if (std::ranges::none_of(lanes_, same)) {
      lanes_.push_back(std::make_unique<Lane>(*device));
    }
  }
}

Result<std::unique_ptr<EventLoop>> EventLoop::create(const ExportTable& exports,
                                                     const LoopOptions& options,
                                                     std::atomic<std::uint32_t>& connections,
                                                     ConnectionSink& sink) {
  std::unique_ptr<EventLoop> loop(new EventLoop(exports, options, connections, sink));
  if (Result<void> made = loop->set_up(); !made) {
    return std::move(made).error();
  }
  return loop;
}

Result<void> EventLoop::set_up() {
  Result<std::unique_ptr<os::Ring>> ring = os::Ring::create(kRingEntries, kCompletions);
  if (!ring) {
    return std::move(ring).error();
  }
  ring_ = std::move(*ring);
  wake_fd_ = ::eventfd(0, EFD_CLOEXEC);
  if (wake_fd_ < 0) {
    return system_error("nbd: eventfd", errno);
  }
  for (const auto& lane : lanes_) {
    lane->queue.set_doorbell(wake_fd_);
  }
  MutexLock lock(mutex_);
  arrivals_.reserve(options_.max_connections);
  return {};
}

EventLoop::~EventLoop() {
  request_stop();
  join();
  ring_.reset();
  // The queues let go of their doorbell.
  lanes_.clear();
  if (wake_fd_ >= 0) {
    ::close(wake_fd_);
  }
}

void EventLoop::add_listener(const ListeningSocket& socket, std::size_t default_export) {
  acceptors_.push_back(std::make_unique<Acceptor>());
  acceptors_.back()->fd = socket.fd();
  acceptors_.back()->default_export = default_export;
}

Result<void> EventLoop::start() {
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return system_error("nbd: thread of an event loop", error.code().value());
  }
  enabled_.wait(kNotYet, std::memory_order_acquire);
  const int enabled = enabled_.load(std::memory_order_acquire);
  return enabled < 0 ? Result<void>(system_error("nbd: io_uring", -enabled)) : Result<void>();
}

void EventLoop::adopt(int fd, std::size_t default_export) noexcept {
  load_.fetch_add(1, std::memory_order_relaxed);
  {
    MutexLock lock(mutex_);
    if (!stop_requested_) {
      // Within what is reserved: connections are counted before they are placed.
      arrivals_.push_back(Arrival{fd, default_export});
      fd = -1;
    }
  }
  if (fd >= 0) {
    ::close(fd);
    load_.fetch_sub(1, std::memory_order_relaxed);
    connection_count_.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  ::eventfd_write(wake_fd_, 1);
}

void EventLoop::request_stop() noexcept {
  {
    MutexLock lock(mutex_);
    stop_requested_ = true;
  }
  ::eventfd_write(wake_fd_, 1);
}

void EventLoop::join() {
  if (thread_.joinable()) {
    thread_.join();
  }
}

void EventLoop::run() noexcept {
  const int enabled = ring_->enable();
  enabled_.store(enabled, std::memory_order_release);
  enabled_.notify_one();
  if (enabled < 0) {
    return;
  }
  arm_wake();
  for (const auto& acceptor : acceptors_) {
    arm_accept(*acceptor);
  }
  while (!stopping_ || !connections_.empty() || accepting() || wake_armed_) {
    const bool wait = ready_.empty() && arm_doorbells();
    ring_->submit(wait, wait ? time_to_tick() : std::nullopt);
    ring_->for_each_completion(
        [this](std::uint64_t user_data, int result) noexcept { dispatch(user_data, result); });
    if (next_tick_ && Clock::now() >= *next_tick_) {
      tick();
    }
    work();
  }
}

// Whether the loop may sleep: each queue that has requests will ring.
bool EventLoop::arm_doorbells() noexcept {
  return std::ranges::all_of(lanes_, [](const auto& lane) {
    return lane->queue.outstanding() == 0 || lane->queue.arm_doorbell();
  });
}

std::optional<std::chrono::milliseconds> EventLoop::time_to_tick() const noexcept {
  if (!next_tick_) {
    return std::nullopt;
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next_tick_ - Clock::now());
  return std::max(left, std::chrono::milliseconds(0));
}

void EventLoop::dispatch(std::uint64_t user_data, int result) noexcept {
  switch (static_cast<Tag>(user_data & kTagMask)) {
    case kReceive:
      on_received(untagged<Connection>(user_data), result);
      return;
    case kSend:
      on_sent(untagged<Connection>(user_data), result);
      return;
    case kAccept:
      on_accept(untagged<Acceptor>(user_data), result);
      return;
    case kWake:
      wake_armed_ = false;
      on_wake();
      return;
    case kCancel:
      return;
  }
}

void EventLoop::arm_wake() noexcept {
  io_uring_sqe& entry = ring_->entry();
  io_uring_prep_read(&entry, wake_fd_, &wake_count_, sizeof wake_count_, 0);
  io_uring_sqe_set_data64(&entry, tagged(this, kWake));
  wake_armed_ = true;
}

void EventLoop::on_wake() noexcept {
  bool stop = false;
  while (true) {
    Arrival arrival{};
    {
      MutexLock lock(mutex_);
      stop = stop_requested_;
      if (arrivals_.empty()) {
        break;
      }
      arrival = arrivals_.back();
      arrivals_.pop_back();
    }
    open_connection(arrival);
  }
  if (stop && !stopping_) {
    begin_stop();
  }
  // While there are connections there may be requests that ring.
  if (!stopping_ || !connections_.empty()) {
    arm_wake();
  }
}

void EventLoop::begin_stop() noexcept {
  stopping_ = true;
  for (const auto& acceptor : acceptors_) {
    if (acceptor->armed) {
      io_uring_sqe& entry = ring_->entry();
      io_uring_prep_cancel64(&entry, tagged(acceptor.get(), kAccept), 0);
      io_uring_sqe_set_data64(&entry, tagged(this, kCancel));
    }
  }
  for (const auto& connection : connections_) {
    connection->session.drain();
    connection->deadline = Clock::now() + options_.stop_timeout;
    enqueue(*connection);
  }
}

void EventLoop::arm_accept(Acceptor& acceptor) noexcept {
  io_uring_sqe& entry = ring_->entry();
  io_uring_prep_accept(&entry, acceptor.fd, nullptr, nullptr, SOCK_CLOEXEC);
  io_uring_sqe_set_data64(&entry, tagged(&acceptor, kAccept));
  acceptor.armed = true;
}

void EventLoop::on_accept(Acceptor& acceptor, int result) noexcept {
  acceptor.armed = false;
  if (result >= 0) {
    acceptor.warned = false;
    if (stopping_) {
      ::close(result);
    } else if (connection_count_.fetch_add(1, std::memory_order_relaxed) >=
               options_.max_connections) {
      connection_count_.fetch_sub(1, std::memory_order_relaxed);
      ::close(result);
    } else {
      sink_.place(result, acceptor.default_export);
    }
  } else if (result != -ECONNABORTED && result != -EINTR && result != -EAGAIN && !stopping_) {
    // No descriptors or memory: asking again at once would spin.
    acceptor.paused = true;
    if (!acceptor.warned) {
      acceptor.warned = true;
      log(LogLevel::warning,
          system_error("nbd: connections have to wait: accept", -result).message);
    }
    request_tick();
    return;
  }
  if (!stopping_) {
    arm_accept(acceptor);
  }
}

void EventLoop::resume_accepting() noexcept {
  for (const auto& acceptor : acceptors_) {
    if (std::exchange(acceptor->paused, false) && !stopping_) {
      arm_accept(*acceptor);
    }
  }
}

bool EventLoop::accepting() const noexcept {
  return std::ranges::any_of(acceptors_, [](const auto& acceptor) { return acceptor->armed; });
}

void EventLoop::request_tick() noexcept {
  if (!next_tick_) {
    next_tick_ = Clock::now() + kTick;
  }
}

void EventLoop::tick() noexcept {
  const Clock::time_point now = Clock::now();
  next_tick_.reset();
  resume_accepting();
  for (const auto& connection : connections_) {
    if (connection->deadline && now >= *connection->deadline) {
      hang_up(*connection);
      enqueue(*connection);
    } else if (connection->deadline) {
      request_tick();
    }
    if (connection->silent_ticks < kSilentTicks) {
      ++connection->silent_ticks;
      request_tick();
      if (connection->silent_ticks == kSilentTicks) {
        connection->session.trim();
      }
    }
  }
}

}  // namespace uzram::nbd
