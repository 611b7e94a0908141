// ExtentRuns: a range of a device as maximal runs of one kind.
//
// Role: the device's extents may be cut anywhere; replies want neighbours of the same kind
// joined.
// Units: bytes.
// Threads: one at a time; other threads may change the device meanwhile, each run is then what
// it was when it was looked at.
// Cost: one query for each extent.
#pragma once

#include <cstdint>

#include "uzram/device.hpp"

namespace uzram::nbd {

class ExtentRuns {
 public:
  enum class Kind : std::uint8_t {
    state,    // hole, zero and data are three kinds
    content,  // hole and zero are one kind, reported as hole: both read as zeroes
  };

  // REQUIRES: begin < end <= the device's size.
  ExtentRuns(const Device& device, std::uint64_t begin, std::uint64_t end, Kind kind) noexcept
      : device_(device), at_(begin), end_(end), kind_(kind), ahead_(look(begin)) {}

  [[nodiscard]] bool done() const noexcept { return at_ == end_; }

  // The run that begins where the last one ended. REQUIRES: !done().
  [[nodiscard]] Extent next() noexcept {
    Extent run = ahead_;
    std::uint64_t after = at_ + run.length;
    while (after != end_) {
      ahead_ = look(after);
      if (ahead_.state != run.state) {
        break;
      }
      run.length += ahead_.length;
      after += ahead_.length;
    }
    at_ = after;
    return run;
  }

 private:
  [[nodiscard]] Extent look(std::uint64_t at) const noexcept {
    Extent extent = device_.extent_at(at, end_);
    if (kind_ == Kind::content && extent.state == ExtentState::zero) {
      extent.state = ExtentState::hole;
    }
    return extent;
  }

  const Device& device_;
  std::uint64_t at_;
  std::uint64_t end_;
  Kind kind_;
  Extent ahead_;
};

}  // namespace uzram::nbd
