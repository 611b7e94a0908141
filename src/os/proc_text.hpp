// Text files of proc and of control groups: how they are read and taken apart.
//
// Role: shared by what asks the kernel by such files.
// Errors: nothing, where a file cannot be read or a number is none.
// Threads: pure functions; a descriptor may be read by any number at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "os/descriptor.hpp"

namespace uzram::os {

// `flags` and O_CLOEXEC. AT_FDCWD is the current directory.
[[nodiscard]] Descriptor open_at(int directory, const char* name, int flags) noexcept;

// What of the file fits `room`.
[[nodiscard]] std::optional<std::string_view> read_file(const Descriptor& file,
                                                        std::span<char> room,
                                                        std::size_t offset = 0) noexcept;

// The whole of a file.
[[nodiscard]] std::optional<std::string> slurp(const std::string& path);

// The part of `text` before the first `separator`, which is removed from `text` together with it.
std::string_view take_until(std::string_view& text, char separator) noexcept;

// The number that `text` begins with, after blanks.
[[nodiscard]] std::optional<std::uint64_t> leading_number(std::string_view text) noexcept;

}  // namespace uzram::os
