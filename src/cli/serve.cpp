#include "cli/serve.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <signal.h>

#include "uzram/device.hpp"

#include "base/log.hpp"
#include "base/size.hpp"
#include "cli/output.hpp"
#include "control/api.hpp"
#include "control/control_server.hpp"
#include "control/device_directory.hpp"
#include "control/runtime_dir.hpp"
#include "frontend/nbd/server.hpp"
#include "frontend/ublk/server.hpp"
#include "os/descriptor_limit.hpp"
#include "os/swap_fitness.hpp"

namespace uzram::cli {
namespace {

// The signals that stop the server, taken by one thread that waits for them.
class StopSignals {
 public:
  // Blocks them in this thread and those it starts.
  StopSignals() noexcept {
    ::sigemptyset(&set_);
    ::sigaddset(&set_, SIGINT);
    ::sigaddset(&set_, SIGTERM);
    struct sigaction hang_up {};
    ::sigaction(SIGHUP, nullptr, &hang_up);
    // nohup asks for it to be ignored, which blocking would undo.
    if (hang_up.sa_handler != SIG_IGN) {
      ::sigaddset(&set_, SIGHUP);
    }
    ::pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }

  void wait() const noexcept {
    while (::sigwaitinfo(&set_, nullptr) < 0 && errno == EINTR) {
    }
  }

  // From a second on each of them ends the process. Repeats within it are the same wish: a terminal
  // or a supervisor may signal the process and its group.
  void restore_later() const {
    std::thread([signals = *this] {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      signals.restore();
    }).detach();
  }

 private:
  // In the calling thread, which is then the one that takes them.
  void restore() const noexcept {
    const timespec at_once{};
    while (::sigtimedwait(&set_, nullptr, &at_once) > 0) {
    }
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
      if (::sigismember(&set_, number) == 1) {
        ::signal(number, SIG_DFL);
      }
    }
    ::pthread_sigmask(SIG_UNBLOCK, &set_, nullptr);
    ::pause();
  }

