#include "bench/target_config.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include <sys/stat.h>

#include "base/option_value.hpp"
#include "codec/codec.hpp"

namespace uzram::bench {
namespace {

constexpr std::string_view kEngineKeys =
    "algorithm, level, streams, mode, workers, background, train, mem-limit, slowdown";
constexpr std::string_view kCodecKeys = "algorithm, level, slowdown";
constexpr std::string_view kZramKeys = "algorithm, level, io, slowdown";
constexpr std::string_view kBlockKeys = "io, slowdown";
constexpr std::string_view kNbdPort = "10809";

Error refuse(std::string_view target, std::string_view what) {
  return {Errc::invalid_argument, 0,
          "--target \"" + std::string(target) + "\": " + std::string(what)};
}

// As it is where a percent sign has no two hexadecimal digits behind it.
std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    const char* const digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      decoded.push_back(static_cast<char>(byte));
      i += 2;
    } else {
      decoded.push_back(text[i]);
    }
  }
  return decoded;
}

std::string_view keys_of(TargetKind kind) noexcept {
  switch (kind) {
    case TargetKind::engine:
      return kEngineKeys;
    case TargetKind::codec:
      return kCodecKeys;
    case TargetKind::zram:
      return kZramKeys;
    case TargetKind::block_device:
    case TargetKind::nbd:
      break;
  }
  return kBlockKeys;
}

// Whether `key` is one of the names in `list`.
bool contains(std::string_view list, std::string_view key) noexcept {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(", "), list.size());
    if (list.substr(0, comma) == key) {
      return true;
    }
    list.remove_prefix(std::min(comma + 2, list.size()));
  }
  return false;
}

Result<void> set_io(TargetConfig& config, std::string_view value) {
  if (value == "psync") {
    config.io = IoPath::psync;
  } else if (value == "uring") {
    config.io = IoPath::uring;
  } else if (value == "auto") {
    config.io = IoPath::automatic;
  } else {
    return refuse(config.given, "io=" + std::string(value) + ": expected psync, uring or auto");
  }
  return {};
}

Result<void> set_slowdown(TargetConfig& config, std::string_view value) {
  constexpr double kMost = 1000;
  std::string_view number = value;
  if (!number.empty() && number.back() == '%') {
    number.remove_suffix(1);
  }
  // Written so that NaN is refused too.
  if (!take_number(number, config.slowdown_percent) ||
      !(config.slowdown_percent >= 0 && config.slowdown_percent <= kMost)) {
    return refuse(config.given, "slowdown=" + std::string(value) +
                                    ": expected a percentage from 0 to 1000, such as 5");
  }
  return {};
}

Result<void> set_key(TargetConfig& config, std::string_view key, std::string_view value) {
  if (!contains(keys_of(config.kind), key)) {
    return refuse(config.given, "there is no key \"" + std::string(key) +
                                    "\" for this kind of target; expected " +
                                    std::string(keys_of(config.kind)));
  }
  if (key == "io") {
    return set_io(config, value);
  }
  if (key == "slowdown") {
    return set_slowdown(config, value);
  }
  config.algorithm_given |= key == "algorithm";
  config.level_given |= key == "level";
  config.streams_given |= key == "streams";
  config.mode_given |= key == "mode";
  const std::string option = "--target " + config.given + ": " + std::string(key);
  if (key == "algorithm" && config.kind == TargetKind::zram) {
    // The kernel knows others than this program; it will say so itself.
    config.device.options.algorithm = value;
    return {};
  }
  if (key == "streams") {
    return control::set_device_key(config.device, option, "max-comp-streams",
                                   value == "per-cpu" ? "0" : value);
  }
  return control::set_device_key(config.device, option, key, value);
}

Result<void> set_pair(TargetConfig& config, std::string_view pair) {
  const std::size_t equals = pair.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return refuse(config.given, "\"" + std::string(pair) +
                                    "\": expected KEY=VALUE, separated by colons, with the keys " +
                                    std::string(keys_of(config.kind)));
  }
  return set_key(config, pair.substr(0, equals), pair.substr(equals + 1));
}

// Paths hold colons too, as those of /dev/disk/by-path; keys are the last parts that look like some.
Result<TargetConfig> parse_path(TargetConfig config) {
  std::string_view path = config.given;
  config.kind = TargetKind::block_device;
  while (true) {
    const std::size_t colon = path.rfind(':');
    const std::string_view last = colon == std::string_view::npos ? "" : path.substr(colon + 1);
    const std::size_t equals = last.find('=');
    if (equals == std::string_view::npos || !contains(kBlockKeys, last.substr(0, equals))) {
      break;
    }
    if (auto set = set_pair(config, last); !set) {
      return set.error();
    }
    path = path.substr(0, colon);
  }
  config.address = path;
  return config;
}

