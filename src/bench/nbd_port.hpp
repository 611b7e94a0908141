// NbdPort: one job's connection to an NBD server.
//
// Role: turns Requests into NBD commands that libnbd sends and awaits. A read or write longer than
// the server takes goes out in pieces and completes with the last of them.
// Errors: a server's answer becomes the matching Errc. When the connection is gone, all requests in
// flight and all later ones complete with Errc::system.
// Threads: one at a time, see Port.
// Invariants: 1. A slot is busy from submit until its request is on the list of completed ones. 2. libnbd calls
// back for a command or refuses it, never both, so `pieces` counts exactly the commands it holds.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "uzram/error.hpp"
#include "uzram/fifo.hpp"
#include "uzram/request.hpp"

#include "bench/nbd_connection.hpp"
#include "bench/port_parts.hpp"
#include "bench/target.hpp"

namespace uzram::bench {

class NbdPort final : public Port {
 public:
  NbdPort(NbdConnection connection, std::uint32_t iodepth);

  void submit(std::span<Request* const> batch) noexcept override;
  [[nodiscard]] Request* reap() noexcept override;
  [[nodiscard]] bool has_completed() noexcept override { return !completed_.empty(); }
  void execute(Request& request) noexcept override;
  [[nodiscard]] std::string failure() const override;

 private:
  struct Slot {
    NbdPort* port = nullptr;
    // nullptr: free.
    Request* request = nullptr;
    // Commands that libnbd holds, and one more while they are being made.
    std::uint32_t pieces = 0;
    Slot* next_free = nullptr;
  };
  // What the last failed request was and how the server answered.
  struct Refusal {
    Op op = Op::read;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    int number = 0;
  };

  static int on_completion(void* slot, int* error) noexcept;
  void start(Request& request) noexcept;
  // Whether the server has the command at all; otherwise the status that its request gets.
  [[nodiscard]] Errc offered(Op op) noexcept;
  std::int64_t send(Slot& slot, std::uint64_t from, std::uint64_t length) noexcept;
  void fail(Slot& slot, int number) noexcept;
  void finish_piece(Slot& slot) noexcept;
  void wait() noexcept;
  [[nodiscard]] bool is_over() const noexcept;
  // The connection is gone: nothing that is in flight will be answered.
  void lose(std::string why) noexcept;

  NbdConnection connection_;
  const bool can_trim_;
  const bool can_zero_;
  const bool can_flush_;
  std::vector<Slot> slots_;
  Slot* free_ = nullptr;
  Fifo<Request> completed_;
  std::uint32_t in_flight_ = 0;
  // The connection is gone, and why as far as libnbd says; nothing more is asked of it.
  bool lost_ = false;
  std::string loss_;
  Refusal refusal_;
  // The last operation asked for that the server does not offer.
  std::optional<Op> not_offered_;
};

}  // namespace uzram::bench
