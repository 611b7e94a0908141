#include "cli/serve.hpp"

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
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
#include "os/descriptor_limit.hpp"

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
    const std::string& name = settings.options.name;
    nbd::Listener listener;
    listener.unix_path = fmt::format("{}/{}.nbd", socket_dir, name);
    listener.default_export = name;
    server.listeners.push_back(std::move(listener));
    exports.push_back({name, "uzram " + settings.options.algorithm, running.devices[i].get(),
                       settings.read_only, settings.logical_block_bytes});
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

Result<void> fill_directory(const ServeOptions& options, Running& running) {
  for (std::size_t i = 0; i < options.devices.size(); ++i) {
    const control::DeviceSettings& settings = options.devices[i];
    control::DeviceEntry entry;
    entry.device = running.devices[i].get();
    entry.name = settings.options.name;
    entry.exports = running.nbd->uris(settings.options.name);
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
  if (options.max_comp_streams != 0) {
    line += ", " + std::to_string(options.max_comp_streams) + " streams";
  }
  return line + (settings.read_only ? ", read-only\n" : "\n");
}

std::string describe(const ServeOptions& options, const Running& running) {
  std::string text;
  for (std::size_t i = 0; i < options.devices.size(); ++i) {
    const std::string& name = options.devices[i].options.name;
    text += facts(options.devices[i], running.devices[i]->options());
    const std::vector<std::string> uris = running.nbd->uris(name);
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

}  // namespace

int run_serve(const ServeOptions& options) {
  const StopSignals signals;
  ::signal(SIGPIPE, SIG_IGN);
  os::raise_descriptor_limit();
  Running running;
  if (const auto started = start(options, running); !started) {
    log(LogLevel::error, started.error().message);
    return 1;
  }
  // Nobody may be reading; the devices serve all the same.
  (void)write_output(describe(options, running));
  signals.wait();
  signals.restore_later();
  running.nbd->stop();
  return 0;
}

}  // namespace uzram::cli
