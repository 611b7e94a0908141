#include "frontend/nbd/intake.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace uzram::nbd {
namespace {

// A payload buffer up to this is kept for the next one.
constexpr std::size_t kRetainedBytes = 4U << 20;

}  // namespace

unsigned Intake::space(std::array<iovec, 2>& pieces) noexcept {
  if (!buffer_.reserve(kBufferBytes)) {
    return 0;
  }
  if (begin_ == end_) {
    begin_ = 0;
    end_ = 0;
  } else if (buffer_.capacity() - end_ < buffer_.capacity() / 2) {
    // What is left is the beginning of one request or option: little.
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  unsigned count = 0;
  if (payload_kept() && !payload_complete()) {
    pieces.at(count++) = iovec{payload_.data() + payload_.size(), payload_bytes_ - payload_.size()};
  }
  pieces.at(count++) = iovec{buffer_.data() + end_, buffer_.capacity() - end_};
  return count;
}

void Intake::received(std::size_t count) noexcept {
  if (payload_kept() && !payload_complete()) {
    const std::size_t part = std::min(count, payload_bytes_ - payload_.size());
    // The bytes are there already; this only counts them, within reserved room.
    [[maybe_unused]] const std::byte* const place = payload_.extend(part);
    assert(place != nullptr);
    count -= part;
  }
  end_ += count;
  assert(end_ <= buffer_.capacity());
  const std::size_t dropped = std::min(skip_bytes_, end_ - begin_);
  begin_ += dropped;
  skip_bytes_ -= dropped;
}

void Intake::skip(std::size_t count) noexcept {
  const std::size_t dropped = std::min(count, end_ - begin_);
  begin_ += dropped;
  skip_bytes_ = count - dropped;
}

bool Intake::begin_payload(std::size_t header, std::size_t count) noexcept {
  assert(!payload_kept() && end_ - begin_ >= header && end_ - begin_ - header < count);
  payload_.clear();
  if (!payload_.reserve(count)) {
    return false;
  }
  begin_ += header;
  payload_bytes_ = count;
  const std::size_t part = end_ - begin_;
  if (std::byte* const place = payload_.extend(part); part != 0) {
    std::memcpy(place, buffer_.data() + begin_, part);
    begin_ = end_;
  }
  return true;
}

void Intake::end_payload() noexcept {
  payload_bytes_ = 0;
  payload_.clear();
  if (payload_.capacity() > kRetainedBytes) {
    payload_.release();
  }
}

void Intake::trim() noexcept {
  if (!payload_kept()) {
    payload_.release();
  }
}

}  // namespace uzram::nbd
