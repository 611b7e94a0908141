#include "support/unusual_pages.hpp"

#include <array>

#include "base/random.hpp"

namespace uzram::test {

std::vector<std::vector<std::byte>> unusual_pages(std::size_t count, std::uint64_t seed,
                                                  std::size_t page_bytes) {
  constexpr std::size_t kRecord = 20;
  constexpr std::array<unsigned, 4> kLetters = {0xd7, 0x9b, 0xee, 0xa3};
  Random random(seed);
  std::vector<std::vector<std::byte>> pages(count);
  for (std::vector<std::byte>& page : pages) {
    page.reserve(page_bytes + kRecord);
    while (page.size() < page_bytes) {
      const bool repeats = page.size() >= 10 * kRecord && random.below(3) == 0;
      const std::size_t from =
          repeats ? page.size() - (1 + random.below(9)) * kRecord : page.size();
      for (std::size_t at = 0; at < kRecord; ++at) {
        if (repeats && at < 13) {
          page.push_back(page[from + at]);
        } else {
          page.push_back(static_cast<std::byte>(at % 4 == 0 ? kLetters[random.below(4)]
                                                            : 0x80 + random.below(64)));
        }
      }
    }
    page.resize(page_bytes);
  }
  return pages;
}

}  // namespace uzram::test
