// Server: a device as the kernel's block device /dev/ublkbN.
//
// Role: the front end's outer side. It has the kernel make the device, a queue and a thread for each CPU
// (io_queue.hpp), and takes all of it away again.
// Units: bytes.
// Ownership: the Device belongs to the caller and must outlive the Server. The block device exists as
// long as the Server, unless somebody else removes it.
// Errors: start() fails as a whole, with a message that says what is missing, and leaves no device
// behind. Afterwards trouble with a request fails that request.
// Threads: start, stop and the destructor by one thread at a time; node and others by any.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "uzram/device.hpp"
#include "uzram/error.hpp"

namespace uzram::ublk {

inline constexpr std::uint32_t kMostQueues = 4096;
inline constexpr std::uint32_t kDeepest = 4096;
inline constexpr std::uint32_t kLargestMaxIoBytes = 32U << 20;
inline constexpr std::uint32_t kDefaultDepth = 128;
inline constexpr std::uint32_t kDefaultMaxIoBytes = 512U << 10;

struct ServerOptions {
  // N of the device; the first free one when unset.
  std::optional<std::uint32_t> id;
  // 0: as many as CPUs this process may use. The kernel makes no more than it has CPUs.
  std::uint32_t queues = 0;
  // Requests of a queue that may be in flight, 1 to 4096.
  std::uint32_t depth = kDefaultDepth;
  // Of one read or write: a multiple of 4096, up to 32 MiB. Each queue has memory for four of these, or
  // for 4 KiB of each of `depth`, whichever is more.
  std::uint32_t max_io_bytes = kDefaultMaxIoBytes;
  // 512 or 4096.
  std::uint32_t logical_block_bytes = 4096;
  bool read_only = false;
  // The memory of all queues is taken at the start, not as it is used.
  bool present_buffers = false;
  // Which features of the driver may be used (abi.hpp); for trying what an older one does.
  std::uint64_t allowed_features = ~std::uint64_t{0};
  // Only the bare numbers of commands that drivers before Linux 6.4 know, and no features of later
  // ones.
  bool legacy_commands = false;
};

class Server {
 public:
  // Returns when the block device is there. Errors: unsupported (no ublk here), read_only (no
  // permission), exists (the ID is taken), invalid_argument, no_space, system.
  static Result<std::unique_ptr<Server>> start(const ServerOptions& options, Device& device);
  // Stops if stop() was not called.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Takes the block device away: requests on their way are finished, later ones fail. Where somebody
  // still has it open, it goes when they close it. May be called again. Errors: what the kernel says;
  // nothing is served any more all the same.
  Result<void> stop();

  // "/dev/ublkb3".
  [[nodiscard]] const std::string& node() const noexcept;
  [[nodiscard]] std::uint32_t id() const noexcept;
  // Whether the block device is mounted, used as swap or held by another device.
  [[nodiscard]] bool in_use() const noexcept;

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace uzram::ublk
