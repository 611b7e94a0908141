// Messages of the running program to its standard error.
//
// Role: set-up, control and slow paths; never the data path. Each call writes one line with one
// write(2), so lines of several threads do not mix.
// Threads: any.
#pragma once

#include <string_view>

namespace uzram {

enum class LogLevel { info, warning, error };

// Writes "uzram: MESSAGE\n" (warnings and errors with their word).
void log(LogLevel level, std::string_view message) noexcept;

}  // namespace uzram