  sigset_t set_{};
};

// All that runs. Destroyed in the reverse order: who uses something goes first.
struct Running {
  std::vector<std::unique_ptr<Device>> devices;
  control::DeviceDirectory directory;
  control::Api api{directory};
  // One for each device, nothing for those that are no block devices.
  std::vector<std::unique_ptr<ublk::Server>> ublk;
  std::unique_ptr<nbd::Server> nbd;
  std::unique_ptr<control::ControlServer> control;
};

Result<void> create_devices(const ServeOptions& options, Running& running) {
  for (const control::DeviceSettings& settings : options.devices) {
    auto device = Device::create(settings.options);
    if (!device) {
      Error error = device.error();
      error.message.insert(0, "device \"" + settings.options.name + "\": ");
      return error;
    }
    running.devices.push_back(std::move(*device));
  }
  return {};
}

Result<void> start_nbd(const ServeOptions& options, const std::string& socket_dir,
                       Running& running) {
  nbd::ServerOptions server;
  server.max_connections = options.max_connections;
  server.handshake_timeout_ms = options.handshake_timeout_ms;
  std::vector<nbd::Export> exports;
  for (std::size_t i = 0; i < options.devices.size(); ++i) {
    const control::DeviceSettings& settings = options.devices[i];
    if (!is_nbd_export(options, settings)) {
      continue;
    }
    const std::string& name = settings.options.name;
    nbd::Listener listener;
    listener.unix_path = fmt::format("{}/{}.nbd", socket_dir, name);
    listener.default_export = name;
    server.listeners.push_back(std::move(listener));
    exports.push_back({name, "uzram " + settings.options.algorithm, running.devices[i].get(),
                       settings.read_only, settings.logical_block_bytes});
  }
  if (exports.empty()) {
    return {};
  }
  server.listeners.insert(server.listeners.end(), options.listeners.begin(),
                          options.listeners.end());
  auto started = nbd::Server::start(std::move(server), std::move(exports));
  if (!started) {
    return started.error();
  }
  running.nbd = std::move(*started);
  return {};
}

Result<void> start_ublk(const ServeOptions& options, Running& running) {
  for (std::size_t i = 0; i < options.devices.size(); ++i) {
    std::unique_ptr<ublk::Server>& server = running.ublk.emplace_back();
    const control::DeviceSettings& settings = options.devices[i];
    if (!settings.ublk) {
      continue;
    }
    auto started = ublk::Server::start(settings.ublk_options, *running.devices[i]);
    if (!started) {
      Error error = started.error();
      error.message.insert(0, "device \"" + settings.options.name + "\": ");
      return error;
    }
    server = std::move(*started);
  }
  return {};
}

std::vector<std::string> uris_of(const Running& running, const std::string& name) {
  return running.nbd ? running.nbd->uris(name) : std::vector<std::string>();
}

Result<void> fill_directory(const ServeOptions& options, Running& running) {
  for (std::size_t i = 0; i < options.devices.size(); ++i) {
    const control::DeviceSettings& settings = options.devices[i];
    control::DeviceEntry entry;
    entry.device = running.devices[i].get();
    entry.name = settings.options.name;
    entry.exports = uris_of(running, settings.options.name);
    entry.node = running.ublk[i] ? running.ublk[i]->node() : std::string();
    if (auto added = running.directory.add(std::move(entry)); !added) {
      return added;
    }
  }
  return {};
}

// Where the sockets of this server are. A control socket somewhere else takes the sockets of the
// devices along, so that servers with different ones do not meet; its directory is the caller's
// own affair, DIR is ours.
Result<std::filesystem::path> control_path(const ServeOptions& options) {
  if (options.control.empty()) {
    if (auto made = control::make_runtime_dir(control::default_runtime_dir()); !made) {
      return made.error();
    }
    return std::filesystem::path(control::default_control_path());
  }
  // URIs name sockets by absolute paths.
  std::error_code failure;
  auto path = std::filesystem::absolute(options.control, failure);
  if (failure) {
    return system_error("--control \"" + options.control + "\"", failure.value());
  }
  return path;
}

// The control socket is taken first: a server that runs already is found before anything of it is
// touched. It answers last, when everything is there.
Result<void> start(const ServeOptions& options, Running& running) {
  const auto path = control_path(options);
  if (!path) {
    return path.error();
  }
  auto control = control::ControlServer::bind(path->string());
  if (!control) {
    return control.error();
  }
  running.control = std::move(*control);
  if (auto created = create_devices(options, running); !created) {
    return created;
  }
  if (auto started = start_nbd(options, path->parent_path().string(), running); !started) {
    return started;
  }
  if (auto started = start_ublk(options, running); !started) {
    return started;
  }
  if (auto filled = fill_directory(options, running); !filled) {
    return filled;
  }
  return running.control->serve(running.api);
}

// As one word of a shell.
std::string shell_word(std::string_view text) {
  std::string word = "'";
  for (const char byte : text) {
    if (byte == '\'') {
      word += "'\\''";
    } else {
      word += byte;
    }
  }
  return word + "'";
}

std::string facts(const control::DeviceSettings& settings, const DeviceOptions& options) {
  std::string line = options.name + ": " + format_size(options.disksize_bytes) + ", " +
                     options.algorithm + " level " + std::to_string(options.level.value_or(0)) +
                     ", mode " + std::string(mode_name(options.mode)) + ", logical block " +
                     std::to_string(settings.logical_block_bytes);
  if (options.workers != 0) {
    line += ", " + std::to_string(options.workers) + " workers";
  }
  if (options.mem_limit_bytes != 0) {
    line += ", mem-limit " + format_size(options.mem_limit_bytes);
  }
  if (options.reserve_bytes != 0) {
    line += ", reserve " + format_size(options.reserve_bytes);
  }
  if (options.checksum) {
    line += ", checksum";
  }
  if (options.max_comp_streams != 0) {
    line += ", " + std::to_string(options.max_comp_streams) + " streams";
  }
  if (options.train) {
    line += ", trains its tables";
  }
  return line + (settings.read_only ? ", read-only\n" : "\n");
}

std::string describe(const ServeOptions& options, const Running& running) {
  std::string text;
  for (std::size_t i = 0; i < options.devices.size(); ++i) {
    const std::string& name = options.devices[i].options.name;
    text += facts(options.devices[i], running.devices[i]->options());
    if (running.ublk[i]) {
      text += fmt::format("  {}\n", running.ublk[i]->node());
    }
    const std::vector<std::string> uris = uris_of(running, name);
    for (const std::string& uri : uris) {
      text += fmt::format("  {}\n", uri);
    }
    if (!uris.empty()) {
      const std::string folder = "/mnt/" + name;
      text +=
          fmt::format("  nbdinfo {0}\n  qemu-img info {0}\n  mkdir -p {1} && nbdfuse {2} {0}\n",
                      shell_word(uris.front()), shell_word(folder), shell_word(folder + "/disk"));
    }
  }
  return text + "ready\n";
}

// Before any thread is started: threads inherit what the first one is.
void make_fit_for_swap(const ServeOptions& options) {
  std::vector<std::string> paths = {control::default_runtime_dir()};
  if (!options.control.empty()) {
    std::error_code failure;
    paths.push_back(std::filesystem::absolute(options.control, failure).parent_path().string());
  }
  for (const nbd::Listener& listener : options.listeners) {
    if (!listener.unix_path.empty()) {
      paths.push_back(std::filesystem::path(listener.unix_path).parent_path().string());
    }
  }
  for (const Error& missing : os::make_swap_fit(paths)) {
    log(LogLevel::warning, "--swap: " + missing.message);
  }
}

// Returns when a signal asks for the end. While a block device is in use what is stored in it would be
// lost to its users, so the first wish is refused; one that comes a second later is meant.
void wait_for_stop(const StopSignals& signals, const Running& running) {
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> refused_at;
  while (true) {
    signals.wait();
    const auto used = std::ranges::find_if(
        running.ublk, [](const auto& server) { return server && server->in_use(); });
    if (used == running.ublk.end() ||
        (refused_at && Clock::now() - *refused_at >= std::chrono::seconds(1))) {
      return;
    }
    if (!refused_at) {
      refused_at = Clock::now();
      log(LogLevel::warning, (*used)->node() +
                                 " is in use (mounted, swap, or held by another device) and its "
                                 "contents end with this "
                                 "process; still serving. Unmount it or swap it off first, or send "
                                 "the signal again to "
                                 "stop all the same");
    }
  }
}

int stop(Running& running) {
  int exit_code = 0;
  for (const auto& server : running.ublk) {
    if (!server) {
      continue;
    }
    if (auto stopped = server->stop(); !stopped) {
      log(LogLevel::error, stopped.error().message);
      exit_code = 1;
    }
  }
  if (running.nbd) {
    running.nbd->stop();
  }
  return exit_code;
}

}  // namespace

int run_serve(const ServeOptions& options) {
  const StopSignals signals;
  ::signal(SIGPIPE, SIG_IGN);
  os::raise_descriptor_limit();
  if (options.swap) {
    make_fit_for_swap(options);
  }
  Running running;
  if (const auto started = start(options, running); !started) {
    log(LogLevel::error, started.error().message);
    return 1;
  }
  // Nobody may be reading; the devices serve all the same.
  (void)write_output(describe(options, running));
  wait_for_stop(signals, running);
  signals.restore_later();
  return stop(running);
}

}  // namespace uzram::cli
