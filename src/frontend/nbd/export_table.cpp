#include "frontend/nbd/export_table.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

namespace uzram::nbd {
namespace {

constexpr std::uint32_t kPreferredBlockBytes = 4096;

// What is wrong with an export; empty when nothing is.
std::string fault_of(const Export& exported) {
  if (exported.name.empty() || exported.name.size() > kMaxNameBytes) {
    return fmt::format("a name of {} bytes: expected 1 to {}", exported.name.size(), kMaxNameBytes);
  }
  if (exported.description.size() > kMaxNameBytes) {
    return fmt::format("a description of {} bytes: expected at most {}",
                       exported.description.size(), kMaxNameBytes);
  }
  if (exported.device == nullptr) {
    return "no device";
  }
  const std::uint32_t block = exported.logical_block_bytes;
  const std::uint32_t page = exported.device->page_size_bytes();
  if (!std::has_single_bit(block) || block < kSectorSize || block > page) {
    return fmt::format("a logical block of {} bytes: expected a power of two from {} to {}", block,
                       kSectorSize, page);
  }
  return {};
}

}  // namespace

Result<ExportTable> ExportTable::make(std::vector<Export> exports) {
  if (exports.empty()) {
    return Error{Errc::invalid_argument, 0, "nbd: no exports: expected at least one"};
  }
  ExportTable table;
  for (Export& exported : exports) {
    if (const std::string fault = fault_of(exported); !fault.empty()) {
      return Error{Errc::invalid_argument, 0,
                   fmt::format("nbd: export \"{}\": {}", exported.name, fault)};
    }
    if (std::ranges::find(table.infos, exported.name, &ExportInfo::name) != table.infos.end()) {
      return Error{
          Errc::invalid_argument, 0,
          fmt::format("nbd: export \"{}\": the name is taken, choose another", exported.name)};
    }
    table.infos.push_back(ExportInfo{
        .name = exported.name,
        .description = std::move(exported.description),
        .size_bytes = exported.device->disksize_bytes(),
        .minimum_block_bytes = exported.logical_block_bytes,
        .preferred_block_bytes = std::max(kPreferredBlockBytes, exported.logical_block_bytes),
        .read_only = exported.read_only});
    table.devices.push_back(exported.device);
  }
  return table;
}

Result<std::size_t> ExportTable::find(std::string_view name) const {
  if (name.empty()) {
    return std::size_t{0};
  }
  const auto found = std::ranges::find(infos, name, &ExportInfo::name);
  if (found != infos.end()) {
    return static_cast<std::size_t>(found - infos.begin());
  }
  std::string known;
  for (const ExportInfo& info : infos) {
    known += known.empty() ? "" : ", ";
    known += info.name;
  }
  return Error{Errc::not_found, 0,
               fmt::format("nbd: no export \"{}\": expected one of {}", name, known)};
}

}  // namespace uzram::nbd
