// What the programs of this folder have in common.
//
// Errors: fail ends the program: run_tool prints the message and returns 1.
#pragma once

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

namespace uzram::tool {

[[noreturn]] inline void fail(const std::string& message) { throw std::runtime_error(message); }

// main of the program `name`.
template <typename Run>
int run_tool(const char* name, Run run) {
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 1;
  }
}

}  // namespace uzram::tool
