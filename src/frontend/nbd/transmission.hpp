// Transmission: requests of one connection turned into Requests, and these into replies.
//
// Role: after the handshake, without I/O. parse() takes all requests that have arrived, lays out
// their replies and hands out Requests that read straight into them; when all of these are
// complete, finish() makes the replies true. One round of parse, complete and finish is a batch.
// Units: bytes.
// Ownership: the Requests live here; their buffers in the Intake and in the output, neither of
// which may be touched between parse() and finish().
// Errors: a request that cannot be is answered with an error and its payload dropped; a frame
// that cannot be ends the connection (End::broken).
// Threads: one at a time.
// Cost: takes no memory but by growing the output.
// Invariants: 1. Every request gets one reply, in the order of requests; but a discard or zeroing
// of kLongRangeBytes or more belongs to no batch and is answered when it is complete, so that
// others do not wait for it. 2. A batch has at most kMaxRequests Requests and replies for about the
// room given, but at least one request when it may be alone. 3. No sum of lengths overflows:
// offsets are compared before they are added.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "uzram/device.hpp"
#include "uzram/request.hpp"

#include "frontend/nbd/byte_buffer.hpp"
#include "frontend/nbd/intake.hpp"
#include "frontend/nbd/protocol.hpp"

namespace uzram::nbd {

class Transmission {
 public:
  static constexpr std::size_t kMaxRequests = 320;
  // Long ranges at once; further ones are part of their batch.
  static constexpr std::size_t kMaxLong = 8;

  struct Parameters {
    Device* device = nullptr;
    std::uint32_t logical_block_bytes = 512;
    bool read_only = false;
    bool structured_replies = false;
    bool allocation_context = false;
  };

  // Why parse() stopped.
  enum class End : std::uint8_t {
    starved,       // the rest of the next request has not arrived
    full,          // no room for the next reply or request in this batch
    disconnected,  // the client said goodbye
    broken,        // not a request, or a payload over the limit: nothing after it can be trusted
    no_memory,     // not even an error reply could be laid out
  };

  // REQUIRES: device is set.
  explicit Transmission(const Parameters& parameters) noexcept : parameters_(parameters) {}
  Transmission(const Transmission&) = delete;
  Transmission& operator=(const Transmission&) = delete;

  // Parses requests and adds their Requests to `batch`, each with user_data as given. `room`: bytes
  // of replies that may be added; `alone`: a first reply of any size may.
  // REQUIRES: out is empty, the last batch is finished, batch has room for kMaxRequests + kMaxLong.
  [[nodiscard]] End parse(Intake& in, ByteBuffer& out, std::size_t room, bool alone,
                          std::uint64_t user_data, std::vector<Request*>& batch) noexcept;

  // One Request of a batch has been reaped, or a long one.
  void complete(const Request& request) noexcept;
  // Requests of the batch that are not complete.
  [[nodiscard]] std::size_t outstanding() const noexcept { return outstanding_; }
  // Long requests that are not complete, and those that are not answered.
  [[nodiscard]] std::size_t long_outstanding() const noexcept { return long_outstanding_; }
  [[nodiscard]] std::size_t long_unanswered() const noexcept { return long_unanswered_; }
  // Adds the replies to long requests that are complete. False: no memory for all of them.
  // REQUIRES: no batch is open.
  [[nodiscard]] bool answer_long(ByteBuffer& out) noexcept;

  // Turns what failed into error replies and ends the batch. REQUIRES: outstanding() == 0.
  void finish(Intake& in, ByteBuffer& out) noexcept;

  [[nodiscard]] Device& device() const noexcept { return *parameters_.device; }

 private:
  struct Header {
    std::uint16_t flags = 0;
    Command command = Command::read;
    std::uint64_t cookie = 0;
    std::uint64_t offset = 0;
    std::uint32_t length = 0;
  };
  // Why a request is not carried out; `error` ok when it is.
  struct Refusal {
    WireError error = WireError::ok;
    std::string_view text;
  };
  enum class Shape : std::uint8_t { status, simple_read, data_chunk };
  // The part of the output that one Request decides about, in the order of requests_.
  struct Piece {
    Shape shape = Shape::status;
    Command command = Command::read;
    std::size_t begin = 0;
  };
  // A long discard or zeroing.
  struct Long {
    enum class State : std::uint8_t { unused, parsed, submitted, complete };
    State state = State::unused;
    Header header;
    Request request;
  };

  static Header decode(const std::byte* from) noexcept;
  [[nodiscard]] Refusal check(const Header& header) const noexcept;
  [[nodiscard]] Refusal check_flags(const Header& header) const noexcept;
  [[nodiscard]] Refusal check_range(const Header& header) const noexcept;
  [[nodiscard]] std::size_t reply_bound(const Header& header) const noexcept;

  // Each of these adds replies to `out`; false: no memory.
  [[nodiscard]] bool carry_out(const Header& header, ByteBuffer& out) noexcept;
  [[nodiscard]] bool read(const Header& header, ByteBuffer& out) noexcept;
  [[nodiscard]] bool read_structured(const Header& header, ByteBuffer& out) noexcept;
  [[nodiscard]] bool block_status(const Header& header, ByteBuffer& out) noexcept;
  [[nodiscard]] bool simple_reply(const Header& header, WireError error, ByteBuffer& out) noexcept;
  [[nodiscard]] bool refuse(const Header& header, Refusal refusal, ByteBuffer& out) noexcept;
  [[nodiscard]] bool plain_request(const Header& header, Op op, std::byte* buffer,
                                   ByteBuffer& out) noexcept;

  [[nodiscard]] End parse_requests(Intake& in, ByteBuffer& out, std::size_t room,
                                   bool alone) noexcept;
  // A discard or zeroing: part of the batch, or long.
  [[nodiscard]] bool range_request(const Header& header, Op op, ByteBuffer& out) noexcept;
  // Takes a WRITE whose header is at the front of `in`. Empty: go on with the next request.
  [[nodiscard]] std::optional<End> take_write(const Header& header, Intake& in,
                                              ByteBuffer& out) noexcept;
  // Goes on with a payload to drop or to gather. Empty: that is done.
  [[nodiscard]] std::optional<End> resume(Intake& in, ByteBuffer& out) noexcept;
  void drop_payload(const Header& header, Refusal refusal, Intake& in) noexcept;

  // REQUIRES: fewer than kMaxRequests in the batch.
  void add_request(Op op, std::uint64_t offset, std::uint64_t length, std::byte* buffer,
                   Piece piece) noexcept;
  void replace_failed(ByteBuffer& out) noexcept;

  Parameters parameters_;
  std::array<Request, kMaxRequests> requests_{};
  std::array<Piece, kMaxRequests> pieces_{};
  std::size_t count_ = 0;
  std::size_t outstanding_ = 0;
  bool failed_ = false;
  std::array<Long, kMaxLong> long_{};
  std::size_t long_outstanding_ = 0;
  std::size_t long_unanswered_ = 0;
  // A WRITE whose payload is being dropped, to be answered with `refusal_` after it.
  bool dropping_ = false;
  // A WRITE whose payload is being gathered by the intake.
  bool gathering_ = false;
  Header pending_;
  Refusal refusal_;
};

}  // namespace uzram::nbd
