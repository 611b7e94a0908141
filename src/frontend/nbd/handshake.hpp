// Handshake: the negotiation that precedes the transmission of an NBD connection.
//
// Role: fixed newstyle, server side, without I/O: bytes in, bytes out, and in the end an
// Agreement. It knows exports by name and size only, so no device is touched before a client has
// chosen one.
// Units: bytes.
// Ownership: the list of exports belongs to the caller and must outlive it.
// Errors: what a client may recover from is answered with an error reply and the negotiation
// goes on; a broken frame, a refusal that has no reply, or no memory ends in State::closed.
// Threads: one at a time.
// Cost: LIST answers are as long as the list; the caller stops stepping while its output is not
// drained.
// Invariants: 1. An option is looked at only when all of it has arrived, and never when it is
// longer than kMaxOptionBytes. 2. The agreement holds only what was negotiated for its export.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "frontend/nbd/byte_buffer.hpp"
#include "frontend/nbd/protocol.hpp"

namespace uzram::nbd {

// An export as the negotiation sees it.
struct ExportInfo {
  std::string name;
  std::string description;
  std::uint64_t size_bytes = 0;
  std::uint32_t minimum_block_bytes = 0;
  std::uint32_t preferred_block_bytes = 0;
  bool read_only = false;
};

// What client and server have settled on.
struct Agreement {
  std::size_t export_index = 0;
  bool structured_replies = false;
  bool allocation_context = false;
};

class Handshake {
 public:
  enum class State : std::uint8_t {
    client_flags,  // greeted; the client's flags are next
    options,
    transmission,  // agreement() stands; what follows are requests
    closed,        // nothing more is read; the output so far is still to be sent
  };

  // REQUIRES: default_export < exports.size().
  Handshake(std::span<const ExportInfo> exports, std::size_t default_export) noexcept
      : exports_(exports), default_export_(default_export) {}

  // Appends the greeting, which a server sends first. False: no memory.
  [[nodiscard]] bool greet(ByteBuffer& out) noexcept;

  // Takes one step: at most one option. Returns the bytes of `input` it used up; 0 when it needs
  // more than these. REQUIRES: state() is client_flags or options.
  [[nodiscard]] std::size_t step(std::span<const std::byte> input, ByteBuffer& out) noexcept;

  [[nodiscard]] State state() const noexcept { return state_; }
  // REQUIRES: state() is transmission.
  [[nodiscard]] const Agreement& agreement() const noexcept { return agreement_; }

 private:
  static constexpr std::size_t kNoExport = ~std::size_t{0};
  class Reader;

  std::size_t take_client_flags(std::span<const std::byte> input) noexcept;
  void take_option(std::uint32_t option, std::span<const std::byte> data, ByteBuffer& out) noexcept;
  void export_name(std::span<const std::byte> data, ByteBuffer& out) noexcept;
  void list(std::span<const std::byte> data, ByteBuffer& out) noexcept;
  void info_or_go(Option option, std::span<const std::byte> data, ByteBuffer& out) noexcept;
  void structured_reply(std::span<const std::byte> data, ByteBuffer& out) noexcept;
  void meta_context(Option option, std::span<const std::byte> data, ByteBuffer& out) noexcept;

  void send_infos(Option option, std::size_t index, std::span<const std::byte> requests,
                  ByteBuffer& out) noexcept;
  void enter_transmission(std::size_t index) noexcept;
  // Looks a name up; the empty one is the default. Replies and returns false when it is unknown.
  [[nodiscard]] bool find(Option option, std::string_view name, std::size_t& index,
                          ByteBuffer& out) noexcept;
  [[nodiscard]] std::uint16_t transmission_flags(const ExportInfo& exported) const noexcept;
  // Adds an option reply with room for `length` bytes, which it returns; nullptr, and the state
  // closed, when there is no memory.
  std::byte* reply(std::uint32_t option, OptionReply type, std::size_t length,
                   ByteBuffer& out) noexcept;
  void reply_text(std::uint32_t option, OptionReply type, std::string_view text,
                  ByteBuffer& out) noexcept;

  std::span<const ExportInfo> exports_;
  std::size_t default_export_;
  State state_ = State::client_flags;
  bool fixed_newstyle_ = false;
  bool no_zeroes_ = false;
  bool structured_replies_ = false;
  // The context was selected for this export.
  std::size_t context_export_ = kNoExport;
  // Bytes of an option that is too long, still to be read past.
  std::size_t skip_bytes_ = 0;
  Agreement agreement_;
};

}  // namespace uzram::nbd
