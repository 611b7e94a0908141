// Device::Impl: what stands behind the public Device.
//
// Role: steps 1 and 2 of the data path: checks a range, splits it into pages and parts of pages,
// and hands those to the PageStore.
// Units: bytes.
// Threads: all members.
// Errors: as in uzram/device.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "uzram/device.hpp"

#include "base/mutex.hpp"
#include "engine/executor.hpp"
#include "engine/page_store.hpp"
#include "engine/training.hpp"
#include "engine/upkeep.hpp"

namespace uzram {

struct Device::Impl {
  Impl(DeviceOptions device_options, std::unique_ptr<engine::PageTable> table,
       std::unique_ptr<engine::Pool> pool, const std::shared_ptr<engine::StreamSet>& streams);

  Errc read(std::uint64_t offset, std::span<std::byte> buffer) noexcept;
  Errc write(std::uint64_t offset, std::span<const std::byte> buffer) noexcept;
  Errc discard(std::uint64_t offset, std::uint64_t length) noexcept;
  Errc write_zeroes(std::uint64_t offset, std::uint64_t length, bool keep_allocated) noexcept;

  // Carries one request out in the calling thread, whatever the mode.
  Errc carry_out(const Request& request) noexcept;
  // The page in which the request begins, for prefetching; false when there is none.
  [[nodiscard]] bool first_page(const Request& request, engine::PageIndex& page) const noexcept;

  // ok when it lies on the device, in whole sectors.
  [[nodiscard]] Errc range_status(std::uint64_t offset, std::uint64_t length) const noexcept;

  [[nodiscard]] Extent extent_at(std::uint64_t offset, std::uint64_t limit) const noexcept;

  const DeviceOptions options;
  const std::uint32_t page_shift;
  engine::PageStore store;
  // None when nothing is to be done in the background.
  std::optional<engine::Upkeep> upkeep;
  // Only of devices made to train.
  std::optional<engine::Training> training;
  // Last: its workers use the rest.
  engine::Executor executor;

 private:
  // As range_status; counts a range that is refused.
  Errc check_range(std::uint64_t offset, std::uint64_t length) noexcept;
  Errc zero_part(std::uint64_t offset, std::uint64_t length, bool keep_allocated,
                 engine::Tally& tally) noexcept;
  [[nodiscard]] std::uint32_t offset_in_page(std::uint64_t offset) const noexcept {
    return static_cast<std::uint32_t>(offset & (options.page_size_bytes - 1));
  }
};

}  // namespace uzram
