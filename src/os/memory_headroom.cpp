#include "os/memory_headroom.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <limits>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "base/mutex.hpp"
#include "base/size.hpp"
#include "os/descriptor.hpp"

namespace uzram::os {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
// Version 1 writes "no limit" as the greatest multiple of a page below 2^63.
constexpr std::uint64_t kNoLimitFrom = std::uint64_t{1} << 60;

std::uint64_t group_margin(std::uint64_t limit) noexcept {
  return std::min(8 * kMiB + limit / 16, kGiB);
}

std::uint64_t system_margin(std::uint64_t total) noexcept {
  return std::clamp(total / 64, 64 * kMiB, kGiB);
}

std::uint64_t minus_or_zero(std::uint64_t value, std::uint64_t subtrahend) noexcept {
  return value > subtrahend ? value - subtrahend : 0;
}

Descriptor open_at(int directory, const char* name, int flags) noexcept {
  return Descriptor(::openat(directory, name, flags | O_CLOEXEC));
}

// What of the file fits `room`, or nothing when it cannot be read.
std::optional<std::string_view> read_file(const Descriptor& file, std::span<char> room,
                                          std::size_t offset = 0) noexcept {
  ssize_t got = 0;
  do {
    got = ::pread(file.get(), room.data(), room.size(), static_cast<off_t>(offset));
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    return std::nullopt;
  }
  return std::string_view(room.data(), static_cast<std::size_t>(got));
}

// The part of `text` before the first `separator`, which is removed from `text` together with it.
std::string_view take_until(std::string_view& text, char separator) noexcept {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view head = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return head;
}

std::optional<std::uint64_t> leading_number(std::string_view text) noexcept {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::uint64_t number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc{}) {
    return std::nullopt;
  }
  return number;
}

// The number a control group's file holds: "max" is kUnlimited.
std::optional<std::uint64_t> read_number(const Descriptor& file) noexcept {
  std::array<char, 32> room{};
  const auto text = read_file(file, room);
  if (!text) {
    return std::nullopt;
  }
  return text->starts_with("max") ? kUnlimited : leading_number(*text);
}

// The value of the line that begins with `key` and `separator`.
std::optional<std::uint64_t> find_value(std::string_view text, std::string_view key,
                                        char separator) noexcept {
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (take_until(line, separator) == key) {
      return leading_number(line);
    }
  }
  return std::nullopt;
}

// Reads a whole file of proc. Nothing when it cannot be opened or read.
std::optional<std::string> slurp(const std::string& path) {
  const Descriptor file = open_at(AT_FDCWD, path.c_str(), O_RDONLY);
  std::string text;
  std::array<char, 4096> room{};
  while (true) {
    const auto piece = read_file(file, room, text.size());
    if (!piece) {
      return std::nullopt;
    }
    if (piece->empty()) {
      return text;
    }
    text += *piece;
  }
}

// mountinfo writes blanks, tabs, line ends and backslashes as \ooo.
std::string unescape(std::string_view field) {
  std::string plain;
  while (!field.empty()) {
    unsigned code = 0;
    if (field.size() >= 4 && field[0] == '\\' &&
        std::from_chars(field.data() + 1, field.data() + 4, code, 8).ptr == field.data() + 4) {
      plain += static_cast<char>(code);
      field.remove_prefix(4);
    } else {
      plain += field[0];
      field.remove_prefix(1);
    }
  }
  return plain;
}

bool list_contains(std::string_view list, std::string_view word) noexcept {
  while (!list.empty()) {
    if (take_until(list, ',') == word) {
      return true;
    }
  }
  return false;
}

enum class Version { v1, v2 };

// One mount of the hierarchy: `root` of the hierarchy is what shows at `point`.
struct Mount {
  Version version = Version::v2;
  std::string root;
  std::string point;
};

std::vector<Mount> parse_mountinfo(std::string_view text) {
  std::vector<Mount> mounts;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    // "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS TAG… - TYPE SOURCE SUPEROPTIONS"
    for (int skipped = 0; skipped < 3; ++skipped) {
      take_until(line, ' ');
    }
    const std::string_view root = take_until(line, ' ');
    const std::string_view point = take_until(line, ' ');
    const std::size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) {
      continue;
    }
    line.remove_prefix(dash + 3);
    const std::string_view type = take_until(line, ' ');
    take_until(line, ' ');
    if (type == "cgroup2") {
      mounts.push_back({Version::v2, unescape(root), unescape(point)});
    } else if (type == "cgroup" && list_contains(line, "memory")) {
      mounts.push_back({Version::v1, unescape(root), unescape(point)});
    }
  }
  return mounts;
}

// The group of the process in the hierarchy that may limit its memory under `version`.
std::optional<std::string_view> find_group(std::string_view membership, Version version) {
  while (!membership.empty()) {
    std::string_view line = take_until(membership, '\n');
    const std::string_view hierarchy = take_until(line, ':');
    const std::string_view controllers = take_until(line, ':');
    const bool wanted = version == Version::v2 ? hierarchy == "0" && controllers.empty()
                                               : list_contains(controllers, "memory");
    if (wanted) {
      return line;
    }
  }
  return std::nullopt;
}

