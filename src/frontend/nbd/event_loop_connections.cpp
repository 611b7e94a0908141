// The part of EventLoop that deals with connections.
#include <algorithm>
#include <cassert>
#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "frontend/nbd/event_loop.hpp"
#include "frontend/nbd/event_loop_parts.hpp"

namespace uzram::nbd {
namespace {

// What the kernel may hold of replies on a Unix socket, so that a batch leaves in one send.
constexpr int kUnixSendBytes = 1 << 20;

void tune_socket(int fd) noexcept {
  // None of these is needed to be right, so none is checked.
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  int domain = 0;
  socklen_t size = sizeof domain;
  if (::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX) {
    // TCP sizes its buffers itself, and better.
    ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kUnixSendBytes, sizeof kUnixSendBytes);
  }
}

}  // namespace

void EventLoop::open_connection(Arrival arrival) noexcept {
  std::unique_ptr<Connection> connection(new (std::nothrow) Connection(
      arrival.fd, exports_, arrival.default_export, options_.max_reply_bytes));
  if (!connection || !connection->session.greet()) {
    if (!connection) {
      ::close(arrival.fd);
    }
    load_.fetch_sub(1, std::memory_order_relaxed);
    connection_count_.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  tune_socket(arrival.fd);
  connection->deadline = Clock::now() + options_.handshake_timeout;
  connection->index = connections_.size();
  connections_.push_back(std::move(connection));
  enqueue(*connections_.back());
}

void EventLoop::on_received(Connection& connection, int result) noexcept {
  connection.receiving = false;
  if (result > 0) {
    connection.session.received(static_cast<std::size_t>(result));
  } else if (result == 0) {
    connection.session.end_input();
  } else if (result != -EINTR && result != -EAGAIN) {
    hang_up(connection);
  }
  enqueue(connection);
}

void EventLoop::on_sent(Connection& connection, int result) noexcept {
  connection.sending = false;
  if (result > 0) {
    connection.session.sent(static_cast<std::size_t>(result));
  } else if (result != -EINTR && result != -EAGAIN) {
    hang_up(connection);
  }
  enqueue(connection);
}

void EventLoop::enqueue(Connection& connection) noexcept {
  connection.silent_ticks = 0;
  request_tick();
  if (!std::exchange(connection.ready, true)) {
    ready_.push_back(&connection);
  }
}

// One round: everything that is ready is laid out, submitted, and answered.
void EventLoop::work() noexcept {
  working_.swap(ready_);
  for (Connection* const connection : working_) {
    prepare(*connection);
  }
  submit_batches();
  for (Connection* const connection : working_) {
    connection->ready = false;
    settle(*connection);
  }
  working_.clear();
}

EventLoop::Lane& EventLoop::lane_of(const Device* device) noexcept {
  const auto found = std::ranges::find_if(
      lanes_, [device](const auto& lane) { return device == nullptr || lane->device == device; });
  assert(found != lanes_.end());
  return **found;
}

void EventLoop::prepare(Connection& connection) noexcept {
  // Before the next batch, or replies to one batch after another would leave no room for these.
  if (!connection.session.batch_open()) {
    connection.session.answer_long();
  }
  if (connection.hung_up || !connection.session.runnable()) {
    return;
  }
  // A handshake adds no Requests, so any lane will do for it.
  Lane& lane = lane_of(connection.session.device());
  if (lane.batch.capacity() - lane.batch.size() >=
      Transmission::kMaxRequests + Transmission::kMaxLong) {
    connection.session.prepare(tagged(&connection, kReceive), lane.batch);
  }
}

void EventLoop::submit_batches() noexcept {
  for (const auto& lane : lanes_) {
    if (!lane->batch.empty()) {
      lane->queue.submit(lane->batch);
      lane->batch.clear();
    }
    while (Request* const request = lane->queue.reap()) {
      auto& connection = untagged<Connection>(request->user_data);
      connection.session.complete(*request);
      if (connection.session.outstanding() == 0) {
        enqueue(connection);
      }
    }
  }
}

void EventLoop::settle(Connection& connection) noexcept {
  Session& session = connection.session;
  if (session.batch_open()) {
    if (session.outstanding() != 0) {
      return;
    }
    session.finish();
  }
  session.answer_long();
  if (session.over()) {
    hang_up(connection);
  }
  if (connection.hung_up) {
    // What is under way still refers to it.
    if (!connection.receiving && !connection.sending && session.long_outstanding() == 0) {
      destroy(connection);
    }
    return;
  }
  if (!session.draining() && !session.in_handshake()) {
    connection.deadline.reset();
  } else if (!connection.deadline) {
    connection.deadline = Clock::now() + options_.stop_timeout;
  }
  if (!connection.sending && !session.output().empty()) {
    arm_send(connection);
  }
  if (!connection.receiving && session.wants_input()) {
    arm_receive(connection);
  }
  if (session.runnable()) {
    enqueue(connection);
  }
}

void EventLoop::arm_receive(Connection& connection) noexcept {
  const unsigned pieces = connection.session.space(connection.pieces);
  if (pieces == 0) {
    hang_up(connection);
    enqueue(connection);
    return;
  }
  io_uring_sqe& entry = ring_->entry();
  if (pieces == 1) {
    io_uring_prep_recv(&entry, connection.fd, connection.pieces[0].iov_base,
                       connection.pieces[0].iov_len, 0);
  } else {
    connection.message = msghdr{};
    connection.message.msg_iov = connection.pieces.data();
    connection.message.msg_iovlen = pieces;
    io_uring_prep_recvmsg(&entry, connection.fd, &connection.message, 0);
  }
  io_uring_sqe_set_data64(&entry, tagged(&connection, kReceive));
  connection.receiving = true;
}

void EventLoop::arm_send(Connection& connection) noexcept {
  const std::span<const std::byte> output = connection.session.output();
  io_uring_sqe& entry = ring_->entry();
  // MSG_WAITALL has newer kernels go on after a short send by themselves.
  io_uring_prep_send(&entry, connection.fd, output.data(), output.size(),
                     MSG_NOSIGNAL | MSG_WAITALL);
  io_uring_sqe_set_data64(&entry, tagged(&connection, kSend));
  connection.sending = true;
}

void EventLoop::hang_up(Connection& connection) noexcept {
  if (!std::exchange(connection.hung_up, true)) {
    // Ends the receive and the send that are on their way, too.
    ::shutdown(connection.fd, SHUT_RDWR);
  }
}

void EventLoop::destroy(Connection& connection) noexcept {
  const std::size_t index = connection.index;
  connections_.back()->index = index;
  std::swap(connections_[index], connections_.back());
  connections_.pop_back();
  load_.fetch_sub(1, std::memory_order_relaxed);
  connection_count_.fetch_sub(1, std::memory_order_relaxed);
  if (stopping_ && connections_.empty() && wake_armed_) {
    // Nothing else ends the read that waits for a ring.
    ::eventfd_write(wake_fd_, 1);
  }
  resume_accepting();
}

}  // namespace uzram::nbd
