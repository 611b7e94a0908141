// What an event loop is made of.
//
// Role: shared by the two files that implement EventLoop, for nobody else. Ownership, threads:
// as in event_loop.hpp.
// Invariant: what a tag is combined with is aligned to more than kTagMask.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "uzram/device.hpp"
#include "uzram/request.hpp"

#include "frontend/nbd/event_loop.hpp"
#include "frontend/nbd/session.hpp"

namespace uzram::nbd {

// How often deadlines, paused listeners and silent connections are looked at, while there are any.
inline constexpr std::chrono::milliseconds kTick{100};
// A connection silent for so many ticks gives its buffers back.
inline constexpr unsigned kSilentTicks = 10;
// Requests of one batch, of all connections together.
inline constexpr std::size_t kBatchRequests = 4096;

// What a completion is about: a pointer, and one of these in its low bits.
enum Tag : std::uint64_t { kReceive = 0, kSend = 1, kAccept = 2, kWake = 3, kCancel = 4 };
inline constexpr std::uint64_t kTagMask = 7;

inline std::uint64_t tagged(const void* pointer, Tag tag) noexcept {
  return reinterpret_cast<std::uintptr_t>(pointer) | tag;
}

template <typename T>
T& untagged(std::uint64_t user_data) noexcept {
  return *reinterpret_cast<T*>(user_data & ~kTagMask);
}

// A client's socket and session, and what of it is on its way.
struct alignas(16) EventLoop::Connection {
  Connection(int socket, const ExportTable& exports, std::size_t default_export,
             std::size_t max_reply_bytes) noexcept
      : fd(socket), session(exports, default_export, max_reply_bytes) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { ::close(fd); }

  const int fd;
  Session session;
  std::array<iovec, 2> pieces{};
  msghdr message{};
  bool receiving = false;
  bool sending = false;
  bool hung_up = false;
  // In ready_.
  bool ready = false;
  unsigned silent_ticks = 0;
  // When it is closed whatever it does: during the handshake and while draining.
  std::optional<Clock::time_point> deadline;
  // Its place in connections_.
  std::size_t index = 0;
};

// A listening socket the loop accepts from.
struct alignas(16) EventLoop::Acceptor {
  int fd = -1;
  std::size_t default_export = 0;
  bool armed = false;
  bool paused = false;
  // The pause has been logged.
  bool warned = false;
};

// A device with the queue and the batch the loop has for it.
struct EventLoop::Lane {
  explicit Lane(Device& served) : device(&served), queue(served) { batch.reserve(kBatchRequests); }
  Device* device;
  Queue queue;
  std::vector<Request*> batch;
};

}  // namespace uzram::nbd