// `group` as seen from `root`: "" for itself, else it begins with a slash. Nothing when it lies
// outside, which "/.." says of a group outside the control group namespace.
std::optional<std::string_view> below(std::string_view root, std::string_view group) {
  if (root == "/") {
    root = "";
  }
  if (!group.starts_with(root)) {
    return std::nullopt;
  }
  group.remove_prefix(root.size());
  if (group == "/") {
    group = "";
  }
  if (group == "/.." || group.starts_with("/../") || !(group.empty() || group[0] == '/')) {
    return std::nullopt;
  }
  return group;
}

// One control group that may bound the process.
struct Level {
  Version version = Version::v2;
  std::string name;
  // Version 1 only: ancestors exist that no mount shows; memory.stat tells their limit.
  bool hides_ancestors = false;
  Descriptor directory;
  Descriptor limit;
  Descriptor high;
  Descriptor current;
  Descriptor stat;

  // Opens what is not open. A controller can be enabled at any time, and its files appear then.
  [[nodiscard]] bool ready() noexcept {
    if (current.is_open()) {
      return true;
    }
    const bool v2 = version == Version::v2;
    limit = open_at(directory.get(), v2 ? "memory.max" : "memory.limit_in_bytes", O_RDONLY);
    if (!limit.is_open()) {
      return false;
    }
    if (v2) {
      high = open_at(directory.get(), "memory.high", O_RDONLY);
    }
    stat = open_at(directory.get(), "memory.stat", O_RDONLY);
    current = open_at(directory.get(), v2 ? "memory.current" : "memory.usage_in_bytes", O_RDONLY);
    return current.is_open();
  }

  void forget() noexcept {
    limit.reset();
    high.reset();
    current.reset();
    stat.reset();
  }
};

// What bounds the process and by how much.
struct Bound {
  std::uint64_t bytes = 0;
  std::uint64_t limit = 0;
  const Level* level = nullptr;  // nullptr: the system
};

// Lowers `bound` to what `level` leaves, if that is less.
void apply(Level& level, Bound& bound) noexcept {
  if (!level.ready()) {
    return;
  }
  const auto hard_limit = read_number(level.limit);
  const auto used = read_number(level.current);
  if (!hard_limit || !used) {
    // The controller was disabled, or the group removed.
    level.forget();
    return;
  }
  const std::uint64_t soft_limit =
      level.high.is_open() ? read_number(level.high).value_or(kUnlimited) : kUnlimited;
  std::uint64_t limit = std::min(*hard_limit, soft_limit);
  // Page cache only adds to what is left, so the long memory.stat is read only when this level may
  // be the tightest.
  if (!level.hides_ancestors &&
      (limit >= kNoLimitFrom ||
       minus_or_zero(minus_or_zero(limit, *used), group_margin(limit)) >= bound.bytes)) {
    return;
  }
  std::array<char, 8192> room;  // NOLINT: read_file says how much of it is filled
  const auto stat = read_file(level.stat, room).value_or("");
  const bool v2 = level.version == Version::v2;
  if (level.hides_ancestors) {
    limit = std::min(limit, find_value(stat, "hierarchical_memory_limit", ' ').value_or(limit));
    if (limit >= kNoLimitFrom) {
      return;
    }
  }
  const std::uint64_t cache =
      find_value(stat, v2 ? "inactive_file" : "total_inactive_file", ' ').value_or(0) +
      find_value(stat, v2 ? "active_file" : "total_active_file", ' ').value_or(0);
  const std::uint64_t left =
      minus_or_zero(minus_or_zero(limit, minus_or_zero(*used, cache)), group_margin(limit));
  if (left < bound.bytes) {
    bound = {left, limit, &level};
  }
}

}  // namespace

struct MemoryHeadroom::Impl {
  std::string mountinfo_path;
  Descriptor meminfo;
  Descriptor membership;  // not open: a kernel without control groups

  Mutex mutex;
  std::vector<Level> levels UZRAM_GUARDED_BY(mutex);
  // Of the membership file's text when `levels` was made; 0 before.
  std::uint64_t membership_hash UZRAM_GUARDED_BY(mutex) = 0;

  std::uint64_t hash_membership() const noexcept;
  void find_levels() UZRAM_REQUIRES(mutex);
  void add_levels(const std::vector<Mount>& mounts, Version version, std::string_view group)
      UZRAM_REQUIRES(mutex);
  Result<Bound> measure_system() const;
  Bound measure() noexcept UZRAM_REQUIRES(mutex);
};

// FNV-1a over the file, a piece at a time; never 0.
std::uint64_t MemoryHeadroom::Impl::hash_membership() const noexcept {
  std::uint64_t hash = 0xcbf29ce484222325U;
  std::array<char, 1024> room;  // NOLINT: read_file says how much of it is filled
  std::size_t offset = 0;
  while (true) {
    const auto piece = read_file(membership, room, offset);
    if (!piece || piece->empty()) {
      return std::max<std::uint64_t>(hash, 1);
    }
    for (const char byte : *piece) {
      hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
    }
    offset += piece->size();
  }
}

