// EventLoop: a thread that serves connections through its own io_uring.
//
// Role: moves bytes between sockets and Sessions, and Requests between Sessions and Queues. All
// that has arrived by one wake-up is submitted as one batch for each device, and answered with
// one send for each connection.
// Units: bytes, milliseconds.
// Ownership: owns its connections and their descriptors; listening sockets, exports and devices
// belong to the server and outlive it.
// Errors: trouble with a connection closes that connection. When descriptors run out, accepting
// pauses until one is closed or a tick has passed.
// Threads: create, add_listener and start by one thread, in this order; adopt, request_stop and
// load by any; everything private by the loop's own. io_uring's ordering is no matter for
// ThreadSanitizer here: what the kernel reads and writes for a loop, only that loop's thread
// touches, and descriptors move between loops under a mutex.
// Invariants: 1. At most one receive and one send of a connection are on their way, and it is
// destroyed only when none is. 2. A Session's batch is finished before its next one is prepared.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "uzram/device.hpp"
#include "uzram/error.hpp"

#include "base/mutex.hpp"
#include "frontend/nbd/export_table.hpp"
#include "frontend/nbd/listening_socket.hpp"
#include "os/ring.hpp"

namespace uzram::nbd {

// What all loops of a server have in common.
struct LoopOptions {
  std::uint32_t max_connections = 0;
  std::chrono::milliseconds handshake_timeout{};
  std::chrono::milliseconds stop_timeout{};
  std::size_t max_reply_bytes = 0;
};

// Takes accepted connections to the loop that is to serve them.
class ConnectionSink {
 public:
  // Owns `fd` from here on. Threads: any.
  virtual void place(int fd, std::size_t default_export) noexcept = 0;

 protected:
  ~ConnectionSink() = default;
};

class EventLoop {
 public:
  // `connections` counts those of all loops. Errors: as os::Ring::create, or system.
  static Result<std::unique_ptr<EventLoop>> create(const ExportTable& exports,
                                                   const LoopOptions& options,
                                                   std::atomic<std::uint32_t>& connections,
                                                   ConnectionSink& sink);
  // Stops and joins.
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // This loop accepts from `socket`. REQUIRES: not started.
  void add_listener(const ListeningSocket& socket, std::size_t default_export);
  // Errors: system.
  Result<void> start();

  // Serves `fd`, which it owns from here on; closes it when the loop is stopping.
  void adopt(int fd, std::size_t default_export) noexcept;
  // Connections it serves or is about to.
  [[nodiscard]] std::uint32_t load() const noexcept {
    return load_.load(std::memory_order_relaxed);
  }
  // The thread ends within about stop_timeout.
  void request_stop() noexcept;
  // Waits for the thread to end, if there is one.
  void join();

 private:
  using Clock = std::chrono::steady_clock;

  struct Connection;
  struct Acceptor;
  struct Lane;
  struct Arrival {
    int fd;
    std::size_t default_export;
  };

  EventLoop(const ExportTable& exports, const LoopOptions& options,
            std::atomic<std::uint32_t>& connections, ConnectionSink& sink);
  Result<void> set_up();

  void run() noexcept;
  [[nodiscard]] std::optional<std::chrono::milliseconds> time_to_tick() const noexcept;
  void dispatch(std::uint64_t user_data, int result) noexcept;

  void arm_wake() noexcept;
  void on_wake() noexcept;
  void begin_stop() noexcept;
  void arm_accept(Acceptor& acceptor) noexcept;
  void on_accept(Acceptor& acceptor, int result) noexcept;
  void resume_accepting() noexcept;
  [[nodiscard]] bool accepting() const noexcept;
  // Has tick() called before long.
  void request_tick() noexcept;
  void tick() noexcept;

  void open_connection(Arrival arrival) noexcept;
  void on_received(Connection& connection, int result) noexcept;
  void on_sent(Connection& connection, int result) noexcept;
  void enqueue(Connection& connection) noexcept;
  void work() noexcept;
  // The first one for nullptr.
  [[nodiscard]] Lane& lane_of(const Device* device) noexcept;
  void prepare(Connection& connection) noexcept;
  void submit_batches() noexcept;
  [[nodiscard]] bool arm_doorbells() noexcept;
  void settle(Connection& connection) noexcept;
  void arm_receive(Connection& connection) noexcept;
  void arm_send(Connection& connection) noexcept;
  void hang_up(Connection& connection) noexcept;
  void destroy(Connection& connection) noexcept;

  const ExportTable& exports_;
  const LoopOptions options_;
  std::atomic<std::uint32_t>& connection_count_;
  ConnectionSink& sink_;
  std::unique_ptr<os::Ring> ring_;
  int wake_fd_ = -1;
  std::thread thread_;
  static constexpr int kNotYet = 1;
  // What os::Ring::enable said.
  std::atomic<int> enabled_{kNotYet};
  std::atomic<std::uint32_t> load_{0};

  Mutex mutex_;
  std::vector<Arrival> arrivals_ UZRAM_GUARDED_BY(mutex_);
  bool stop_requested_ UZRAM_GUARDED_BY(mutex_) = false;

  // Below: the loop's thread only, once started.
  std::uint64_t wake_count_ = 0;
  bool wake_armed_ = false;
  bool stopping_ = false;
  std::vector<std::unique_ptr<Acceptor>> acceptors_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  // Connections something has happened to, and the spare that is swapped with it.
  std::vector<Connection*> ready_;
  std::vector<Connection*> working_;
  std::optional<Clock::time_point> next_tick_;
};

}  // namespace uzram::nbd