Result<TargetConfig> parse_keys(TargetConfig config) {
  std::string_view rest = config.given;
  const std::size_t colon = std::min(rest.find(':'), rest.size());
  const std::string_view name = rest.substr(0, colon);
  if (name == "engine") {
    config.kind = TargetKind::engine;
  } else if (name == "codec") {
    config.kind = TargetKind::codec;
  } else if (name == "zram") {
    config.kind = TargetKind::zram;
  } else {
    return refuse(config.given,
                  "expected engine, codec or zram, each with :KEY=VALUE as wanted, the path of a "
                  "block device or file, or an NBD URI (nbd+unix:///NAME?socket=PATH, "
                  "nbd://HOST/NAME)");
  }
  rest.remove_prefix(colon);
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::size_t end = std::min(rest.find(':'), rest.size());
    if (auto set = set_pair(config, rest.substr(0, end)); !set) {
      return set.error();
    }
    rest.remove_prefix(end);
  }
  // A level without an algorithm is that of whichever the run has.
  if (config.algorithm_given || !config.level_given) {
    if (auto possible = check_level(config); !possible) {
      return std::move(possible).error();
    }
  }
  return config;
}

}  // namespace

Result<TargetConfig> parse_target(std::string_view text) {
  TargetConfig config;
  config.given = text;
  config.label = text;
  if (text.substr(0, 1) == "/") {
    return parse_path(std::move(config));
  }
  constexpr std::array<std::string_view, 4> kSchemes = {"nbd://", "nbds://", "nbd+unix://",
                                                        "nbds+unix://"};
  if (std::any_of(kSchemes.begin(), kSchemes.end(), [text](std::string_view scheme) {
        return text.substr(0, scheme.size()) == scheme;
      })) {
    config.kind = TargetKind::nbd;
    config.address = text;
    return config;
  }
  return parse_keys(std::move(config));
}

Result<std::vector<TargetConfig>> parse_targets(const std::vector<std::string>& lists) {
  std::vector<TargetConfig> targets;
  for (const std::string& list : lists) {
    std::string_view rest = list;
    while (true) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      auto target = parse_target(rest.substr(0, comma));
      if (!target) {
        return target.error();
      }
      targets.push_back(*std::move(target));
      if (comma == rest.size()) {
        break;
      }
      rest.remove_prefix(comma + 1);
    }
  }
  make_labels_unique(targets);
  return targets;
}

void make_labels_unique(std::vector<TargetConfig>& targets) {
  const auto taken = [&targets](std::size_t before, const std::string& label) {
    const auto end = targets.begin() + static_cast<std::ptrdiff_t>(before);
    return std::any_of(targets.begin(), end,
                       [&](const TargetConfig& earlier) { return earlier.label == label; });
  };
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const std::string label = targets[i].label;
    for (std::size_t number = 2; taken(i, targets[i].label); ++number) {
      targets[i].label = label + "#" + std::to_string(number);
    }
  }
}

NbdAddress parse_nbd_address(std::string_view uri) {
  NbdAddress address;
  const std::size_t scheme_end = std::min(uri.find("://"), uri.size());
  const bool unix_socket = uri.substr(0, scheme_end).ends_with("+unix");
  std::string_view rest = uri.substr(std::min(scheme_end + 3, uri.size()));
  const std::size_t question = std::min(rest.find('?'), rest.size());
  const std::string_view query = rest.substr(question);
  rest = rest.substr(0, question);
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  address.name = percent_decoded(rest.substr(std::min(slash + 1, rest.size())));
  if (unix_socket) {
    constexpr std::string_view kSocket = "socket=";
    const std::size_t begin = query.find(kSocket);
    if (begin != std::string_view::npos) {
      const std::string_view value = query.substr(begin + kSocket.size());
      address.socket = percent_decoded(value.substr(0, value.find('&')));
    }
    address.local = true;
    return address;
  }
  std::string_view host = rest.substr(0, slash);
  host.remove_prefix(host.rfind('@') + 1);
  const std::size_t bracket = host.rfind(']');
  const std::size_t colon = host.find(':', bracket == std::string_view::npos ? 0 : bracket);
  address.port = colon == std::string_view::npos ? kNbdPort : host.substr(colon + 1);
  host = host.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  address.host = host;
  std::transform(address.host.begin(), address.host.end(), address.host.begin(), [](char byte) {
    return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
  });
  address.local =
      address.host == "localhost" || address.host == "::1" || address.host.starts_with("127.");
  if (address.local) {
    address.host = "localhost";
  }
  return address;
}

std::string place_of(const TargetConfig& config) {
  struct stat status {};
  if (config.kind == TargetKind::block_device) {
    return ::stat(config.address.c_str(), &status) == 0 ? "device " + std::to_string(status.st_rdev)
                                                        : "path " + config.address;
  }
  if (config.kind != TargetKind::nbd) {
    return {};
  }
  const NbdAddress address = parse_nbd_address(config.address);
  std::string server = "host " + address.host + " port " + address.port;
  if (!address.socket.empty()) {
    server = ::stat(address.socket.c_str(), &status) == 0
                 ? "socket " + std::to_string(status.st_dev) + " " + std::to_string(status.st_ino)
                 : "path " + address.socket;
  }
  return server + " export " + address.name;
}

Result<void> check_level(const TargetConfig& config) {
  if (config.kind == TargetKind::engine || config.kind == TargetKind::codec) {
    const DeviceOptions& options = config.device.options;
    if (auto made = codec::make(options.algorithm, options.level, kDefaultPageSize); !made) {
      Error error = std::move(made).error();
      error.message.insert(0, "target \"" + config.label + "\": ");
      return error;
    }
  }
  return {};
}

Result<void> vary(TargetConfig& config, std::string_view key, std::string_view value) {
  if (auto set = set_key(config, key, value); !set) {
    return set;
  }
  config.label += ":" + std::string(key) + "=" + std::string(value);
  return {};
}

}  // namespace uzram::bench
