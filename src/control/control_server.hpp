// ControlServer: the Api behind HTTP on a Unix socket.
//
// Role: one for each `uzram serve`. Starting has two steps, so that a path in use is known before
// anything else is made: bind() takes the path (clients may connect and wait), serve() answers.
// Ownership: the socket's file is made with mode 0600 and removed on destruction, if it is still
// the one this server made.
// Errors: bind as SocketPathClaim, and system. A broken request is answered or its connection
// closed, and concerns no other connection.
// Threads: bind, serve and destruction by one thread; a few threads of its own call the Api. Every
// connection carries one request; one that stays silent for two seconds is closed. Bodies over 64
// KiB are refused.
#pragma once

#include <memory>
#include <string>

#include "uzram/error.hpp"

#include "control/api.hpp"

namespace uzram::control {

class ControlServer {
 public:
  static Result<std::unique_ptr<ControlServer>> bind(const std::string& path);
  // Stops answering, waits for requests under way, and removes the socket.
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  // Answers from now on. REQUIRES: called once; `api` outlives this. Errors: system.
  Result<void> serve(const Api& api);

 private:
  struct Impl;
  explicit ControlServer(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace uzram::control
