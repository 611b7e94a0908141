// Standard input, output and error of the program.
//
// Threads: ensure_standard_descriptors before any other thread runs; write_output by any.
#pragma once

#include <string_view>

namespace uzram::cli {

// Opens /dev/null in the place of a closed standard descriptor. Otherwise a socket or a device's
// memory would get its number, and what is printed would be written there.
void ensure_standard_descriptors() noexcept;

// Writes all of `text` to standard output. False, with errno set, when it cannot be written.
bool write_output(std::string_view text) noexcept;

}  // namespace uzram::cli
