// require: what every fuzzer does when something does not hold.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace uzram::fuzz {

// Ends the program, with a line that names it and the property, unless `good`.
inline void require(bool good, const char* property) {
  if (!good) {
    std::fprintf(stderr, "%s: broken: %s\n", program_invocation_short_name, property);
    std::abort();
  }
}

}  // namespace uzram::fuzz
