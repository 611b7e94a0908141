// A server with two devices on a Unix socket and on TCP, and raw clients of it.
//
// Threads: the fixture by one; the server has its own.
#pragma once

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "uzram/device.hpp"

#include "frontend/nbd/server.hpp"
#include "support/eventually.hpp"
#include "unit/nbd/wire.hpp"

namespace uzram::nbd {

// Waits for `reached`; false after a time no working server needs.
inline bool eventually(const std::function<bool()>& reached) {
  return test::eventually(reached, std::chrono::seconds(60));
}

// A client that sends and receives bytes as a test says. Calls block for 60 s at most.
class RawClient {
 public:
  static RawClient to_unix(const std::string& path) {
    RawClient client = unconnected();
    EXPECT_TRUE(client.connect(path));
    return client;
  }
  static RawClient unconnected() { return RawClient(AF_UNIX); }
  bool connect(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    return ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  static RawClient to_tcp(std::uint16_t port) {
    RawClient client(AF_INET);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(client.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
    return client;
  }
  RawClient(RawClient&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  RawClient& operator=(RawClient&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~RawClient() { vanish(); }

  // Closes without a word.
  void vanish() {
    if (fd_ >= 0) {
      ::close(std::exchange(fd_, -1));
    }
  }

  bool send(const wire::Bytes& bytes) {
    std::span<const std::byte> rest = bytes.view();
    while (!rest.empty()) {
      const ssize_t sent =
          uninterrupted([&] { return ::send(fd_, rest.data(), rest.size(), MSG_NOSIGNAL); });
      if (sent <= 0) {
        return false;
      }
      rest = rest.subspan(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // Up to `count` bytes, fewer when the server closes.
  std::vector<std::byte> receive(std::size_t count) {
    std::vector<std::byte> bytes(count);
    std::size_t have = 0;
    while (have < count) {
      const ssize_t got =
          uninterrupted([&] { return ::recv(fd_, bytes.data() + have, count - have, 0); });
      if (got <= 0) {
        break;
      }
      have += static_cast<std::size_t>(got);
    }
    bytes.resize(have);
    return bytes;
  }
  // Reads until the server closes; false: it does not.
  bool closed_by_server() {
    std::vector<std::byte> sink(65536);
    while (true) {
      const ssize_t got = uninterrupted([&] { return ::recv(fd_, sink.data(), sink.size(), 0); });
      if (got == 0 || (got < 0 && errno == ECONNRESET)) {
        return true;
      }
      if (got < 0) {
        return false;
      }
    }
  }
  // Through the handshake without structured replies.
  bool go(const std::string& name) {
    constexpr std::size_t kInfos = 20 + 12 + 20 + 14;
    return receive(18).size() == 18 && send(wire::client_flags().add(wire::go(name))) &&
           receive(kInfos + 20).size() == kInfos + 20;
  }
  // Whether the server answers a FLUSH.
  bool answered() {
    return send(wire::request(Command::flush, 99, 0, 0)) &&
           receive(kSimpleReplyBytes).size() == kSimpleReplyBytes;
  }
  [[nodiscard]] int fd() const { return fd_; }

 private:
  // A debugger or a frozen control group interrupts calls that have a time-out.
  static ssize_t uninterrupted(const std::function<ssize_t()>& call) {
    ssize_t result = call();
    while (result < 0 && errno == EINTR) {
      result = call();
    }
    return result;
  }

  explicit RawClient(int family) : fd_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval limit{60, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  }

  int fd_;
};

class ServerTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kSize = 64U << 20;

  ServerTest() {
    char name[] = "/tmp/uzram-nbd-XXXXXX";
    folder_ = ::mkdtemp(name);
    for (const char* const device_name : {"first", "second"}) {
      DeviceOptions options;
      options.name = device_name;
      options.disksize_bytes = kSize;
      Result<std::unique_ptr<Device>> device = Device::create(options);
      EXPECT_TRUE(device) << device.error().message;
      devices_.push_back(std::move(*device));
    }
  }
  ~ServerTest() override {
    server_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }

  ServerOptions options() {
    ServerOptions made;
    made.listeners = {Listener{.unix_path = path("first.nbd")},
                      Listener{.unix_path = path("second.nbd"), .default_export = "second"},
                      Listener{}};
    made.loops = 2;
    return made;
  }
  std::vector<Export> exports() {
    return {Export{"first", "the first", devices_[0].get(), false, 4096},
            Export{"second", "", devices_[1].get(), false, 512},
            Export{"fixed", "", devices_[0].get(), true, 4096}};
  }
  void start(const ServerOptions& with) {
    Result<std::unique_ptr<Server>> server = Server::start(with, exports());
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    const std::string uri = server_->uris("first").back();
    const std::size_t colon = uri.rfind(':');
    port_ = static_cast<std::uint16_t>(std::stoi(uri.substr(colon + 1)));
  }
  void start() { start(options()); }

  RawClient unix_client() { return RawClient::to_unix(path("first.nbd")); }

  std::string folder_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::unique_ptr<Server> server_;
  std::uint16_t port_ = 0;
};

}  // namespace uzram::nbd
