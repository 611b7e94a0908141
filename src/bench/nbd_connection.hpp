// NbdConnection: one connection to an NBD server, through its handshake.
//
// Role: what the NBD target, its ports and its check for data share; a thin layer over libnbd.
// Units: bytes.
// Ownership: the connection is closed, with a word to the server, when the object goes.
// Errors: connecting says what to check; callers say which target it is.
// Threads: one at a time. libnbd never raises SIGPIPE on a socket.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <libnbd.h>
#include <sys/types.h>

#include "uzram/error.hpp"

namespace uzram::bench {

// A TRIM, WRITE_ZEROES or BLOCK_STATUS of at most this length fits NBD's 32 bits, whatever the block
// size.
inline constexpr std::uint64_t kNbdLongestRange = std::uint64_t{1} << 30;

class NbdConnection {
 public:
  struct Options {
    // Asks for base:allocation.
    bool block_status = false;
    // A server that has not finished the handshake by then counts as unreachable.
    int timeout_ms = 10'000;
  };

  // Errors: not_found (no such socket), unsupported (a minimum block above 4096 bytes, or a maximum
  // below), system.
  static Result<NbdConnection> connect(const std::string& uri, const Options& options);
  static Result<NbdConnection> connect(const std::string& uri) { return connect(uri, Options{}); }

  [[nodiscard]] nbd_handle* handle() const noexcept { return handle_.get(); }

  [[nodiscard]] std::uint64_t size_bytes() const noexcept { return size_bytes_; }
  // The most that one READ or WRITE may carry, a multiple of 4096.
  [[nodiscard]] std::uint64_t longest_payload() const noexcept { return longest_payload_; }
  [[nodiscard]] bool read_only() const noexcept { return nbd_is_read_only(handle()) > 0; }
  [[nodiscard]] bool can_trim() const noexcept { return nbd_can_trim(handle()) > 0; }
  [[nodiscard]] bool can_zero() const noexcept { return nbd_can_zero(handle()) > 0; }
  [[nodiscard]] bool can_flush() const noexcept { return nbd_can_flush(handle()) > 0; }
  [[nodiscard]] bool has_block_status() const noexcept {
    return nbd_can_meta_context(handle(), LIBNBD_CONTEXT_BASE_ALLOCATION) > 0;
  }

  // "NBD over a Unix socket", "NBD over TCP".
  [[nodiscard]] std::string path() const;
  // The process at the other end of a Unix socket, when it is another one that this process sees.
  [[nodiscard]] std::optional<pid_t> server() const;

 private:
  struct Closer {
    void operator()(nbd_handle* handle) const noexcept;
  };

  explicit NbdConnection(nbd_handle* handle) noexcept : handle_(handle) {}

  std::unique_ptr<nbd_handle, Closer> handle_;
  std::uint64_t size_bytes_ = 0;
  std::uint64_t longest_payload_ = 0;
};

// What libnbd says of this thread's last failed call.
[[nodiscard]] std::string nbd_failure();

}  // namespace uzram::bench
