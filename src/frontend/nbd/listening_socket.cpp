#include "frontend/nbd/listening_socket.hpp"

#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace uzram::nbd {
namespace {

constexpr int kBacklog = 128;

std::string percent_encoded(std::string_view text, std::string_view also_plain) {
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        byte < 0x80 && (std::isalnum(byte) != 0 || std::strchr("-._~", c) != nullptr ||
                        also_plain.find(c) != std::string_view::npos);
    if (plain && c != '\0') {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", byte);
    }
  }
  return encoded;
}

// sockaddr is the one type that all kinds of addresses are passed as.
const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

// The address a socket is bound to, as it stands in a URI.
std::string authority_of(int fd, const std::string& host) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return host;
  }
  const bool v6 = bound.ss_family == AF_INET6;
  const std::uint16_t port = ntohs(v6 ? reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port
                                      : reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
  if (host.empty()) {
    // All addresses; this one is good from here.
    return fmt::format("{}:{}", v6 ? "[::1]" : "127.0.0.1", port);
  }
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

// A socket bound to one of the addresses and listening, or -1 with the errno of the last try.
int listen_on(const addrinfo* addresses, int& problem) {
  for (const addrinfo* at = addresses; at != nullptr; at = at->ai_next) {
    const int fd = ::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
    if (fd < 0) {
      problem = errno;
      continue;
    }
    const int on = 1;
    if (::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        ::bind(fd, at->ai_addr, at->ai_addrlen) == 0 && ::listen(fd, kBacklog) == 0) {
      return fd;
    }
    problem = errno;
    ::close(fd);
  }
  return -1;
}

}  // namespace

Result<std::unique_ptr<ListeningSocket>> ListeningSocket::open_unix(const std::string& path) {
  // Held until the socket is bound.
  const auto claim = os::SocketPathClaim::claim("nbd: socket path", path);
  if (!claim) {
    return claim.error();
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return system_error("nbd: socket", errno);
  }
  std::unique_ptr<ListeningSocket> made(new ListeningSocket(fd));
  // The mode set on the unbound socket is the one its file is made with.
  if (::fchmod(fd, S_IRUSR | S_IWUSR) != 0 || ::bind(fd, generic(address), sizeof address) != 0) {
    return system_error(fmt::format("nbd: socket path \"{}\"", path), errno);
  }
  std::error_code unknown;
  const std::filesystem::path absolute = std::filesystem::absolute(path, unknown);
  made->path_ = unknown ? path : absolute.string();
  made->identity_ = os::identify(path);
  if (::listen(fd, kBacklog) != 0) {
    return system_error(fmt::format("nbd: socket path \"{}\"", path), errno);
  }
  return made;
}

Result<std::unique_ptr<ListeningSocket>> ListeningSocket::open_tcp(const std::string& host,
                                                                   std::uint16_t port) {
  const std::string where = fmt::format("nbd: TCP address \"{}\" port {}", host, port);
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* addresses = nullptr;
  const int result = ::getaddrinfo(host.empty() ? nullptr : host.c_str(),
                                   fmt::format("{}", port).c_str(), &hints, &addresses);
  if (result != 0) {
    return Error{Errc::invalid_argument, 0,
                 fmt::format("{}: {}: expected a name or address of this machine", where,
                             ::gai_strerror(result))};
  }
  int problem = 0;
  const int fd = listen_on(addresses, problem);
  ::freeaddrinfo(addresses);
  if (fd < 0) {
    return system_error(where, problem);
  }
  std::unique_ptr<ListeningSocket> made(new ListeningSocket(fd));
  made->authority_ = authority_of(fd, host);
  return made;
}

ListeningSocket::~ListeningSocket() {
  if (!path_.empty()) {
    os::remove_if_same(path_, identity_);
  }
  ::close(fd_);
}

std::string ListeningSocket::uri(std::string_view name) const {
  return is_unix() ? fmt::format("nbd+unix:///{}?socket={}", percent_encoded(name, ""),
                                 percent_encoded(path_, "/"))
                   : fmt::format("nbd://{}/{}", authority_, percent_encoded(name, ""));
}

}  // namespace uzram::nbd
