// gnuplot, run as a program.
//
// Role: turns scripts into SVG for the report. Names in scripts are strangers' text: only quote()
// puts them there, and the terminal is set to `noenhanced`.
// Errors: unsupported when it is not installed; system with what it said.
// Threads: any; each call runs a program of its own.
#pragma once

#include <string>
#include <string_view>

#include "uzram/error.hpp"

namespace uzram::bench {

// `text` as a gnuplot string that comes out as it is, whatever quotes, backquotes, backslashes and
// macros are in it; control characters become "?".
[[nodiscard]] std::string gnuplot_quote(std::string_view text);

// What gnuplot writes for `script`, without the user's settings.
[[nodiscard]] Result<std::string> run_gnuplot(std::string_view script);

}  // namespace uzram::bench
