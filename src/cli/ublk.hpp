// `uzram ublk list` and `uzram ublk remove`: the kernel's ublk devices, whoever serves them.
//
// Role: for what a server has left behind that died, and for seeing what there is.
// Threads: one.
// Errors: run_ublk prints them to standard error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "uzram/error.hpp"

#include "frontend/ublk/abi.hpp"

namespace uzram::cli {

struct UblkArguments {
  // Of remove.
  std::vector<std::string> ids;
  // Also what is mounted or swap.
  bool force = false;
};

// A table of the devices, empty when there are none.
std::string format_ublk_devices(const std::vector<ublk::DeviceInfo>& devices);

// `command` is "list" or "remove". Returns the exit code: 0, 1 for a failure, 2 for options that cannot
// be.
int run_ublk(std::string_view command, const UblkArguments& arguments);

}  // namespace uzram::cli
