#include "bench/nbd_port.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace uzram::bench {
NbdPort::NbdPort(NbdConnection connection, std::uint32_t iodepth)
    : connection_(std::move(connection)),
      can_trim_(connection_.can_trim()),
      can_zero_(connection_.can_zero()),
      can_flush_(connection_.can_flush()),
      slots_(std::max(iodepth, 1U)) {
  for (Slot& slot : slots_) {
    slot.port = this;
    slot.next_free = std::exchange(free_, &slot);
  }
}

void NbdPort::submit(std::span<Request* const> batch) noexcept {
  for (Request* const request : batch) {
    start(*request);
  }
}

Request* NbdPort::reap() noexcept {
  while (completed_.empty()) {
    if (in_flight_ == 0) {
      return nullptr;
    }
    wait();
  }
  return completed_.pop();
}

void NbdPort::execute(Request& request) noexcept {
  start(request);
  [[maybe_unused]] const Request* const done = reap();
}

std::string NbdPort::failure() const {
  if (lost_) {
    return loss_.empty() ? "the server closed the connection"
                         : fmt::format("the server closed the connection ({})", loss_);
  }
  if (not_offered_) {
    return fmt::format("the server does not offer a {}", op_name(*not_offered_));
  }
  const std::string range =
      refusal_.op == Op::flush
          ? ""
          : fmt::format(" of {} bytes at byte {}", refusal_.length, refusal_.offset);
  return fmt::format("the server refused a {}{}: {}", op_name(refusal_.op), range,
                     std::generic_category().message(refusal_.number));
}

int NbdPort::on_completion(void* slot, int* error) noexcept {
  Slot& done = *static_cast<Slot*>(slot);
  if (*error != 0) {
    // No answer's error; libnbd gives up what is in flight when the connection ends.
    done.port->lost_ |= *error == ENOTCONN;
    done.port->fail(done, *error);
  }
  done.port->finish_piece(done);
  // libnbd forgets the command at once.
  return 1;
}

void NbdPort::start(Request& request) noexcept {
  Slot& slot = *std::exchange(free_, free_->next_free);
  slot.request = &request;
  slot.pieces = 1;
  ++in_flight_;
  request.status = offered(request.op);
  const bool has_payload = request.op == Op::read || request.op == Op::write;
  const std::uint64_t longest = has_payload ? connection_.longest_payload() : kNbdLongestRange;
  std::uint64_t from = 0;
  // A server that offers no flush has nothing to flush.
  bool more = request.op != Op::flush || can_flush_;
  while (more && request.status == Errc::ok) {
    const std::uint64_t length =
        request.op == Op::flush ? 0 : std::min(request.length - from, longest);
    ++slot.pieces;
    if (send(slot, from, length) < 0) {
      --slot.pieces;
      fail(slot, nbd_get_errno());
      if (is_over()) {
        // Completes this request as well.
        lose(nbd_failure());
        return;
      }
    }
    from += length;
    more = request.op != Op::flush && from < request.length;
  }
  finish_piece(slot);
}

Errc NbdPort::offered(Op op) noexcept {
  if (lost_) {
    return Errc::system;
  }
  const bool is_offered = op == Op::discard                                     ? can_trim_
                          : op == Op::write_zeroes || op == Op::allocate_zeroes ? can_zero_
                                                                                : true;
  if (!is_offered) {
    not_offered_ = op;
  }
  return is_offered ? Errc::ok : Errc::unsupported;
}

std::int64_t NbdPort::send(Slot& slot, std::uint64_t from, std::uint64_t length) noexcept {
  const Request& request = *slot.request;
  nbd_handle* const handle = connection_.handle();
  const nbd_completion_callback done{&NbdPort::on_completion, &slot, nullptr};
  const std::uint64_t offset = request.offset + from;
  switch (request.op) {
    case Op::read:
      return nbd_aio_pread(handle, request.buffer + from, length, offset, done, 0);
    case Op::write:
      return nbd_aio_pwrite(handle, request.buffer + from, length, offset, done, 0);
    case Op::discard:
      return nbd_aio_trim(handle, length, offset, done, 0);
    case Op::write_zeroes:
      return nbd_aio_zero(handle, length, offset, done, 0);
    case Op::allocate_zeroes:
      return nbd_aio_zero(handle, length, offset, done, LIBNBD_CMD_FLAG_NO_HOLE);
    case Op::flush:
      return nbd_aio_flush(handle, done, 0);
  }
  return -1;
}

void NbdPort::fail(Slot& slot, int number) noexcept {
  Request& request = *slot.request;
  request.status = status_of_errno(number);
  not_offered_.reset();
  refusal_ = Refusal{request.op, request.offset, request.length, number};
}

void NbdPort::finish_piece(Slot& slot) noexcept {
  if (--slot.pieces != 0) {
    return;
  }
  Request* const request = std::exchange(slot.request, nullptr);
  slot.next_free = std::exchange(free_, &slot);
  --in_flight_;
  completed_.push(*request);
}

void NbdPort::wait() noexcept {
  if (nbd_poll(connection_.handle(), -1) < 0 && nbd_get_errno() != EINTR) {
    lose(nbd_failure());
  } else if (lost_) {
    lose({});
  }
}

bool NbdPort::is_over() const noexcept {
  return nbd_aio_is_dead(connection_.handle()) > 0 || nbd_aio_is_closed(connection_.handle()) > 0;
}

void NbdPort::lose(std::string why) noexcept {
  lost_ = true;
  loss_ = std::move(why);
  for (Slot& slot : slots_) {
    if (slot.request != nullptr) {
      slot.request->status = Errc::system;
      slot.pieces = 1;
      finish_piece(slot);
    }
  }
}

}  // namespace uzram::bench
