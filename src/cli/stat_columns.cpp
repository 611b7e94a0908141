#include "cli/stat_columns.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include <nlohmann/json.hpp>

#include "base/size.hpp"
#include "os/device_users.hpp"

namespace uzram::cli {
namespace {

constexpr std::array kColumns = {
    StatColumn{"NAME", false, "device name", "name"},
    StatColumn{"NODE", false, "block device of the kernel; - for none", "node"},
    StatColumn{"DISKSIZE", true, "limit on the uncompressed amount of data", "disksize", true},
    StatColumn{"DATA", true, "uncompressed size of stored data", "orig_data_size", true},
    StatColumn{"COMPR", true, "compressed size of stored data", "compr_data_size", true},
    StatColumn{"ALGORITHM", false, "the compressor", "algorithm"},
    StatColumn{"STREAMS", true, "compression streams; 0 is one per CPU", "streams"},
    StatColumn{"ZERO-PAGES", true, "same-filled pages, which take no pool memory", "same_pages"},
    StatColumn{"TOTAL", true, "memory of the pool, fragmentation included", "mem_used_total", true},
    StatColumn{"MEM-LIMIT", true, "limit on TOTAL; 0 is none", "mem_limit", true},
    StatColumn{"MEM-USED", true, "high-water mark of TOTAL", "mem_used_max", true},
    StatColumn{"RESERVE", true, "memory kept free for writes, part of TOTAL", "reserve", true},
    StatColumn{"MIGRATED", true, "pages given back by compaction", "pages_compacted"},
    StatColumn{"COMP-RATIO", true, "DATA/TOTAL; - while the pool is empty", "comp_ratio"},
    StatColumn{"MOUNTPOINT", false, "where NODE is mounted, or [SWAP]", "node"},
    StatColumn{"TABLE", true, "memory of the page table", "table_bytes", true},
    StatColumn{"HUGE", true, "incompressible pages, stored as they are", "huge_pages"},
    StatColumn{"CHECKSUM", false, "whether pages have checksums: on or off", "checksum"},
    StatColumn{"CORRUPT", true, "pages found corrupt when they were read", "corrupt_pages"},
    StatColumn{"MODE", false, "who does the work: nowait, async or auto", "mode"},
    StatColumn{"WORKERS", true, "threads for async and auto; 0 is one per CPU", "workers"},
    StatColumn{"EXPORTS", false, "where clients connect, separated by commas", "exports"},
};

constexpr std::string_view kMountPoint = "MOUNTPOINT";
constexpr std::string_view kDefault =
    "NAME,NODE,ALGORITHM,DISKSIZE,DATA,COMPR,TOTAL,STREAMS,MOUNTPOINT";

char upper(char letter) noexcept {
  return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
}

const StatColumn* find_column(std::string_view name) noexcept {
  for (const StatColumn& column : kColumns) {
    if (std::equal(name.begin(), name.end(), column.name.begin(), column.name.end(),
                   [](char given, char known) { return upper(given) == known; })) {
      return &column;
    }
  }
  return nullptr;
}

std::string ratio_text(double ratio) {
  std::array<char, 64> room{};
  const auto end =
      std::to_chars(room.data(), room.data() + room.size(), ratio, std::chars_format::fixed, 2);
  return std::string(room.data(), end.ptr);
}

std::string joined(const nlohmann::ordered_json& list) {
  std::string text;
  for (const auto& item : list) {
    text += text.empty() ? "" : ",";
    text += item.is_string() ? item.get<std::string>() : item.dump();
  }
  return text;
}

}  // namespace

std::span<const StatColumn> stat_columns() noexcept { return kColumns; }

Result<std::vector<const StatColumn*>> select_columns(std::string_view list) {
  if (list.empty()) {
    list = kDefault;
  }
  std::vector<const StatColumn*> selected;
  while (true) {
    const std::string_view name = list.substr(0, list.find(','));
    const StatColumn* const column = find_column(name);
    if (column == nullptr) {
      std::string known;
      for (const StatColumn& one : kColumns) {
        known += known.empty() ? "" : ", ";
        known += one.name;
      }
      return Error{Errc::invalid_argument, 0,
                   "--output \"" + std::string(name) +
                       "\": there is no such column; expected some of " + known};
    }
    selected.push_back(column);
    if (name.size() == list.size()) {
      return selected;
    }
    list.remove_prefix(name.size() + 1);
  }
}

Result<std::string> cell_of(const StatColumn& column, const nlohmann::ordered_json& device,
                            bool bytes) {
  const auto found = device.find(column.field);
  if (found == device.end()) {
    return Error{Errc::invalid_argument, 0,
                 "answer of the server: a device has no field \"" + std::string(column.field) +
                     "\"; expected a server of this version"};
  }
  if (column.name == kMountPoint) {
    // As this process sees it: the server may not see the mounts of its own devices.
    return found->is_string() ? os::mount_point(found->get<std::string>()) : std::string();
  }
  if (found->is_string()) {
    return found->get<std::string>();
  }
  if (found->is_boolean()) {
    return std::string(found->get<bool>() ? "on" : "off");
  }
  if (found->is_array()) {
    return joined(*found);
  }
  if (found->is_null()) {
    return std::string("-");
  }
  if (column.is_size && !bytes && found->is_number_unsigned()) {
    return format_size(found->get<std::uint64_t>());
  }
  return found->is_number_float() ? ratio_text(found->get<double>()) : found->dump();
}

}  // namespace uzram::cli
