// Usage: what a process has used of the machine.
//
// Role: the CPU time and context switches of a row: of this process, and of the server that does
// the work when it is another one.
// Units: seconds, counts, since the process began.
// Errors: a process that is gone has used nothing.
// Threads: any.
#pragma once

#include <nlohmann/json.hpp>
#include <sys/types.h>

namespace uzram::bench {

struct Usage {
  double user_s = 0;
  double sys_s = 0;
  double context_switches = 0;
};

[[nodiscard]] Usage own_usage() noexcept;
// In clock ticks, so to 10 ms.
[[nodiscard]] Usage usage_of(pid_t process);

inline Usage operator-(const Usage& a, const Usage& b) noexcept {
  return {a.user_s - b.user_s, a.sys_s - b.sys_s, a.context_switches - b.context_switches};
}
inline Usage operator+(const Usage& a, const Usage& b) noexcept {
  return {a.user_s + b.user_s, a.sys_s + b.sys_s, a.context_switches + b.context_switches};
}

// The machine object of result files: version of the program, date, CPU, CPUs, memory, kernel.
[[nodiscard]] nlohmann::ordered_json describe_machine();

}  // namespace uzram::bench
