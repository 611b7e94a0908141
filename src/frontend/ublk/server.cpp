#include "frontend/ublk/server.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <limits>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/cpu.hpp"
#include "base/log.hpp"
#include "base/size.hpp"
#include "frontend/ublk/control.hpp"
#include "frontend/ublk/features.hpp"
#include "frontend/ublk/io_queue.hpp"
#include "frontend/ublk/listing.hpp"
#include "os/descriptor.hpp"

namespace uzram::ublk {
namespace {

static_assert(kDeepest <= kMaxDepth && kLargestMaxIoBytes <= kMaxIoBytes);

using namespace std::chrono_literals;

// A node appears when the kernel has made it, may be held by udev for a moment, and is given to its
// user after that.
constexpr std::chrono::milliseconds kNodePatience = 10s;
constexpr std::chrono::milliseconds kNodePause = 10ms;

Result<void> check(const ServerOptions& options) {
  const auto refuse = [](std::string_view what, std::uint32_t value, std::string_view expected) {
    return Error{Errc::invalid_argument, 0,
                 fmt::format("ublk: {} {}: expected {}", what, value, expected)};
  };
  if (options.queues > kMostQueues) {
    return refuse("queues", options.queues, "at most 4096, or 0 for one per CPU");
  }
  if (options.depth == 0 || options.depth > kDeepest) {
    return refuse("depth", options.depth, "1 to 4096");
  }
  if (options.max_io_bytes == 0 || options.max_io_bytes > kLargestMaxIoBytes ||
      options.max_io_bytes % BufferArena::kUnitBytes != 0) {
    return refuse("max-io", options.max_io_bytes, "a multiple of 4096 up to 32M");
  }
  if (options.logical_block_bytes != 512 && options.logical_block_bytes != 4096) {
    return refuse("logical block", options.logical_block_bytes, "512 or 4096");
  }
  return {};
}

std::uint8_t shift_of(std::uint32_t bytes) noexcept {
  return static_cast<std::uint8_t>(std::countr_zero(bytes));
}

Parameters parameters_of(const ServerOptions& options, const Device& device) noexcept {
  const std::uint32_t page = device.page_size_bytes();
  Parameters parameters;
  parameters.length = sizeof parameters;
  parameters.types = kHasBasic | kHasDiscard;
  // No volatile cache: what has been written is as safe as it will ever be, so nothing is to be
  // flushed.
  parameters.attributes = options.read_only ? kReadOnly : 0;
  parameters.logical_block_shift = shift_of(options.logical_block_bytes);
  parameters.physical_block_shift = shift_of(page);
  parameters.optimal_io_shift = shift_of(page);
  parameters.minimal_io_shift = shift_of(page);
  parameters.max_sectors = options.max_io_bytes / kSectorSize;
  parameters.device_sectors = device.disksize_bytes() / kSectorSize;
  parameters.discard_granularity = page;
  // As many as a request of the kernel can have, in whole pages.
  const std::uint32_t most = std::numeric_limits<std::uint32_t>::max() / page * page / kSectorSize;
  parameters.max_discard_sectors = most;
  parameters.max_write_zeroes_sectors = most;
  parameters.max_discard_segments = 1;
  return parameters;
}

// Opens a device node that is about to appear.
Result<os::Descriptor> open_node(const std::string& node, int flags) {
  const auto deadline = std::chrono::steady_clock::now() + kNodePatience;
  int failed = 0;
  do {
    os::Descriptor fd(::open(node.c_str(), flags | O_CLOEXEC));
    if (fd.is_open()) {
      return fd;
    }
    failed = errno;
    const bool may_pass = failed == ENOENT || failed == EBUSY || failed == EACCES ||
                          failed == EPERM || failed == EINTR || failed == ENXIO;
    if (!may_pass) {
      break;
    }
    std::this_thread::sleep_for(kNodePause);
  } while (std::chrono::steady_clock::now() < deadline);
  Error error = system_error("ublk: " + node, failed);
  if (failed == ENOENT) {
    error.message += ": the kernel's node did not appear; expected devtmpfs or udev in /dev";
  } else if (failed == EACCES || failed == EPERM) {
    error.message += ": expected a rule that gives the node to its user (docs/ublk.md)";
  } else if (failed == EBUSY) {
    error.message += ": another process has it open";
  }
  return error;
}

}  // namespace

struct Server::Impl {
  Impl(const ServerOptions& given, Device& served) : options(given), device(served) {}

  Result<void> make();
  Result<void> open_queues();
  Result<void> start();
  void queue_ended() noexcept;
  Result<void> stop();
  // The device is still the one that was made, and not another one of the same number.
  [[nodiscard]] bool is_ours();

