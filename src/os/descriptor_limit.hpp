// How many files this process may have open.
//
// Threads: any.
#pragma once

namespace uzram::os {

// Raises the limit to the most this user may have. The default of 1024 is for programs that use
// select; here every connection, or process looked at, takes one.
void raise_descriptor_limit() noexcept;

}  // namespace uzram::os
