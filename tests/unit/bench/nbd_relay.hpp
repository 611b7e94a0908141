// A relay between NBD clients and a server on Unix sockets, which ends a connection where a test
// wants it to end.
//
// Threads: one of its own; connections are relayed one after the other.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace uzram::bench {

class Relay {
 public:
  // Listens at `path`; `socket` is another descriptor of a bound socket, or -1 to make one.
  Relay(const std::string& path, std::string server_path, int socket = -1)
      : listener_(socket), server_path_(std::move(server_path)) {
    if (listener_ < 0) {
      listener_ = bound(path);
      ::listen(listener_, 16);
    }
    thread_ = std::thread([this] { run(); });
  }
  ~Relay() {
    stop_ = true;
    // Wakes accept.
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  static int bound(const std::string& path) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_un address = address_of(path);
    return ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? fd : -1;
  }

  // From now on: keeps requests back and closes once `bytes` of them have come.
  void close_after_requests(std::size_t bytes) { requests_left_ = bytes; }
  // From now on: closes once `bytes` of answers have been passed on.
  void close_after_answers(std::size_t bytes) { answers_left_ = bytes; }

 private:
  static constexpr std::size_t kUnlimited = ~std::size_t{0};

  static sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    return address;
  }

  void run() {
    while (!stop_) {
      const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (client < 0) {
        continue;
      }
      const int server = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const sockaddr_un address = address_of(server_path_);
      if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
        relay(client, server);
      }
      ::close(server);
      ::close(client);
    }
  }

  void relay(int client, int server) {
    std::array<pollfd, 2> sides{pollfd{client, POLLIN, 0}, pollfd{server, POLLIN, 0}};
    bool open = true;
    while (open && !stop_) {
      // The limit is for stop_ alone.
      if (::poll(sides.data(), sides.size(), 20) <= 0) {
        continue;
      }
      if (sides[0].revents != 0) {
        open = pass_requests(client, server);
      }
      if (open && sides[1].revents != 0) {
        open = pass_answers(server, client);
      }
    }
  }

  bool pass_requests(int client, int server) {
    const ssize_t got = ::recv(client, buffer_.data(), buffer_.size(), 0);
    if (got <= 0) {
      return false;
    }
    const auto bytes = static_cast<std::size_t>(got);
    if (requests_left_ == kUnlimited) {
      return send_all(server, bytes);
    }
    requests_left_ -= bytes < requests_left_ ? bytes : requests_left_.load();
    return requests_left_ != 0;
  }

  bool pass_answers(int server, int client) {
    const ssize_t got = ::recv(server, buffer_.data(), buffer_.size(), 0);
    if (got <= 0) {
      return false;
    }
    const auto bytes = static_cast<std::size_t>(got);
    if (answers_left_ == kUnlimited) {
      return send_all(client, bytes);
    }
    const std::size_t passed = bytes < answers_left_ ? bytes : answers_left_.load();
    answers_left_ -= passed;
    return send_all(client, passed) && answers_left_ != 0;
  }

  bool send_all(int fd, std::size_t bytes) {
    std::size_t sent = 0;
    while (sent < bytes) {
      const ssize_t now = ::send(fd, buffer_.data() + sent, bytes - sent, MSG_NOSIGNAL);
      if (now <= 0) {
        return false;
      }
      sent += static_cast<std::size_t>(now);
    }
    return true;
  }

  int listener_;
  const std::string server_path_;
  std::atomic<bool> stop_{false};
  std::atomic<std::size_t> requests_left_{kUnlimited};
  std::atomic<std::size_t> answers_left_{kUnlimited};
  std::array<std::byte, 65536> buffer_{};
  std::thread thread_;
};

}  // namespace uzram::bench
