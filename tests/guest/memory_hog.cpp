// memory_hog MIB ROUNDS: writes more memory than the guest has, and checks every byte of it, so that
// all of it goes to swap and comes back. Exit code 0 when all was as written.
#include <cstdio>
#include <cstdlib>

#include "compressible.hpp"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: memory_hog MIB ROUNDS\n", stderr);
    return 2;
  }
  const std::size_t bytes = std::strtoull(argv[1], nullptr, 10) << 20;
  const std::uint64_t rounds = std::strtoull(argv[2], nullptr, 10);
  const std::span<std::byte> memory = uzram::map_memory(bytes);
  if (memory.empty()) {
    std::perror("memory_hog: mmap");
    return 1;
  }
  for (std::uint64_t round = 0; round < rounds; ++round) {
    uzram::fill_memory(memory, round);
    const std::size_t wrong = uzram::first_wrong_page(memory, round);
    if (wrong != bytes / uzram::kPageBytes) {
      std::printf("round %llu: page %zu is not what was written\n",
                  static_cast<unsigned long long>(round), wrong);
      return 1;
    }
    std::printf("round %llu: %zu pages are as written\n", static_cast<unsigned long long>(round),
                bytes / uzram::kPageBytes);
  }
  return 0;
}
