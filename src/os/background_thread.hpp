// Threads that belong to this library and not to the program it is part of.
//
// Threads: any.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "uzram/error.hpp"

namespace uzram::os {

// Starts a thread with all signals blocked: those are the program's. The system shows the first 15
// characters of its name. Errors: system.
[[nodiscard]] Result<std::thread> start_background_thread(const std::string& name,
                                                          std::function<void()> work);

}  // namespace uzram::os
