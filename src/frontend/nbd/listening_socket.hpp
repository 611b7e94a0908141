// ListeningSocket: a Unix or TCP socket that clients connect to.
//
// Role: made by the server at start, accepted from by an event loop.
// Ownership: owns the descriptor and, for Unix, the file, which it removes only while it is
// still its own.
// Errors: open() names the address and what to do; nothing is left behind.
// Threads: open and the destructor by one thread; constant otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "uzram/error.hpp"

#include "os/socket_path.hpp"

namespace uzram::nbd {

class ListeningSocket {
 public:
  // A socket file nobody listens on is replaced. The new one may be used by its owner only.
  // Errors: busy when a server answers at `path`, exists when what is there is no socket.
  static Result<std::unique_ptr<ListeningSocket>> open_unix(const std::string& path);
  // Port 0: any free one. An empty host: all addresses of the machine.
  static Result<std::unique_ptr<ListeningSocket>> open_tcp(const std::string& host,
                                                           std::uint16_t port);
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] bool is_unix() const noexcept { return !path_.empty(); }
  // Where a client finds the export `name`: nbd+unix:///NAME?socket=PATH or nbd://HOST:PORT/NAME.
  [[nodiscard]] std::string uri(std::string_view name) const;

 private:
  explicit ListeningSocket(int fd) noexcept : fd_(fd) {}

  int fd_;
  // Unix: absolute, and the file's identity.
  std::string path_;
  os::FileIdentity identity_;
  // TCP: "HOST:PORT" as it stands in a URI.
  std::string authority_;
};

}  // namespace uzram::nbd
