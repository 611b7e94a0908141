// The version of this build, from project(VERSION) and nowhere else.
// Threads: any.
#pragma once

#include <string_view>

namespace uzram::control {

[[nodiscard]] std::string_view version() noexcept;

}  // namespace uzram::control