void MemoryHeadroom::Impl::find_levels() {
  levels.clear();
  std::string text;
  std::array<char, 1024> room{};
  for (auto piece = read_file(membership, room); piece && !piece->empty();
       piece = read_file(membership, room, text.size())) {
    text += *piece;
  }
  const std::vector<Mount> mounts = parse_mountinfo(slurp(mountinfo_path).value_or(""));
  for (const Version version : {Version::v1, Version::v2}) {
    if (const auto group = find_group(text, version)) {
      add_levels(mounts, version, *group);
    }
  }
}

void MemoryHeadroom::Impl::add_levels(const std::vector<Mount>& mounts, Version version,
                                      std::string_view group) {
  // Of several mounts the one that shows most ancestors. When none shows the group, what is
  // mounted is most likely a container's own group under another name: take its top.
  const Mount* chosen = nullptr;
  std::string_view path;
  for (const Mount& mount : mounts) {
    if (mount.version != version) {
      continue;
    }
    const auto inside = below(mount.root, group);
    if (chosen == nullptr || (inside && inside->size() >= path.size())) {
      chosen = &mount;
      path = inside.value_or("");
    }
  }
  if (chosen == nullptr) {
    return;
  }
  while (true) {
    Level level;
    level.version = version;
    level.name = chosen->root == "/" ? std::string(path) : chosen->root + std::string(path);
    if (level.name.empty()) {
      level.name = "/";
    }
    level.hides_ancestors = version == Version::v1 && path.empty() && chosen->root != "/";
    const std::string directory = chosen->point + std::string(path);
    level.directory = open_at(AT_FDCWD, directory.c_str(), O_PATH | O_DIRECTORY);
    if (level.directory.is_open()) {
      levels.push_back(std::move(level));
    }
    if (path.empty()) {
      return;
    }
    path = path.substr(0, path.rfind('/'));
  }
}

Result<Bound> MemoryHeadroom::Impl::measure_system() const {
  std::array<char, 4096> room;  // NOLINT: read_file says how much of it is filled
  const auto text = read_file(meminfo, room);
  if (!text) {
    return system_error("meminfo", errno);
  }
  const auto total = find_value(*text, "MemTotal", ':');
  const auto available = find_value(*text, "MemAvailable", ':');
  if (!total || !available) {
    return Error{Errc::unsupported, 0, "no MemTotal or MemAvailable"};
  }
  return Bound{minus_or_zero(*available * 1024, system_margin(*total * 1024)), *total * 1024,
               nullptr};
}

Bound MemoryHeadroom::Impl::measure() noexcept {
  Bound bound;
  if (const auto system = measure_system()) {
    bound = *system;
  }
  if (!membership.is_open()) {
    return bound;
  }
  if (const std::uint64_t hash = hash_membership(); hash != membership_hash) {
    // Until the levels are complete no membership matches them.
    membership_hash = 0;
    try {
      find_levels();
      membership_hash = hash;
    } catch (const std::bad_alloc&) {
      // Not even room for a few paths: nothing may be taken, and the next call tries again.
      return Bound{0, bound.limit, nullptr};
    }
  }
  for (Level& level : levels) {
    apply(level, bound);
  }
  return bound;
}

MemoryHeadroom::MemoryHeadroom(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
MemoryHeadroom::~MemoryHeadroom() = default;

Result<std::unique_ptr<MemoryHeadroom>> MemoryHeadroom::open(const Paths& paths) {
  auto impl = std::make_unique<Impl>();
  const std::string meminfo_path = paths.proc + "/meminfo";
  impl->mountinfo_path = paths.proc + "/self/mountinfo";
  impl->meminfo = open_at(AT_FDCWD, meminfo_path.c_str(), O_RDONLY);
  if (!impl->meminfo.is_open()) {
    return system_error(meminfo_path, errno);
  }
  if (const auto system = impl->measure_system(); !system) {
    Error error = system.error();
    error.message = meminfo_path + ": " + error.message +
                    "; expected a proc file system of Linux 3.14 or later";
    return error;
  }
  impl->membership = open_at(AT_FDCWD, (paths.proc + "/self/cgroup").c_str(), O_RDONLY);
  return std::unique_ptr<MemoryHeadroom>(new MemoryHeadroom(std::move(impl)));
}

std::uint64_t MemoryHeadroom::bytes() noexcept {
  const MutexLock lock(impl_->mutex);
  return impl_->measure().bytes;
}

std::string MemoryHeadroom::tightest() const {
  const MutexLock lock(impl_->mutex);
  const Bound bound = impl_->measure();
  const std::string what =
      bound.level == nullptr ? "system memory" : "control group " + bound.level->name;
  return what + ": " + format_size(bound.limit);
}

}  // namespace uzram::os
