#include "cli/ublk.hpp"

#include <cerrno>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"
#include "base/option_value.hpp"
#include "base/size.hpp"
#include "base/table.hpp"
#include "cli/output.hpp"
#include "frontend/ublk/control.hpp"
#include "frontend/ublk/listing.hpp"
#include "os/device_users.hpp"

namespace uzram::cli {
namespace {

int fail(const Error& error, int exit_code) {
  log(LogLevel::error, error.message);
  return exit_code;
}

int list(ublk::Control& control) {
  std::vector<ublk::DeviceInfo> devices;
  for (const std::uint32_t id : ublk::device_ids()) {
    auto info = control.info(id);
    if (info) {
      devices.push_back(*info);
    } else if (info.error().code != Errc::not_found) {
      return fail(info.error(), 1);
    }
  }
  return write_output(format_ublk_devices(devices))
             ? 0
             : fail(system_error("standard output", errno), 1);
}

// What a dead device holds is lost already.
Result<void> check_unused(ublk::Control& control, std::uint32_t id) {
  const auto info = control.info(id);
  if (!info) {
    return info.error();
  }
  const std::string node = ublk::block_node(id);
  if (info->state == ublk::DeviceState::dead || !ublk::is_in_use(node)) {
    return {};
  }
  const std::string where = os::mount_point(node);
  return Error{
      Errc::busy, EBUSY,
      fmt::format("ublk: {} is in use ({}), and what it holds ends with it; unmount it or swap "
                  "it off first, or add --force",
                  node, where.empty() ? "held by another device" : where)};
}

int remove(ublk::Control& control, const std::vector<std::uint32_t>& ids, bool force) {
  int exit_code = 0;
  for (const std::uint32_t id : ids) {
    auto removed = force ? Result<void>() : check_unused(control, id);
    if (removed) {
      removed = ublk::stop_and_remove(control, id);
    }
    if (!removed) {
      exit_code = fail(removed.error(), 1);
    }
  }
  return exit_code;
}

}  // namespace

std::string format_ublk_devices(const std::vector<ublk::DeviceInfo>& devices) {
  const std::vector<TableColumn> headings = {
      {"ID", true},    {"NODE", false},      {"STATE", false}, {"QUEUES", true},
      {"DEPTH", true}, {"MAX-IO", true},     {"SERVER", true}, {"OWNER", true},
      {"FLAGS", true}, {"MOUNTPOINT", false}};
  std::vector<std::vector<std::string>> rows;
  for (const ublk::DeviceInfo& device : devices) {
    const std::string node = ublk::block_node(device.device_id);
    const bool served = device.state == ublk::DeviceState::live;
    rows.push_back({std::to_string(device.device_id), node,
                    std::string(ublk::state_name(device.state)), std::to_string(device.queues),
                    std::to_string(device.depth), format_size(device.max_io_bytes),
                    served ? std::to_string(device.server_pid) : "-",
                    std::to_string(device.owner_uid), fmt::format("{:#x}", device.flags),
                    os::mount_point(node)});
  }
  return format_table(headings, rows, {});
}

int run_ublk(std::string_view command, const UblkArguments& arguments) {
  std::vector<std::uint32_t> ids;
  for (const std::string& text : arguments.ids) {
    std::uint32_t id = 0;
    if (!take_number(text, id)) {
      return fail(refuse_option("ublk remove", text, "the N of /dev/ublkbN"), 2);
    }
    ids.push_back(id);
  }
  const auto control = ublk::Control::open();
  if (!control) {
    return fail(control.error(), 1);
  }
  return command == "list" ? list(**control) : remove(**control, ids, arguments.force);
}

}  // namespace uzram::cli
