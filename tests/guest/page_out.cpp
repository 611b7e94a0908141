// page_out MIB RECLAIM: has the kernel swap out memory by MADV_PAGEOUT, then reads it back. Prints
//   PAGES-OUT SECONDS-OUT SECONDS-IN
// where PAGES-OUT are the pages that were not in memory any more. RECLAIM is memory.reclaim of this
// process's control group: what is written to a device with a queue stays in the swap cache until
// somebody reclaims again. Exit code 0 when every byte was as written.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "compressible.hpp"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::size_t pages_out(std::span<std::byte> memory) {
  std::vector<unsigned char> resident(memory.size() / uzram::kPageBytes);
  if (mincore(memory.data(), memory.size(), resident.data()) != 0) {
    return 0;
  }
  return static_cast<std::size_t>(
      std::ranges::count_if(resident, [](unsigned char flags) { return (flags & 1) == 0; }));
}

// Until the machine writes no page.
void wait_for_writes() {
  for (;;) {
    std::ifstream counters("/proc/vmstat");
    std::string name;
    for (std::uint64_t value = 0; counters >> name >> value;) {
      if (name == "nr_writeback" && value == 0) {
        return;
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// The kernel says EAGAIN when it finds less than it was told, which is no matter here.
void drop_swap_cache(const char* reclaim, std::size_t bytes) {
  std::ofstream(reclaim) << bytes << std::flush;
}

bool is_intact(std::span<const std::byte> memory) {
  const std::size_t wrong = uzram::first_wrong_page(memory, 0);
  if (wrong != memory.size() / uzram::kPageBytes) {
    std::printf("page %zu is not what was written\n", wrong);
    return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: page_out MIB RECLAIM\n", stderr);
    return 2;
  }
  const std::size_t bytes = std::strtoull(argv[1], nullptr, 10) << 20;
  const std::span<std::byte> memory = uzram::map_memory(bytes);
  if (memory.empty()) {
    std::perror("page_out: mmap");
    return 1;
  }
  uzram::fill_memory(memory, 0);
  const Clock::time_point out_start = Clock::now();
  if (madvise(memory.data(), bytes, MADV_PAGEOUT) != 0) {
    std::perror("page_out: madvise");
    return 1;
  }
  wait_for_writes();
  const double out = seconds_since(out_start);
  drop_swap_cache(argv[2], bytes);
  const std::size_t gone = pages_out(memory);
  const Clock::time_point in_start = Clock::now();
  for (std::size_t at = 0; at < bytes; at += uzram::kPageBytes) {
    static_cast<void>(*static_cast<volatile std::byte*>(&memory[at]));
  }
  const double in = seconds_since(in_start);
  if (!is_intact(memory)) {
    return 1;
  }
  std::printf("%zu %.3f %.3f\n", gone, out, in);
  return 0;
}
