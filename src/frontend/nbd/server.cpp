#include "frontend/nbd/server.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/cpu.hpp"
#include "frontend/nbd/event_loop.hpp"
#include "frontend/nbd/listening_socket.hpp"

namespace uzram::nbd {

struct Server::Impl final : ConnectionSink {
  struct Door {
    std::unique_ptr<ListeningSocket> socket;
    std::size_t default_export = 0;
  };

  void place(int fd, std::size_t default_export) noexcept override {
    const auto least = std::ranges::min_element(loops, {}, &EventLoop::load);
    (*least)->adopt(fd, default_export);
  }

  Result<void> open_doors();
  Result<void> start_loops();
  void stop();
  [[nodiscard]] bool leads_to(const Door& door, std::size_t index) const;
  void name_uris();

  ServerOptions options;
  ExportTable exports;
  std::vector<Door> doors;
  // For each export.
  std::vector<std::vector<std::string>> uris;
  std::atomic<std::uint32_t> connections{0};
  std::vector<std::unique_ptr<EventLoop>> loops;
};

namespace {

constexpr std::uint32_t kMaxConnections = 65'536;
constexpr std::uint32_t kMaxLoops = 1024;

Result<void> check(const ServerOptions& options) {
  const auto refuse = [](std::string message) {
    return Error{Errc::invalid_argument, 0, std::move(message)};
  };
  if (options.listeners.empty()) {
    return refuse("nbd: no listeners: expected at least one socket path or TCP address");
  }
  if (options.max_connections == 0 || options.max_connections > kMaxConnections) {
    return refuse(fmt::format("nbd: max_connections {}: expected 1 to {}", options.max_connections,
                              kMaxConnections));
  }
  if (options.loops > kMaxLoops) {
    return refuse(fmt::format("nbd: loops {}: expected at most {}", options.loops, kMaxLoops));
  }
  if (options.handshake_timeout_ms == 0) {
    return refuse("nbd: handshake_timeout_ms 0: expected at least 1");
  }
  return {};
}

}  // namespace

Result<void> Server::Impl::open_doors() {
  for (const Listener& listener : options.listeners) {
    Result<std::size_t> index = exports.find(listener.default_export);
    if (!index) {
      return std::move(index).error();
    }
    Result<std::unique_ptr<ListeningSocket>> socket =
        listener.unix_path.empty() ? ListeningSocket::open_tcp(listener.tcp_host, listener.tcp_port)
                                   : ListeningSocket::open_unix(listener.unix_path);
    if (!socket) {
      return std::move(socket).error();
    }
    doors.push_back(Door{std::move(*socket), *index});
  }
  return {};
}

Result<void> Server::Impl::start_loops() {
  const LoopOptions loop_options{
      .max_connections = options.max_connections,
      .handshake_timeout = std::chrono::milliseconds(options.handshake_timeout_ms),
      .stop_timeout = std::chrono::milliseconds(options.stop_timeout_ms),
      .max_reply_bytes = options.max_reply_bytes};
  const std::uint32_t count = options.loops == 0 ? usable_cpus() : options.loops;
  for (std::uint32_t i = 0; i < count; ++i) {
    Result<std::unique_ptr<EventLoop>> loop =
        EventLoop::create(exports, loop_options, connections, *this);
    if (!loop) {
      return std::move(loop).error();
    }
    loops.push_back(std::move(*loop));
  }
  for (std::size_t i = 0; i < doors.size(); ++i) {
    loops[i % loops.size()]->add_listener(*doors[i].socket, doors[i].default_export);
  }
  for (const auto& loop : loops) {
    if (Result<void> started = loop->start(); !started) {
      return started;
    }
  }
  return {};
}

void Server::Impl::stop() {
  for (const auto& loop : loops) {
    loop->request_stop();
  }
  for (const auto& loop : loops) {
    loop->join();
  }
  // The paths are free for another server only now that nothing is served any more.
  doors.clear();
}

bool Server::Impl::leads_to(const Door& door, std::size_t index) const {
  if (!door.socket->is_unix() || door.default_export == index) {
    return true;
  }
  return std::ranges::none_of(doors, [index](const Door& other) {
    return other.socket->is_unix() && other.default_export == index;
  });
}

void Server::Impl::name_uris() {
  uris.resize(exports.infos.size());
  for (std::size_t i = 0; i < uris.size(); ++i) {
    for (const Door& door : doors) {
      if (leads_to(door, i)) {
        uris[i].push_back(door.socket->uri(exports.infos[i].name));
      }
    }
  }
}

Server::Server(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}

Server::~Server() { stop(); }

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, std::vector<Export> exports) {
  if (Result<void> sound = check(options); !sound) {
    return std::move(sound).error();
  }
  Result<ExportTable> table = ExportTable::make(std::move(exports));
  if (!table) {
    return std::move(table).error();
  }
  auto impl = std::make_unique<Impl>();
  impl->options = std::move(options);
  impl->exports = std::move(*table);
  // From here on the destructor undoes what has been done.
  std::unique_ptr<Server> server(new Server(std::move(impl)));
  if (Result<void> opened = server->impl_->open_doors(); !opened) {
    return std::move(opened).error();
  }
  server->impl_->name_uris();
  if (Result<void> started = server->impl_->start_loops(); !started) {
    return std::move(started).error();
  }
  return server;
}

void Server::stop() { impl_->stop(); }

std::vector<std::string> Server::uris() const {
  std::vector<std::string> all;
  for (const std::vector<std::string>& of_one : impl_->uris) {
    all.insert(all.end(), of_one.begin(), of_one.end());
  }
  return all;
}

std::vector<std::string> Server::uris(std::string_view export_name) const {
  const Result<std::size_t> index = impl_->exports.find(export_name);
  return index ? impl_->uris[index.value()] : std::vector<std::string>();
}

std::uint32_t Server::connections() const noexcept {
  return impl_->connections.load(std::memory_order_relaxed);
}

}  // namespace uzram::nbd
