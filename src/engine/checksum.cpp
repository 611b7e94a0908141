#include "engine/checksum.hpp"

#include "base/size.hpp"

namespace uzram::engine {

PlaceSums::Range PlaceSums::room_for(std::uint32_t chunk, std::uint32_t known,
                                     std::uint32_t count) noexcept {
  const std::uint64_t first = std::uint64_t{chunk} * kSpansPerChunk * kBytesPerSpan;
  static_assert(kSpansPerChunk * kBytesPerSpan % os::kSystemPage == 0);
  return {first + round_up(known * kBytesPerSpan, os::kSystemPage),
          first + round_up(count * kBytesPerSpan, os::kSystemPage)};
}

Errc PlaceSums::take_room(const Range& range) const noexcept {
  return file_.take_room(memory_ + range.from, offset_ + range.from, range.to - range.from);
}

}  // namespace uzram::engine
