// Samples of processes' memory.
//
// Role: a corpus of this machine, made on the spot: pages that would be swapped (see
// os/process_memory.hpp), evenly spread over those of all processes asked for. Pages of one value
// are kept; real memory has them.
// Errors: of a process asked for by its number: not_found, system (EACCES); not_found when there is
// not one page; no_space when memory has no room for the sample.
// Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "uzram/error.hpp"

#include "bench/data.hpp"

namespace uzram::bench {

// Of a sample whose size nobody has named: 16 MiB.
inline constexpr std::uint64_t kSamplePages = (std::uint64_t{16} << 20) / kDataPage;

struct SampleRequest {
  // Empty: all processes that this user may read, but the calling one.
  std::vector<pid_t> pids;
  // At most that many pages of 4096 bytes; all when there are fewer. REQUIRES: not 0.
  std::uint64_t pages = 0;
};

struct SampledProcess {
  pid_t pid = 0;
  std::string name;
  std::uint64_t pages = 0;
};

struct Sample {
  // Page after page.
  std::vector<std::byte> bytes;
  // Those with at least one page in it.
  std::vector<SampledProcess> processes;
};

[[nodiscard]] Result<Sample> take_sample(const SampleRequest& request);

}  // namespace uzram::bench
