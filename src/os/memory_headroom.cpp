#include "os/memory_headroom.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <limits>
#include <new>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>

#include "base/mutex.hpp"
#include "base/size.hpp"
#include "os/control_group.hpp"
#include "os/descriptor.hpp"
#include "os/proc_text.hpp"

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

// One control group that may bound the process.
struct Level {
  // When it hides ancestors, memory.stat tells their limit.
  ControlGroup group;
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
    const bool v2 = group.version == GroupVersion::v2;
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
  if (!level.group.hides_ancestors &&
      (limit >= kNoLimitFrom ||
       minus_or_zero(minus_or_zero(limit, *used), group_margin(limit)) >= bound.bytes)) {
    return;
  }
  std::array<char, 8192> room;  // NOLINT: read_file says how much of it is filled
  const auto stat = read_file(level.stat, room).value_or("");
  const bool v2 = level.group.version == GroupVersion::v2;
  if (level.group.hides_ancestors) {
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
  Result<Bound> measure_system() const;
  Bound measure(Scope scope) noexcept UZRAM_REQUIRES(mutex);
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
  for (ControlGroup& group :
       find_control_groups(text, slurp(mountinfo_path).value_or(""), "memory")) {
    Level level;
    level.directory = open_at(AT_FDCWD, group.directory.c_str(), O_PATH | O_DIRECTORY);
    level.group = std::move(group);
    if (level.directory.is_open()) {
      levels.push_back(std::move(level));
    }
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

Bound MemoryHeadroom::Impl::measure(Scope scope) noexcept {
  Bound bound;
  if (scope == Scope::groups) {
    bound = {kUnlimited, kUnlimited, nullptr};
  } else if (const auto system = measure_system()) {
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

std::uint64_t MemoryHeadroom::bytes(Scope scope) noexcept {
  const MutexLock lock(impl_->mutex);
  return impl_->measure(scope).bytes;
}

std::string MemoryHeadroom::tightest() const {
  const MutexLock lock(impl_->mutex);
  const Bound bound = impl_->measure(Scope::system_too);
  const std::string what =
      bound.level == nullptr ? "system memory" : "control group " + bound.level->group.name;
  return what + ": " + format_size(bound.limit);
}

}  // namespace uzram::os
