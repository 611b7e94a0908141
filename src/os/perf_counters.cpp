#include "os/perf_counters.hpp"

#include <cstring>

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace uzram::os {
namespace {

struct Event {
  const char* name;
  std::uint64_t config;
};

constexpr std::array<Event, 4> kHardwareEvents = {{{"cycles", PERF_COUNT_HW_CPU_CYCLES},
                                                   {"instructions", PERF_COUNT_HW_INSTRUCTIONS},
                                                   {"cache_misses", PERF_COUNT_HW_CACHE_MISSES},
                                                   {"branch_misses", PERF_COUNT_HW_BRANCH_MISSES}}};

int open_event(std::uint64_t config, bool with_kernel) noexcept {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.config = config;
  attributes.disabled = 1;
  attributes.exclude_hv = 1;
  attributes.exclude_kernel = with_kernel ? 0 : 1;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return static_cast<int>(
      ::syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

}  // namespace

PerfCounters::PerfCounters() noexcept : descriptors_{} {
  for (std::size_t i = 0; i < kEvents; ++i) {
    descriptors_.at(i) = open_event(kHardwareEvents.at(i).config, true);
    if (descriptors_.at(i) < 0) {
      descriptors_.at(i) = open_event(kHardwareEvents.at(i).config, false);
    }
  }
}

PerfCounters::~PerfCounters() {
  for (const int descriptor : descriptors_) {
    if (descriptor >= 0) {
      ::close(descriptor);
    }
  }
}

void PerfCounters::start() noexcept {
  for (const int descriptor : descriptors_) {
    if (descriptor >= 0) {
      ::ioctl(descriptor, PERF_EVENT_IOC_ENABLE, 0);
    }
  }
}

void PerfCounters::stop() noexcept {
  for (const int descriptor : descriptors_) {
    if (descriptor >= 0) {
      ::ioctl(descriptor, PERF_EVENT_IOC_DISABLE, 0);
    }
  }
}

std::map<std::string, double> PerfCounters::counts() const {
  std::map<std::string, double> counts;
  for (std::size_t i = 0; i < kEvents; ++i) {
    // Count, time enabled, time running.
    std::array<std::uint64_t, 3> values{};
    const int descriptor = descriptors_.at(i);
    if (descriptor < 0 || ::read(descriptor, values.data(), sizeof values) != sizeof values ||
        values[2] == 0) {
      continue;
    }
    counts[kHardwareEvents.at(i).name] = static_cast<double>(values[0]) *
                                         static_cast<double>(values[1]) /
                                         static_cast<double>(values[2]);
  }
  return counts;
}

}  // namespace uzram::os
