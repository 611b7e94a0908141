#include "cli/stat.hpp"

#include <cerrno>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/log.hpp"
#include "base/table.hpp"
#include "cli/output.hpp"
#include "cli/stat_columns.hpp"
#include "control/control_client.hpp"
#include "control/runtime_dir.hpp"

namespace uzram::cli {
namespace {

using nlohmann::ordered_json;

// The devices of the answer, those called by name in the order they were called.
Result<ordered_json> select_devices(const std::vector<std::string>& names,
                                    std::string_view answer) {
  const ordered_json devices = ordered_json::parse(answer, nullptr, false);
  if (!devices.is_array()) {
    return Error{Errc::invalid_argument, 0,
                 "answer of the server: expected a list of devices; is it of this version?"};
  }
  if (names.empty()) {
    return devices;
  }
  ordered_json selected = ordered_json::array();
  for (const std::string& name : names) {
    std::string known;
    bool found = false;
    for (const ordered_json& device : devices) {
      const std::string present = device.is_object() ? device.value("name", "") : "";
      known += (known.empty() ? "" : ", ") + present;
      if (present == name) {
        selected.push_back(device);
        found = true;
      }
    }
    if (!found) {
      return Error{Errc::not_found, 0,
                   "device \"" + name + "\": the server has none of this name; expected " +
                       (known.empty() ? "none, as it has no devices" : "one of " + known)};
    }
  }
  return selected;
}

Result<std::vector<const StatColumn*>> chosen_columns(const StatArguments& arguments) {
  if (!arguments.all_columns) {
    return select_columns(arguments.columns);
  }
  std::vector<const StatColumn*> columns;
  for (const StatColumn& column : stat_columns()) {
    columns.push_back(&column);
  }
  return columns;
}

int fail(const Error& error, int exit_code) {
  log(LogLevel::error, error.message);
  return exit_code;
}

}  // namespace

Result<std::string> format_stat(const StatArguments& arguments, std::string_view answer) {
  const auto columns = chosen_columns(arguments);
  if (!columns) {
    return columns.error();
  }
  const auto devices = select_devices(arguments.names, answer);
  if (!devices) {
    return devices.error();
  }
  if (arguments.json) {
    return devices->dump(2) + "\n";
  }
  std::vector<TableColumn> headings;
  for (const StatColumn* const column : *columns) {
    headings.push_back({column->name, column->right});
  }
  std::vector<std::vector<std::string>> rows;
  for (const ordered_json& device : *devices) {
    std::vector<std::string>& row = rows.emplace_back();
    for (const StatColumn* const column : *columns) {
      auto cell = cell_of(*column, device, arguments.bytes);
      if (!cell) {
        return cell;
      }
      row.push_back(std::move(*cell));
    }
  }
  return format_table(headings, rows, {!arguments.no_headings, arguments.raw});
}

int run_stat(const StatArguments& arguments) {
  // Before the server is asked, so that a wrong option is told whether or not one runs.
  if (const auto columns = chosen_columns(arguments); !columns) {
    return fail(columns.error(), 2);
  }
  std::string path = arguments.control;
  if (path.empty()) {
    if (const auto ours = control::check_runtime_dir(control::default_runtime_dir()); !ours) {
      return fail(ours.error(), 1);
    }
    path = control::default_control_path();
  }
  const auto answer = control::get(path, "/v1/devices");
  if (!answer) {
    return fail(answer.error(), 1);
  }
  const auto text = format_stat(arguments, *answer);
  if (!text) {
    return fail(text.error(), 1);
  }
  if (!write_output(*text)) {
    return fail(system_error("standard output", errno), 1);
  }
  return 0;
}

}  // namespace uzram::cli
