// Server: exports devices to NBD clients over Unix sockets and TCP.
//
// Role: the front end's outer side. It owns listeners and event loops (event_loop.hpp), each a
// thread with an io_uring of its own; connections are given to the loop that has the fewest.
// Units: bytes, milliseconds.
// Ownership: the devices belong to the caller and must outlive the Server. Socket files are made by
// start() and removed by stop().
// Errors: start() fails as a whole, with a message that names the listener or export, and leaves no
// socket behind. Afterwards trouble with a connection ends that connection only.
// Threads: start, stop and the destructor by one thread at a time; uris and connections by any.
// Cost: about two system calls for each wake-up of a loop, however many requests have arrived.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "uzram/error.hpp"

#include "frontend/nbd/export_table.hpp"

namespace uzram::nbd {

// Where clients connect: a Unix socket when unix_path is set, TCP otherwise.
struct Listener {
  std::string unix_path{};
  std::string tcp_host = "127.0.0.1";
  // 0: any free one, which uris() then names.
  std::uint16_t tcp_port = 0;
  // What a client gets that names no export; empty: the first export.
  std::string default_export{};
};

struct ServerOptions {
  std::vector<Listener> listeners;
  // Up to 1024; 0: as many as CPUs this process may use.
  std::uint32_t loops = 0;
  // 1 to 65536. Connections beyond these are closed as soon as they are made.
  std::uint32_t max_connections = 256;
  // A client that has not chosen an export by then is disconnected.
  std::uint32_t handshake_timeout_ms = 10'000;
  // How long stop() lets clients take the replies that are on their way.
  std::uint32_t stop_timeout_ms = 2'000;
  // Replies of one connection that may wait to be taken by the client; a larger single reply waits
  // alone. Until there is room, the connection's requests wait in its socket.
  std::uint32_t max_reply_bytes = 2U << 20;
};

class Server {
 public:
  // Errors: invalid_argument (an export or listener that cannot be), busy (a server answers at
  // the socket path), exists (something there is no socket), unsupported (no io_uring), system.
  static Result<std::unique_ptr<Server>> start(ServerOptions options, std::vector<Export> exports);
  // Stops if stop() was not called.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Takes no more connections or requests, lets the replies to those taken go out, closes all
  // connections and removes the socket files. Returns within about stop_timeout_ms. May be called
  // again.
  void stop();

  // Every way to connect, exports in the order given to start().
  [[nodiscard]] std::vector<std::string> uris() const;
  // The ways to connect to one export, none when there is no such export: each TCP listener and the
  // Unix sockets whose default it is, or all Unix sockets when it is the default of none.
  [[nodiscard]] std::vector<std::string> uris(std::string_view export_name) const;

  // Connections open now, those in their handshake included.
  [[nodiscard]] std::uint32_t connections() const noexcept;

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace uzram::nbd
