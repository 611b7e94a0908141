#include "bench/nbd_connection.hpp"

#include <cerrno>
#include <chrono>
#include <string_view>

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/data.hpp"

namespace uzram::bench {
namespace {

using Clock = std::chrono::steady_clock;

// What clients assume of a server that tells no maximum; libnbd itself sends at most twice that.
constexpr std::uint64_t kUntoldMaximum = std::uint64_t{32} << 20;

Error cannot_connect() {
  const int number = nbd_get_errno();
  return Error{number == ENOENT ? Errc::not_found : Errc::system, number,
               fmt::format("cannot connect ({}); check that a server listens there "
                           "and has an export of that name",
                           nbd_failure())};
}

Result<void> configure(nbd_handle* handle, const NbdConnection::Options& options) {
  // The sizes and ranges of requests are right by construction, and buffers are filled by the
  // answer or not looked at.
  const bool configured =
      nbd_set_debug(handle, false) == 0 && nbd_set_pread_initialize(handle, false) == 0 &&
      nbd_set_strict_mode(handle, LIBNBD_STRICT_COMMANDS | LIBNBD_STRICT_FLAGS) == 0 &&
      (!options.block_status || nbd_add_meta_context(handle, LIBNBD_CONTEXT_BASE_ALLOCATION) == 0);
  if (!configured) {
    return Error{Errc::system, nbd_get_errno(), "libnbd: " + nbd_failure()};
  }
  return {};
}

bool under_way(nbd_handle* handle) noexcept {
  return nbd_aio_is_connecting(handle) > 0 || nbd_aio_is_negotiating(handle) > 0;
}

Result<void> shake_hands(nbd_handle* handle, const std::string& uri, int timeout_ms) {
  if (nbd_aio_connect_uri(handle, uri.c_str()) < 0) {
    return cannot_connect();
  }
  const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  while (under_way(handle)) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      return Error{Errc::system, ETIMEDOUT,
                   fmt::format("the server did not finish the handshake within {} "
                               "ms; check that it takes several connections at once "
                               "(qemu-nbd: --shared=0)",
                               timeout_ms)};
    }
    if (nbd_poll(handle, static_cast<int>(left)) < 0 && nbd_get_errno() != EINTR) {
      return cannot_connect();
    }
  }
  if (nbd_aio_is_ready(handle) <= 0) {
    return Error{Errc::system, ENOTCONN, "the server closed the connection during the handshake"};
  }
  return {};
}

int family_of(int fd) noexcept {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return AF_UNSPEC;
  }
  return address.ss_family;
}

}  // namespace

std::string nbd_failure() {
  const char* const text = nbd_get_error();
  return text == nullptr ? "no reason known" : text;
}

void NbdConnection::Closer::operator()(nbd_handle* handle) const noexcept {
  // Not nbd_shutdown, which waits for the server. Nothing may call back any more.
  if (nbd_aio_is_ready(handle) > 0 && nbd_aio_in_flight(handle) == 0) {
    nbd_aio_disconnect(handle, 0);
  }
  nbd_close(handle);
}

Result<NbdConnection> NbdConnection::connect(const std::string& uri, const Options& options) {
  nbd_handle* const handle = nbd_create();
  if (handle == nullptr) {
    return Error{Errc::system, nbd_get_errno(), "libnbd: " + nbd_failure()};
  }
  NbdConnection connection(handle);
  if (Result<void> configured = configure(handle, options); !configured) {
    return std::move(configured).error();
  }
  if (Result<void> connected = shake_hands(handle, uri, options.timeout_ms); !connected) {
    return std::move(connected).error();
  }
  const std::int64_t size = nbd_get_size(handle);
  const std::int64_t shortest = nbd_get_block_size(handle, LIBNBD_SIZE_MINIMUM);
  const std::int64_t longest = nbd_get_block_size(handle, LIBNBD_SIZE_MAXIMUM);
  if (size < 0) {
    return Error{Errc::system, nbd_get_errno(), nbd_failure()};
  }
  constexpr auto kPage = static_cast<std::int64_t>(kDataPage);
  if (shortest > kPage || (longest > 0 && longest < kPage)) {
    return Error{Errc::unsupported, 0,
                 fmt::format("the server takes requests of {} to {} bytes; expected "
                             "that it takes {} bytes",
                             shortest, longest, kPage)};
  }
  connection.size_bytes_ = static_cast<std::uint64_t>(size);
  connection.longest_payload_ = kUntoldMaximum;
  if (longest > 0 && static_cast<std::uint64_t>(longest) < kUntoldMaximum) {
    connection.longest_payload_ = static_cast<std::uint64_t>(longest) / kDataPage * kDataPage;
  }
  return connection;
}

std::string NbdConnection::path() const {
  const int family = family_of(nbd_aio_get_fd(handle()));
  std::string path = family == AF_UNIX                         ? "NBD over a Unix socket"
                     : family == AF_INET || family == AF_INET6 ? "NBD over TCP"
                                                               : "NBD";
  if (nbd_get_tls_negotiated(handle()) > 0) {
    path += " with TLS";
  }
  return path;
}

std::optional<pid_t> NbdConnection::server() const {
  const int fd = nbd_aio_get_fd(handle());
  ucred peer{};
  socklen_t length = sizeof peer;
  if (family_of(fd) != AF_UNIX || ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
    return std::nullopt;
  }
  // The kernel names who called listen: pid 1 for a socket of systemd's, the gone parent for a
  // server that went to the background afterwards, 0 for a process out of sight.
  if (peer.pid <= 1 || peer.pid == ::getpid() ||
      ::access(fmt::format("/proc/{}", peer.pid).c_str(), F_OK) != 0) {
    return std::nullopt;
  }
  return peer.pid;
}

}  // namespace uzram::bench
