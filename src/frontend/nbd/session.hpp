// Session: one connection of a client from greeting to goodbye, without I/O.
//
// Role: joins the handshake, the transmission and the buffers between them and a socket. The
// event loop moves bytes and Requests: receive into space(), prepare() while runnable(), submit
// what it hands out, complete() each, finish(), send output().
// Units: bytes.
// Ownership: the exports belong to the caller and must outlive it.
// Errors: all of them end in over(), after what is owed to the client has been sent.
// Threads: one at a time.
// Invariants: 1. Two buffers of replies: one on its way, one being laid out; together they hold
// at most about the limit given, or a single larger reply. 2. Bytes are received only when what
// came before is used up and the replies to it are on their way (wants_input()).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <sys/uio.h>

#include "uzram/request.hpp"

#include "frontend/nbd/export_table.hpp"
#include "frontend/nbd/handshake.hpp"
#include "frontend/nbd/intake.hpp"
#include "frontend/nbd/transmission.hpp"

namespace uzram::nbd {

class Session {
 public:
  // REQUIRES: default_export < exports.infos.size().
  Session(const ExportTable& exports, std::size_t default_export,
          std::size_t max_reply_bytes) noexcept
      : exports_(exports),
        max_reply_bytes_(max_reply_bytes),
        handshake_(exports.infos, default_export) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Lays out the greeting. False: no memory.
  [[nodiscard]] bool greet() noexcept;

  // Receiving.
  [[nodiscard]] bool wants_input() const noexcept;
  // As Intake::space. REQUIRES: wants_input(). Only one receive may be on its way.
  [[nodiscard]] unsigned space(std::array<iovec, 2>& pieces) noexcept {
    return intake_.space(pieces);
  }
  // `count` bytes have come into what space() returned.
  void received(std::size_t count) noexcept;
  // The client will send no more; what it has sent is still answered.
  void end_input() noexcept;
  // No more requests are taken; the replies to those taken are still sent.
  void drain() noexcept;

  // Working.
  [[nodiscard]] bool runnable() const noexcept;
  // Takes what has arrived: steps of the handshake, or a batch whose Requests are added to `batch`
  // with user_data as given. finish() must follow when all of them are complete, which is at once
  // when there are none; long requests, see transmission.hpp, may be complete later. REQUIRES:
  // runnable(); batch has room for Transmission::kMaxRequests + kMaxLong.
  void prepare(std::uint64_t user_data, std::vector<Request*>& batch) noexcept;
  void complete(const Request& request) noexcept { transmission_->complete(request); }
  [[nodiscard]] bool batch_open() const noexcept { return batch_open_; }
  [[nodiscard]] std::size_t outstanding() const noexcept {
    return transmission_ ? transmission_->outstanding() : 0;
  }
  // REQUIRES: batch_open(), outstanding() == 0.
  void finish() noexcept;
  // Requests that are not complete and may be so only after finish().
  [[nodiscard]] std::size_t long_outstanding() const noexcept {
    return transmission_ ? transmission_->long_outstanding() : 0;
  }
  // Lays out replies to those that are complete, when there is room for them. REQUIRES: no batch is
  // open.
  void answer_long() noexcept;

  // Sending.
  [[nodiscard]] std::span<const std::byte> output() const noexcept {
    return sending_.bytes().subspan(sent_bytes_);
  }
  // The first `count` bytes of output() are on their way.
  void sent(std::size_t count) noexcept;

  // Nothing is left to be done but to close.
  [[nodiscard]] bool over() const noexcept;
  [[nodiscard]] bool in_handshake() const noexcept { return phase_ == Phase::handshake; }
  [[nodiscard]] bool draining() const noexcept { return phase_ == Phase::draining; }
  // The export's device; nullptr before the client has chosen.
  [[nodiscard]] Device* device() const noexcept {
    return transmission_ ? &transmission_->device() : nullptr;
  }

  // Gives back memory that is not in use; for a connection that has fallen silent.
  void trim() noexcept;

 private:
  enum class Phase : std::uint8_t {
    handshake,
    transmission,
    draining,  // only output is left
  };

  void negotiate() noexcept;
  void enter_transmission() noexcept;
  // Puts what is laid out on its way, if the way is free.
  void send_laid_out() noexcept;

  const ExportTable& exports_;
  std::size_t max_reply_bytes_;
  Phase phase_ = Phase::handshake;
  Intake intake_;
  Handshake handshake_;
  std::optional<Transmission> transmission_;
  ByteBuffer sending_;
  std::size_t sent_bytes_ = 0;
  ByteBuffer laying_out_;
  bool batch_open_ = false;
  // The batch in the making is the last.
  bool last_batch_ = false;
  // Nothing can be done before more bytes arrive.
  bool starved_ = true;
  // Nothing can be done before all replies are on their way.
  bool crowded_ = false;
  bool input_ended_ = false;
};

}  // namespace uzram::nbd
