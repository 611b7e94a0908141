#include "bench/memory_check.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>

#include "base/size.hpp"
#include "codec/codec.hpp"
#include "os/memory_headroom.hpp"

namespace uzram::bench {
namespace {

constexpr std::uint32_t kPagesLookedAt = 256;
// Table, free maps and what fragments the pool, as a share of the compressed size.
constexpr double kOverhead = 1.1;
constexpr double kTableShare = 8.0 / static_cast<double>(kDataPage);

// Whether `path` leads to /dev/DRIVER and a number.
bool is_named(const std::string& path, std::string_view driver) {
  std::error_code problem;
  const std::string name = std::filesystem::weakly_canonical(path, problem).filename().string();
  return name.starts_with(driver) && name.size() > driver.size() &&
         name.find_first_not_of("0123456789", driver.size()) == std::string::npos;
}

}  // namespace

double stored_share(const DataSet& data) {
  const auto codec = codec::make("lz4", {}, kDataPage);
  auto workspace =
      codec ? (*codec)->make_workspace() : Result<std::unique_ptr<codec::Workspace>>(Error{});
  if (!workspace) {
    return 1;
  }
  std::vector<std::byte> room(kDataPage);
  const std::uint32_t looked_at = std::min(kPagesLookedAt, data.pages());
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < looked_at; ++i) {
    const auto index = static_cast<std::uint32_t>(std::uint64_t{i} * data.pages() / looked_at);
    const auto result = (*codec)->compress(**workspace, {data.at(index), kDataPage}, room);
    bytes += result.status == Errc::ok ? result.size : kDataPage;
  }
  return static_cast<double>(bytes) / static_cast<double>(looked_at * kDataPage);
}

double memory_needed(const TargetConfig& target, std::uint64_t size_bytes, const DataSet& data) {
  const auto size = static_cast<double>(size_bytes);
  if (target.kind == TargetKind::codec) {
    return size * kTableShare / 2;
  }
  if (target.kind == TargetKind::block_device) {
    if (is_named(target.address, "ram")) {
      return size;
    }
    if (!is_named(target.address, "zram")) {
      return 0;
    }
  }
  // An NBD server may keep its data anyhow; one of this machine that is a compressed store is what
  // this program is about.
  if (target.kind == TargetKind::nbd && !parse_nbd_address(target.address).local) {
    return 0;
  }
  return size * (stored_share(data) * kOverhead + 2 * kTableShare);
}

std::uint64_t memory_available() {
  const auto headroom = os::MemoryHeadroom::open();
  // Where nothing can be known, nothing is refused.
  return headroom ? (*headroom)->bytes() : std::numeric_limits<std::uint64_t>::max();
}

Result<void> check_memory(const Plan& plan) {
  const std::uint64_t available = memory_available();
  for (const Group& group : plan.groups) {
    double needed = 0;
    for (const TargetConfig& target : group.targets) {
      needed += memory_needed(target, group.size_bytes, *group.data);
    }
    if (needed > static_cast<double>(available)) {
      return Error{Errc::no_space, 0,
                   std::to_string(group.targets.size()) + " targets of " +
                       format_size(group.size_bytes) + " with the data \"" + group.data->name() +
                       "\" need about " + format_size(static_cast<std::uint64_t>(needed)) +
                       " of memory at once, and " + format_size(available) +
                       " may be taken; give a smaller --size or fewer targets"};
    }
  }
  return {};
}

}  // namespace uzram::bench
