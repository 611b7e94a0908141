// Target and Port: what a load is run against.
//
// Role: between the load generator and the thing measured. A Target is one device, empty when it is
// opened and gone (or left as it is, when it is the user's) when it is destroyed; a Port is one
// job's way to it. All targets take the same requests from the same generator, so that a row of
// the results differs in the target alone.
// Units: bytes; offsets and lengths are multiples of 4096, buffers are aligned to 4096.
// Errors: opening says what is missing and what to do. A request that fails completes with a status
// other than ok, and Port::failure() says why in words.
// Threads: a Target's members may be called from any thread; a Port is used by one thread at a
// time and must be gone before its Target.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "uzram/error.hpp"
#include "uzram/request.hpp"

#include "bench/data.hpp"
#include "bench/target_config.hpp"

namespace uzram::bench {

struct TargetInfo {
  // How a request gets there: "function call", "pread/pwrite", "io_uring", "NBD over a Unix socket".
  std::string path;
  // Empty or none where it is not known.
  std::string algorithm;
  std::optional<int> level;
  std::string mode;
  // 0: per CPU.
  std::optional<std::uint32_t> streams;
  // It could not be made empty: zeroes were written instead, and reads of holes find those.
  bool zeroed = false;
};

// Bytes; none where the target does not tell.
struct MemoryUse {
  std::optional<std::uint64_t> orig_data_size;
  std::optional<std::uint64_t> compr_data_size;
  std::optional<std::uint64_t> mem_used_total;
  // The most the target has taken since it was opened: mem_used_max and, where they are known,
  // its table and free maps; for a server its peak resident set.
  std::optional<std::uint64_t> peak;
};

class Port {
 public:
  Port() = default;
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  virtual ~Port() = default;

  // Starts the requests; they may complete before this returns, and come from reap() only. At most
  // `iodepth` of open_port are in flight.
  virtual void submit(std::span<Request* const> batch) noexcept = 0;

  // Waits for a request to complete and returns it; nullptr when none is in flight.
  [[nodiscard]] virtual Request* reap() noexcept = 0;

  // Whether reap() would return a request without waiting.
  [[nodiscard]] virtual bool has_completed() noexcept { return false; }

  // One request from start to end. REQUIRES: none is in flight.
  virtual void execute(Request& request) noexcept = 0;

  // A stretch of requests begins; before it the job was idle.
  virtual void begin() noexcept {}

  // Why the last failed request failed, for people: "Connection reset by peer". Empty: none has.
  [[nodiscard]] virtual std::string failure() const = 0;

  // What took another way than TargetInfo::path says, for people; empty: nothing has.
  [[nodiscard]] virtual std::string note() const { return {}; }
};

class Target {
 public:
  Target() = default;
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;
  virtual ~Target() = default;

  [[nodiscard]] virtual const TargetInfo& info() const noexcept = 0;

  // Errors: those of connecting or of making a ring.
  [[nodiscard]] virtual Result<std::unique_ptr<Port>> open_port(std::uint32_t iodepth) = 0;

  [[nodiscard]] virtual MemoryUse memory() const = 0;

  // The process that serves this target, when it is another one of this machine.
  [[nodiscard]] virtual std::optional<pid_t> server() const { return std::nullopt; }
};

// What the suite asks of a target.
struct TargetNeeds {
  std::uint64_t size_bytes = 0;
  std::shared_ptr<const DataSet> data;
  // The greatest of its phases.
  std::uint32_t iodepth = 1;
};

// Opens the target of `config`; its first size_bytes are empty, or zeroed where it
// does not discard (TargetInfo::zeroed); the rest is left as it is. Errors: not_found, busy, unsupported, invalid_argument (it is
// smaller than size_bytes), system.
[[nodiscard]] Result<std::unique_ptr<Target>> open_target(const TargetConfig& config,
                                                          const TargetNeeds& needs);

// One for each kind, in a file each; open_target picks one and wraps its ports when the
// configuration asks for a slowdown.
[[nodiscard]] Result<std::unique_ptr<Target>> open_engine_target(const TargetConfig& config,
                                                                 const TargetNeeds& needs);
[[nodiscard]] Result<std::unique_ptr<Target>> open_codec_target(const TargetConfig& config,
                                                                const TargetNeeds& needs);
[[nodiscard]] Result<std::unique_ptr<Target>> open_zram_target(const TargetConfig& config,
                                                               const TargetNeeds& needs);
[[nodiscard]] Result<std::unique_ptr<Target>> open_block_target(const TargetConfig& config,
                                                                const TargetNeeds& needs);
[[nodiscard]] Result<std::unique_ptr<Target>> open_nbd_target(const TargetConfig& config,
                                                              const TargetNeeds& needs);

// Whether `read` fills a page with zeroes at each of some pages of [0, size_bytes), the first and the
// last among them: what was discarded need not read as zeroes. nullopt: a page could not be read.
template <typename Read>
[[nodiscard]] std::optional<bool> looks_empty(std::uint64_t size_bytes, Read read) {
  constexpr std::uint64_t kLooks = 64;
  const std::uint64_t pages = size_bytes / kDataPage;
  alignas(kDataPage) static thread_local std::array<std::byte, kDataPage> page;
  for (std::uint64_t look = 0; look < std::min(kLooks, pages); ++look) {
    const std::uint64_t index = pages <= kLooks ? look : look * (pages - 1) / (kLooks - 1);
    if (!read(page.data(), index * kDataPage)) {
      return std::nullopt;
    }
    if (std::ranges::any_of(page, [](std::byte byte) { return byte != std::byte{0}; })) {
      return false;
    }
  }
  return true;
}

// Before a run: whether the first `size_bytes` of the target of `config` may be written to. `consent`: the user said --yes.
// A block device that is mounted, swapped on or held is refused whatever the consent; without
// consent, one that could hold data is refused with a message that says what would be lost.
[[nodiscard]] Result<void> check_block_target(const TargetConfig& config, std::uint64_t size_bytes,
                                              bool consent);
[[nodiscard]] Result<void> check_nbd_target(const TargetConfig& config, std::uint64_t size_bytes,
                                            bool consent);
[[nodiscard]] Result<void> check_target(const TargetConfig& config, std::uint64_t size_bytes,
                                        bool consent);

}  // namespace uzram::bench
