// The mappings of this process, as /proc/self/maps lists them.
//
// Role: what of them is the program: its code and data, and those of its libraries.
// Threads: pure functions of the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace uzram::os {

struct MappedRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool writable = false;
  // Empty for memory without a name, such as the data of a library that begins as zeroes.
  std::string path;
};

// Of every file of which some is mapped to be executed, all that can be read; the memory without a
// name that follows its data at once; and the heap.
[[nodiscard]] std::vector<MappedRange> program_ranges(std::string_view maps);

}  // namespace uzram::os
