// `uzram stat`: lists the devices of a running server.
//
// Threads: one.
// Errors: run_stat prints them to standard error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "uzram/error.hpp"

namespace uzram::cli {

struct StatArguments {
  std::string columns;  // empty: zramctl's
  bool all_columns = false;
  bool bytes = false;
  bool no_headings = false;
  bool raw = false;
  bool json = false;
  // Empty: DIR/control.sock.
  std::string control;
  // Empty: all.
  std::vector<std::string> names;
};

// What is printed for the answer of GET /v1/devices.
// Errors: invalid_argument (a column that does not exist, an answer of another form), not_found (a
// name no device has).
Result<std::string> format_stat(const StatArguments& arguments, std::string_view answer);

// Returns the exit code: 0, 1 for a failure, 2 for options that cannot be.
int run_stat(const StatArguments& arguments);

}  // namespace uzram::cli
