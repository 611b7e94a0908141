// The exports of a server: what clients see of them, and the devices behind.
//
// Role: checked once at start, read by all loops.
// Ownership: devices belong to the caller of Server::start.
// Errors: see make.
// Threads: immutable after make.
// Invariant: infos and devices have the same length, at least 1; names are unique and not empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "uzram/device.hpp"
#include "uzram/error.hpp"

#include "frontend/nbd/handshake.hpp"

namespace uzram::nbd {

struct Export {
  // Up to 4096 bytes, unique, not empty.
  std::string name{};
  // Up to 4096 bytes.
  std::string description{};
  Device* device = nullptr;
  bool read_only = false;
  // The smallest unit of a request: a power of two from 512 to the device's page size.
  std::uint32_t logical_block_bytes = 4096;
};

struct ExportTable {
  std::vector<ExportInfo> infos;
  std::vector<Device*> devices;

  // Errors: invalid_argument with a message that names the export and what is wrong with it.
  static Result<ExportTable> make(std::vector<Export> exports);

  // The place of the export called `name`, of the first one when `name` is empty.
  // Errors: not_found with a message that lists what there is.
  [[nodiscard]] Result<std::size_t> find(std::string_view name) const;
};

}  // namespace uzram::nbd
