#include <algorithm>
#include <cerrno>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <libnbd.h>

#include "base/size.hpp"
#include "bench/nbd_connection.hpp"
#include "bench/nbd_port.hpp"
#include "bench/target.hpp"

namespace uzram::bench {
namespace {

// VmHWM of another process.
std::optional<std::uint64_t> peak_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/status", process));
  std::string field;
  std::uint64_t kib = 0;
  while (file >> field) {
    if (field == "VmHWM:" && file >> kib) {
      return kib << 10;
    }
  }
  return std::nullopt;
}

class NbdTarget final : public Target {
 public:
  NbdTarget(std::string uri, const NbdConnection& connection, bool zeroed)
      : uri_(std::move(uri)), server_(connection.server()) {
    info_.path = connection.path();
    info_.zeroed = zeroed;
  }

  [[nodiscard]] const TargetInfo& info() const noexcept override { return info_; }

  [[nodiscard]] Result<std::unique_ptr<Port>> open_port(std::uint32_t iodepth) override {
    Result<NbdConnection> connection = NbdConnection::connect(uri_);
    if (!connection) {
      return std::move(connection).error();
    }
    return std::unique_ptr<Port>(std::make_unique<NbdPort>(*std::move(connection), iodepth));
  }

  [[nodiscard]] MemoryUse memory() const override {
    MemoryUse use;
    if (server_) {
      use.peak = peak_of(*server_);
    }
    return use;
  }

  [[nodiscard]] std::optional<pid_t> server() const override { return server_; }

 private:
  const std::string uri_;
  const std::optional<pid_t> server_;
  TargetInfo info_;
};

// Runs `command` for pieces of [0, size_bytes) that fit the protocol.
template <typename Command>
Result<void> for_all(const std::string& what, std::uint64_t size_bytes, std::uint64_t longest,
                     Command command) {
  for (std::uint64_t offset = 0; offset < size_bytes; offset += longest) {
    if (command(std::min(size_bytes - offset, longest), offset) < 0) {
      return Error{Errc::system, nbd_get_errno(),
                   fmt::format("cannot {}: {}", what, nbd_failure())};
    }
  }
  return {};
}

// Writes zeroes, by the command for it where the server has it.
Result<void> zero(const NbdConnection& connection, std::uint64_t size_bytes) {
  nbd_handle* const handle = connection.handle();
  if (connection.can_zero()) {
    return for_all("zero its content", size_bytes, kNbdLongestRange,
                   [handle](std::uint64_t length, std::uint64_t offset) {
                     return nbd_zero(handle, length, offset, 0);
                   });
  }
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
  const std::uint64_t piece = std::min(kPiece, connection.longest_payload());
  const std::vector<std::byte> zeroes(static_cast<std::size_t>(piece));
  return for_all("zero its content", size_bytes, piece,
                 [&](std::uint64_t length, std::uint64_t offset) {
                   return nbd_pwrite(handle, zeroes.data(), length, offset, 0);
                 });
}

// Trims the range, and zeroes it where that does not make it read as zeroes. Whether it was zeroed.
Result<bool> empty(const NbdConnection& connection, std::uint64_t size_bytes) {
  nbd_handle* const handle = connection.handle();
  bool trims = connection.can_trim();
  if (trims) {
    auto trimmed = for_all("discard its content", size_bytes, kNbdLongestRange,
                           [handle](std::uint64_t length, std::uint64_t offset) {
                             return nbd_trim(handle, length, offset, 0);
                           });
    if (!trimmed && trimmed.error().saved_errno != ENOTSUP) {
      return std::move(trimmed).error();
    }
    trims = trimmed.has_value();
  }
  const auto is_empty = looks_empty(size_bytes, [handle](std::byte* page, std::uint64_t offset) {
    return nbd_pread(handle, page, kDataPage, offset, 0) == 0;
  });
  if (!is_empty) {
    return Error{Errc::system, nbd_get_errno(), "cannot read its content: " + nbd_failure()};
  }
  if (*is_empty && trims) {
    return false;
  }
  if (auto zeroed = zero(connection, size_bytes); !zeroed) {
    return std::move(zeroed).error();
  }
  return true;
}

// What a BLOCK_STATUS answer says of the range from `begin` on.
struct Extents {
  std::uint64_t begin = 0;
  // The end of what was described.
  std::uint64_t end = 0;
  std::optional<std::uint64_t> first_data;
};

int take_extents(void* extents, const char* context, std::uint64_t /*offset*/,
                 std::uint32_t* entries, std::size_t count, int* /*error*/) noexcept {
  auto& found = *static_cast<Extents*>(extents);
  if (std::string_view(context) != LIBNBD_CONTEXT_BASE_ALLOCATION) {
    return 0;
  }
  found.end = found.begin;
  for (std::size_t i = 0; i + 1 < count; i += 2) {
    const bool holds_nothing = (entries[i + 1] & (LIBNBD_STATE_HOLE | LIBNBD_STATE_ZERO)) != 0;
    if (!holds_nothing && !found.first_data) {
      found.first_data = found.end;
    }
    found.end += entries[i];
  }
  return 0;
}

// Where the data of the export's first `size` bytes begins; none when they have none.
Result<std::optional<std::uint64_t>> first_data(const NbdConnection& connection,
                                                std::uint64_t size) {
  Extents found;
  while (found.begin < size && !found.first_data) {
    const nbd_extent_callback callback{&take_extents, &found, nullptr};
    const bool answered =
        nbd_block_status(connection.handle(), std::min(size - found.begin, kNbdLongestRange),
                         found.begin, callback, 0) == 0;
    if (!answered || found.end <= found.begin) {
      return Error{Errc::system, nbd_get_errno(),
                   fmt::format("cannot tell whether it holds data ({}); pass --yes "
                               "when it may be overwritten",
                               answered ? "an empty answer" : nbd_failure())};
    }
    found.begin = found.end;
  }
  return found.first_data;
}

Result<void> check_size(const NbdConnection& connection, std::uint64_t size_bytes) {
  if (connection.size_bytes() >= size_bytes) {
    return {};
  }
  return Error{Errc::invalid_argument, 0,
               fmt::format("the export has {} ({} bytes), expected at least {} ({} bytes); give a "
                           "smaller --size or a larger export",
                           format_size(connection.size_bytes()), connection.size_bytes(),
                           format_size(size_bytes), size_bytes)};
}

}  // namespace

