// `uzram serve`: runs devices in the foreground until a signal ends it.
//
// Role: puts the layers together: devices, their NBD server, the control socket.
// Signals: the first SIGINT, SIGTERM or SIGHUP (unless it was ignored at start) stops cleanly, the
// second one ends the process at once. SIGPIPE is ignored.
// Threads: called by the main thread, before there are others.
#pragma once

#include "cli/serve_options.hpp"

namespace uzram::cli {

// Returns the exit code: 0 after a clean stop, 1 when it could not start; why is on standard error.
int run_serve(const ServeOptions& options);

}  // namespace uzram::cli
