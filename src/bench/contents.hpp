// Contents: what each page of a target holds, as far as the writes of this run say.
//
// Role: lets reads be verified. Kept only until the last phase of a group that verifies.
// Cost: 4 bytes for each page of the target.
// Threads: any; a page that is written and read at the same moment may show either.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/crc32c.hpp"
#include "bench/data.hpp"

namespace uzram::bench {

class Contents {
 public:
  Contents(std::shared_ptr<const DataSet> data, std::uint64_t pages)
      : data_(std::move(data)),
        states_(static_cast<std::size_t>(pages)),
        zeroes_sum_(crc32c(std::vector<std::byte>(kDataPage))) {}

  void note_write(std::uint64_t page, std::uint64_t count, std::uint32_t generation) noexcept {
    note(page, count, generation + 1);
  }
  void note_discard(std::uint64_t page, std::uint64_t count) noexcept { note(page, count, kHole); }

  // Whether `bytes`, read from `page` on, are what the pages hold. `newest`: while others write
  // generations up to this one, any content the page can have had is right.
  [[nodiscard]] bool matches(std::uint64_t page, std::span<const std::byte> bytes,
                             bool being_written, std::uint32_t newest) const noexcept {
    for (; !bytes.empty(); bytes = bytes.subspan(kDataPage), ++page) {
      const std::uint32_t sum = crc32c(bytes.first(kDataPage));
      const std::uint32_t state = states_[page].load(std::memory_order_relaxed);
      bool right = sum == sum_of(page, state);
      for (std::uint32_t other = 0; being_written && !right && other <= newest + 1; ++other) {
        right = sum == sum_of(page, other);
      }
      if (!right) {
        return false;
      }
    }
    return true;
  }

 private:
  static constexpr std::uint32_t kHole = 0;

  void note(std::uint64_t page, std::uint64_t count, std::uint32_t state) noexcept {
    for (; count != 0; --count, ++page) {
      states_[page].store(state, std::memory_order_relaxed);
    }
  }

  [[nodiscard]] std::uint32_t sum_of(std::uint64_t page, std::uint32_t state) const noexcept {
    return state == kHole ? zeroes_sum_ : data_->crc32c(data_->index_of(page, state - 1));
  }

  std::shared_ptr<const DataSet> data_;
  // 0: a hole; otherwise the generation and 1.
  std::vector<std::atomic<std::uint32_t>> states_;
  std::uint32_t zeroes_sum_;
};

}  // namespace uzram::bench