Result<std::unique_ptr<Target>> open_nbd_target(const TargetConfig& config,
                                                const TargetNeeds& needs) {
  const std::string& uri = config.address;
  const Result<NbdConnection> connection = NbdConnection::connect(uri);
  if (!connection) {
    return connection.error();
  }
  if (auto fits = check_size(*connection, needs.size_bytes); !fits) {
    return std::move(fits).error();
  }
  if (connection->read_only()) {
    return Error{Errc::read_only, 0, "the export is read-only; expected one that can be written"};
  }
  auto zeroed = empty(*connection, needs.size_bytes);
  if (!zeroed) {
    return std::move(zeroed).error();
  }
  return std::unique_ptr<Target>(std::make_unique<NbdTarget>(uri, *connection, *zeroed));
}

Result<void> check_nbd_target(const TargetConfig& config, std::uint64_t size_bytes, bool consent) {
  if (consent) {
    return {};
  }
  const std::string& uri = config.address;
  NbdConnection::Options options;
  options.block_status = true;
  const Result<NbdConnection> connection = NbdConnection::connect(uri, options);
  if (!connection) {
    return connection.error();
  }
  if (auto fits = check_size(*connection, size_bytes); !fits) {
    return fits;
  }
  if (!connection->has_block_status()) {
    return Error{Errc::invalid_argument, 0,
                 fmt::format("the server does not tell whether its first {} hold "
                             "data, which would be overwritten; pass --yes to do that",
                             format_size(size_bytes))};
  }
  const Result<std::optional<std::uint64_t>> data =
      first_data(*connection, std::min(size_bytes, connection->size_bytes()));
  if (!data) {
    return data.error();
  }
  if (*data) {
    return Error{Errc::invalid_argument, 0,
                 fmt::format("the first {} of the export hold data (from byte {} on) "
                             "that would be overwritten; pass --yes to do that",
                             format_size(size_bytes), **data)};
  }
  return {};
}

}  // namespace uzram::bench
