// Turns: in which order targets do their stretches.
//
// Role: whoever goes first, and after whom, finds other caches. The first one changes from pair to
// pair of stretches, every other stretch goes the other way round, and a round begins where the one
// before it has gone on: phases of one stretch alternate too, round by round.
// Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace uzram::bench {

class Turns {
 public:
  // Of a phase. REQUIRES: targets >= 1.
  Turns(std::size_t targets, std::uint32_t round) noexcept : targets_(targets), stretch_(round) {}

  // The targets in the order of the stretch that comes.
  [[nodiscard]] std::vector<std::size_t> order() const {
    const std::size_t first = stretch_ / 2 % targets_;
    std::vector<std::size_t> order;
    for (std::size_t turn = 0; turn < targets_; ++turn) {
      order.push_back((first + (stretch_ % 2 == 0 ? turn : targets_ - 1 - turn)) % targets_);
    }
    return order;
  }
  void next_stretch() noexcept { ++stretch_; }

 private:
  std::size_t targets_;
  std::uint64_t stretch_;
};

}  // namespace uzram::bench
