#include "control/control_server.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>

#include <httplib.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "os/socket_path.hpp"

namespace uzram::control {
namespace {

// A client that connects and says nothing holds one of them for kSilenceSeconds.
constexpr std::size_t kThreads = 16;
constexpr std::size_t kMaxBody = 64 * 1024;
constexpr int kSilenceSeconds = 2;
// httplib wants a port even where there is none.
constexpr int kUnusedPort = 80;

using HandlerResponse = httplib::Server::HandlerResponse;

void answer(const Reply& reply, httplib::Response& response) {
  response.status = reply.status;
  response.set_content(reply.body, "application/json");
}

// What httplib itself refuses, in the form of our errors.
void answer_refusal(httplib::Response& response) {
  if (!response.body.empty()) {
    return;
  }
  const int status = response.status;
  const char* const code = status == 404 ? "ENOENT" : status == 413 ? "E2BIG" : "EINVAL";
  const char* const message = status == 413   ? "body: expected at most 64 KiB"
                              : status == 404 ? "expected a path below /v1"
                                              : "expected an HTTP/1.1 request";
  answer(error_reply(status, code, message), response);
}

}  // namespace

struct ControlServer::Impl {
  std::string path;
  os::FileIdentity identity;
  httplib::Server server;
  std::atomic<bool> ended = false;
  std::thread listener;
};

ControlServer::ControlServer(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}

ControlServer::~ControlServer() {
  if (impl_->listener.joinable()) {
    impl_->server.stop();
    impl_->listener.join();
  }
  os::remove_if_same(impl_->path, impl_->identity);
}

Result<std::unique_ptr<ControlServer>> ControlServer::bind(const std::string& path) {
  const auto claim = os::SocketPathClaim::claim("control socket", path);
  if (!claim) {
    return claim.error();
  }
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  httplib::Server& server = impl->server;
  server.set_address_family(AF_UNIX);
  // On Linux a socket's file gets the mode of its descriptor, so it is never open to others.
  server.set_socket_options([](int fd) { ::fchmod(fd, S_IRUSR | S_IWUSR); });
  server.set_keep_alive_max_count(1);
  server.set_keep_alive_timeout(kSilenceSeconds);
  server.set_read_timeout(kSilenceSeconds);
  server.set_write_timeout(kSilenceSeconds);
  server.set_payload_max_length(kMaxBody);
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_error_handler(
      [](const httplib::Request&, httplib::Response& response) { answer_refusal(response); });
  errno = 0;
  if (!server.bind_to_port(path, kUnusedPort)) {
    return system_error("control socket \"" + path + "\": bind", errno);
  }
  impl->identity = os::identify(path);
  return std::unique_ptr<ControlServer>(new ControlServer(std::move(impl)));
}

Result<void> ControlServer::serve(const Api& api) {
  httplib::Server& server = impl_->server;
  // Everything without a body is answered before httplib matches paths with regular expressions.
  server.set_pre_routing_handler(
      [&api](const httplib::Request& request, httplib::Response& response) {
        if (request.method == "PATCH") {
          return HandlerResponse::Unhandled;
        }
        answer(api.handle(request.method, request.path, ""), response);
        return HandlerResponse::Handled;
      });
  server.Patch(".*", [&api](const httplib::Request& request, httplib::Response& response) {
    answer(api.handle(request.method, request.path, request.body), response);
  });
  try {
    impl_->listener = std::thread([this] {
      try {
        impl_->server.listen_after_bind();
      } catch (const std::exception&) {
        // Threads or memory ran out at start; serve() reports it.
      }
      impl_->ended = true;
    });
  } catch (const std::system_error& failure) {
    return system_error("control socket: thread", failure.code().value());
  }
  // httplib's stop() has no effect before it listens.
  while (!server.is_running()) {
    if (impl_->ended) {
      return system_error("control socket \"" + impl_->path + "\": listen", EAGAIN);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {};
}

}  // namespace uzram::control
