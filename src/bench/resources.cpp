#include "bench/resources.hpp"

#include <array>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cpu.hpp"
#include "control/version.hpp"

namespace uzram::bench {
namespace {

double seconds_of(const timeval& time) noexcept {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// Voluntary and involuntary switches of one thread.
double switches_of(const std::filesystem::path& task) {
  std::ifstream status(task / "status");
  double switches = 0;
  for (std::string word; status >> word;) {
    if (word == "voluntary_ctxt_switches:" || word == "nonvoluntary_ctxt_switches:") {
      double count = 0;
      status >> count;
      switches += count;
    }
  }
  return switches;
}

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "unknown";
}

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

}  // namespace

Usage own_usage() noexcept {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return {seconds_of(used.ru_utime), seconds_of(used.ru_stime),
          static_cast<double>(used.ru_nvcsw) + static_cast<double>(used.ru_nivcsw)};
}

Usage usage_of(pid_t process) {
  const std::filesystem::path folder = "/proc/" + std::to_string(process);
  std::ifstream file(folder / "stat");
  std::string line;
  if (!std::getline(file, line)) {
    return {};
  }
  // The name in parentheses may hold blanks; utime and stime are fields 14 and 15, the name is 2.
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) {
    fields >> skipped;
  }
  Usage usage;
  fields >> usage.user_s >> usage.sys_s;
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  usage.user_s /= ticks;
  usage.sys_s /= ticks;
  std::error_code gone;
  const std::filesystem::directory_iterator end;
  for (std::filesystem::directory_iterator task(folder / "task", gone); !gone && task != end;
       task.increment(gone)) {
    usage.context_switches += switches_of(task->path());
  }
  return usage;
}

nlohmann::ordered_json describe_machine() {
  utsname names{};
  ::uname(&names);
  struct sysinfo memory {};
  ::sysinfo(&memory);
  return {{"version", control::version()},
          {"date", utc_now()},
          {"cpu", cpu_model()},
          {"cpus", usable_cpus()},
          {"memory_bytes", static_cast<std::uint64_t>(memory.totalram) * memory.mem_unit},
          {"kernel", std::string(names.sysname) + " " + names.release},
          {"machine", names.machine}};
}

}  // namespace uzram::bench
