#include "bench/sample.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <set>
#include <span>

#include <unistd.h>

#include "base/size.hpp"
#include "bench/corpus.hpp"
#include "os/process_memory.hpp"

namespace uzram::bench {
namespace {

static_assert(kDataPage == os::kProcessPage);

using Processes = std::vector<std::unique_ptr<os::ProcessMemory>>;

Result<Processes> open_given(const std::vector<pid_t>& pids) {
  Processes processes;
  for (const pid_t pid : std::set<pid_t>(pids.begin(), pids.end())) {
    auto process = os::ProcessMemory::open(pid);
    if (!process) {
      return process.error();
    }
    processes.push_back(*std::move(process));
  }
  return processes;
}

Result<Processes> open_all() {
  const auto pids = os::list_processes();
  if (!pids) {
    return pids.error();
  }
  Processes processes;
  for (const pid_t pid : *pids) {
    if (pid == ::getpid()) {
      continue;
    }
    auto process = os::ProcessMemory::open(pid);
    if (process && (*process)->pages() != 0) {
      processes.push_back(*std::move(process));
    } else if (!process && process.error().saved_errno == EMFILE) {
      return process.error();
    }
  }
  return processes;
}

// Reads every page whose number, counted over all processes, is the next of an even spread.
class Reader {
 public:
  Reader(std::uint64_t total, std::uint64_t wanted) : total_(total), wanted_(wanted) {}

  void read(const os::ProcessMemory& process, Sample& into) {
    SampledProcess sampled{process.pid(), process.name(), 0};
    for (const os::PageRun& run : process.runs()) {
      for (; taken_ < wanted_ && next() < passed_ + run.pages; ++taken_) {
        const std::size_t end = into.bytes.size();
        into.bytes.resize(end + kDataPage);
        if (process.read(run.address + (next() - passed_) * kDataPage,
                         std::span(into.bytes).subspan(end))) {
          ++sampled.pages;
        } else {
          into.bytes.resize(end);
        }
      }
      passed_ += run.pages;
    }
    if (sampled.pages != 0) {
      into.processes.push_back(std::move(sampled));
    }
  }

 private:
  [[nodiscard]] std::uint64_t next() const noexcept {
    // As taken_ * total_ / wanted_, which might overflow.
    return taken_ * (total_ / wanted_) + taken_ * (total_ % wanted_) / wanted_;
  }

  const std::uint64_t total_;
  const std::uint64_t wanted_;
  std::uint64_t taken_ = 0;
  // Pages of the runs before.
  std::uint64_t passed_ = 0;
};

Error nothing_found(const Processes& processes, bool given) {
  std::string message;
  for (const auto& process : processes) {
    message += (message.empty() ? "pid " : ", pid ") + std::to_string(process->pid()) + " (" +
               process->name() + ")";
  }
  if (given) {
    message += ": no page that could be swapped; it has ended, or is a thread of the kernel";
  } else {
    message =
        "there is no process whose memory this user may read; run as root, or give the "
        "--pid of one of yours";
  }
  return {Errc::not_found, 0, std::move(message)};
}

}  // namespace

Result<Sample> take_sample(const SampleRequest& request) {
  const bool given = !request.pids.empty();
  const auto processes = given ? open_given(request.pids) : open_all();
  if (!processes) {
    return processes.error();
  }
  std::uint64_t total = 0;
  for (const auto& process : *processes) {
    total += process->pages();
  }
  const std::uint64_t wanted = std::min(total, request.pages);
  const std::uint64_t room = readable_bytes();
  if (wanted > room / kDataPage) {
    return Error{Errc::no_space, 0,
                 "a sample of " + format_size(wanted * kDataPage) + " is more than the " +
                     format_size(room) + " that memory has room for; take a smaller one"};
  }
  Sample sample;
  sample.bytes.reserve(wanted * kDataPage);
  Reader reader(total, std::max<std::uint64_t>(wanted, 1));
  for (const auto& process : *processes) {
    reader.read(*process, sample);
  }
  if (sample.bytes.empty()) {
    return nothing_found(*processes, given);
  }
  return sample;
}

}  // namespace uzram::bench