  const ServerOptions options;
  Device& device;
  std::unique_ptr<Control> control;
  std::string node;
  DeviceInfo info{};
  DataPath data_path = DataPath::user_copy;
  os::Descriptor character;
  std::vector<std::unique_ptr<IoQueue>> queues;
  std::atomic<std::uint32_t> running{0};
  std::atomic<bool> stopping{false};
  bool made = false;
  // Read by the queues' threads.
  std::atomic<bool> started{false};
};

Result<void> Server::Impl::make() {
  Result<std::unique_ptr<Control>> opened = Control::open();
  if (!opened) {
    return std::move(opened).error();
  }
  control = std::move(*opened);
  if (options.legacy_commands) {
    control->use_legacy_numbers();
  }
  info.queues = static_cast<std::uint16_t>(
      options.queues == 0 ? std::min(usable_cpus(), kMostQueues) : options.queues);
  info.depth = static_cast<std::uint16_t>(options.depth);
  info.max_io_bytes = options.max_io_bytes;
  info.device_id = options.id.value_or(kAnyId);
  info.flags = choose_flags(control->features(), control->privileged(), options.allowed_features);
  if (control->ioctl_encoding()) {
    info.flags |= kIoctlEncoding;
  }
  if (Result<void> added = control->add(info); !added) {
    return added;
  }
  made = true;
  node = block_node(info.device_id);
  const Result<DataPath> path = data_path_of(info.flags);
  if (!path) {
    return path.error();
  }
  data_path = *path;
  return {};
}

Result<void> Server::Impl::open_queues() {
  // Before the parameters: an ordinary user's commands are allowed by the permissions of this node.
  Result<os::Descriptor> opened = open_node(character_node(info.device_id), O_RDWR);
  if (!opened) {
    return std::move(opened).error();
  }
  character = std::move(*opened);
  Parameters parameters = parameters_of(options, device);
  if (Result<void> set = control->set_parameters(info.device_id, parameters); !set) {
    return set;
  }
  QueueConfig config;
  config.fd = character.get();
  config.depth = info.depth;
  config.max_io_bytes = options.max_io_bytes;
  config.data_path = data_path;
  config.ioctl_encoding = control->ioctl_encoding();
  config.read_only = options.read_only;
  config.present_buffers = options.present_buffers;
  for (std::uint32_t i = 0; i < info.queues; ++i) {
    config.index = i;
    config.cpus = control->affinity(info.device_id, i);
    Result<std::unique_ptr<IoQueue>> queue = IoQueue::create(config, device);
    if (!queue) {
      return std::move(queue).error();
    }
    queues.push_back(std::move(*queue));
  }
  return {};
}

Result<void> Server::Impl::start() {
  running.store(static_cast<std::uint32_t>(queues.size()), std::memory_order_relaxed);
  for (const auto& queue : queues) {
    if (Result<void> fetched = queue->start([this]() noexcept { queue_ended(); }); !fetched) {
      return fetched;
    }
  }
  if (Result<void> live = control->start(info.device_id); !live) {
    return live;
  }
  started = true;
  // What is printed next is what people will open.
  Result<os::Descriptor> opened = open_node(node, O_RDONLY);
  return opened ? Result<void>() : Result<void>(std::move(opened).error());
}

// By the thread of each queue, when nothing of the device is mapped there any more.
void Server::Impl::queue_ended() noexcept {
  if (running.fetch_sub(1, std::memory_order_acq_rel) == 1 && started &&
      !stopping.load(std::memory_order_acquire)) {
    // Whoever removes it waits for this.
    character.reset();
    log(LogLevel::warning,
        "ublk: " + node + " has been stopped by another process; it is not served any more");
  }
}

bool Server::Impl::is_ours() {
  const Result<DeviceInfo> now = control->info(info.device_id);
  // A device that has been stopped has no server in the kernel's eyes.
  return now && (now->server_pid == ::getpid() || now->server_pid <= 0);
}

Result<void> Server::Impl::stop() {
  if (!std::exchange(made, false)) {
    return {};
  }
  stopping.store(true, std::memory_order_release);
  const bool ours = !started || is_ours();
  Result<void> stopped;
  if (ours) {
    stopped = control->stop(info.device_id);
  }
  if (!started || !stopped) {
    for (const auto& queue : queues) {
      queue->give_up();
    }
  }
  for (const auto& queue : queues) {
    queue->join();
  }
  // The removal waits for whatever of these is left.
  queues.clear();
  character.reset();
  if (!ours) {
    return {};
  }
  Result<void> removed = control->remove(info.device_id);
  return stopped ? removed : stopped;
}

Server::Server(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}

Server::~Server() {
  if (Result<void> stopped = impl_->stop(); !stopped) {
    log(LogLevel::warning, stopped.error().message);
  }
}

Result<std::unique_ptr<Server>> Server::start(const ServerOptions& options, Device& device) {
  if (Result<void> sound = check(options); !sound) {
    return std::move(sound).error();
  }
  // From here on the destructor undoes what has been done.
  std::unique_ptr<Server> server(new Server(std::make_unique<Impl>(options, device)));
  if (Result<void> made = server->impl_->make(); !made) {
    return std::move(made).error();
  }
  if (Result<void> opened = server->impl_->open_queues(); !opened) {
    return std::move(opened).error();
  }
  if (Result<void> started = server->impl_->start(); !started) {
    return std::move(started).error();
  }
  return server;
}

Result<void> Server::stop() { return impl_->stop(); }

const std::string& Server::node() const noexcept { return impl_->node; }

std::uint32_t Server::id() const noexcept { return impl_->info.device_id; }

bool Server::in_use() const noexcept { return is_in_use(impl_->node); }

}  // namespace uzram::ublk
