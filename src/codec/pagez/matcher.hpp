// Matcher: finds the matches of a page, greedily.
//
// Role: the first half of the encoder, for the levels `fast` and default.
// At each place three sources are tried, the likeliest first: the last offset, zero bytes, and the
// last place whose next five (fast: six) bytes had the same hash. Branches are cheaper here than
// selections without them: they resolve early and processors learn what pages repeat.
// Units: bytes.
// Errors: none. Reads nothing outside the page.
// Threads: as Sequences.
// Invariant: the sequences of a page do not depend on Isa.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "codec/pagez/bytes.hpp"
#include "codec/pagez/emit.hpp"
#include "codec/pagez/offset_classes.hpp"
#include "codec/pagez/sequences.hpp"

namespace uzram::codec::pagez {

// The last place of each hash, as its distance from the page's begin.
using HashTable = std::array<std::uint16_t, 1U << 11>;

// What the levels search differently.
struct FastSearch {
  static constexpr unsigned kHashedBytes = 6;
  // After 16 bytes without a match every second place is tried, after 32 every third.
  static constexpr unsigned kPatienceShift = 4;
  static constexpr bool kDifferences = false;
};
struct NormalSearch {
  static constexpr unsigned kHashedBytes = 5;
  static constexpr unsigned kPatienceShift = 6;
  static constexpr bool kDifferences = true;
};

// Isa has: equal_32(a, b) and zero_32(a), how many bytes from there on are equal or zero, up to 32;
// differences_16(out, bytes, from, period), 16 bytes minus those at `from`, which repeat.
template <typename Isa, typename Search>
class Matcher {
 public:
  Matcher(HashTable& table, const std::uint8_t* page, unsigned page_bits, Sequences& out) noexcept
      : classes_(offset_classes(page_bits)),
        last_(table),
        page_(page),
        end_(page + (std::size_t{1} << page_bits)),
        sequences_(out),
        out_(out.begin()) {}

  void run() noexcept {
    std::memset(last_.data(), 0, sizeof last_);
    begin();
    while (at_ <= end_ - kVectorReach) {
      step<false>();
    }
    while (at_ <= end_ - sizeof(std::uint64_t)) {
      step<true>();
    }
    out_ = emit(out_, page_, anchor_, static_cast<std::uint32_t>(end_ - anchor_), 0, Source::zero,
                offset_);
    sequences_.finish(out_, Search::kDifferences);
  }

 private:
  // What a step may read beyond its place: 32 bytes, and 8 behind the end of a match of 32.
  static constexpr std::ptrdiff_t kVectorReach = 40;
  static constexpr std::uint32_t kReach = 32;
  static constexpr unsigned kHashBits = std::bit_width(std::tuple_size_v<HashTable>) - 1;

  static std::uint32_t hash(std::uint64_t bytes) noexcept {
    constexpr std::uint64_t kGolden = 0x9e3779b185ebca87;
    return static_cast<std::uint32_t>((bytes << (64 - 8 * Search::kHashedBytes)) * kGolden >>
                                      (64 - kHashBits));
  }
  [[gnu::always_inline]] void remember(const std::uint8_t* place) noexcept {
    last_[hash(load<std::uint64_t>(place))] = static_cast<std::uint16_t>(place - page_);
  }

  // Places before the first offset can begin matches of zero bytes only.
  [[gnu::always_inline]] void begin() noexcept {
    if (load<std::uint32_t>(page_) == 0) {
      std::uint32_t length = sizeof(std::uint32_t);
      while (page_ + length < end_ && page_[length] == 0) {
        ++length;
      }
      out_ = emit(out_, page_, page_, 0, length, Source::zero, offset_);
      at_ = anchor_ = page_ + length;
    }
    if (at_ < page_ + kFirstOffset) {
      remember(at_);
      at_ = page_ + kFirstOffset;
    }
  }

  template <bool kNearEnd>
  [[nodiscard, gnu::always_inline]] std::uint32_t equal_length(
      const std::uint8_t* from) const noexcept {
    std::uint32_t length = 0;
    if constexpr (!kNearEnd) {
      length = Isa::equal_32(from, at_);
      if (length < kReach) [[likely]] {
        return length;
      }
      while (at_ + length <= end_ - kReach) {
        const std::uint32_t more = Isa::equal_32(from + length, at_ + length);
        length += more;
        if (more < kReach) {
          return length;
        }
      }
    }
    while (at_ + length < end_ && from[length] == at_[length]) {
      ++length;
    }
    return length;
  }

  template <bool kNearEnd>
  [[nodiscard, gnu::always_inline]] std::uint32_t zero_length() const noexcept {
    std::uint32_t length = 0;
    if constexpr (!kNearEnd) {
      length = Isa::zero_32(at_);
      if (length < kReach) [[likely]] {
        return length;
      }
      while (at_ + length <= end_ - kReach) {
        const std::uint32_t more = Isa::zero_32(at_ + length);
        length += more;
        if (more < kReach) {
          return length;
        }
      }
    }
    while (at_ + length < end_ && at_[length] == 0) {
      ++length;
    }
    return length;
  }

  template <bool kNearEnd>
  [[gnu::always_inline]] void step() noexcept {
    const auto bytes = load<std::uint64_t>(at_);
    std::uint16_t& slot = last_[hash(bytes)];
    const std::uint8_t* const candidate = page_ + slot;
    slot = static_cast<std::uint16_t>(at_ - page_);
    const std::uint64_t unlike_repeat = bytes ^ load<std::uint64_t>(at_ - offset_);
    const std::uint64_t unlike_candidate = bytes ^ load<std::uint64_t>(candidate);
    if (static_cast<std::uint32_t>(unlike_repeat) == 0) {
      found<kNearEnd>(equal_length<kNearEnd>(at_ - offset_), Source::repeat);
      return;
    }
    if (static_cast<std::uint32_t>(bytes) == 0) {
      found<kNearEnd>(zero_length<kNearEnd>(), Source::zero);
      return;
    }
    if (unlike_candidate << (64 - 8 * Search::kHashedBytes) == 0) {
      found_candidate<kNearEnd>(candidate);
      return;
    }
    at_ += 1 + (static_cast<std::uint64_t>(at_ - anchor_) >> Search::kPatienceShift);
  }

  template <bool kNearEnd>
  [[gnu::always_inline]] void found(std::uint32_t length, Source source) noexcept {
    const std::uint8_t* const begin = at_;
    advance<kNearEnd>(length);
    add<kNearEnd>(begin, length, source, offset_);
  }

  template <bool kNearEnd>
  [[gnu::always_inline]] void found_candidate(const std::uint8_t* candidate) noexcept {
    const auto offset = static_cast<std::uint32_t>(at_ - candidate);
    const OffsetClass& kind = classes_[offset];
    const std::uint32_t field = (offset - 1) >> kind.shift;
    if (field > kind.mask) [[unlikely]] {
      // Too far away, in a page of 32 or 64 KiB.
      ++at_;
      return;
    }
    std::uint32_t length = equal_length<kNearEnd>(candidate);
    const std::uint8_t* begin = at_;
    advance<kNearEnd>(length);
    // How far it reaches back, up to 8 bytes and into the literals only.
    if (candidate >= page_ + sizeof(std::uint64_t)) [[likely]] {
      const std::uint64_t unlike =
          load<std::uint64_t>(begin - 8) ^ load<std::uint64_t>(candidate - 8);
      auto back = static_cast<std::uint32_t>(std::countl_zero(unlike)) / 8;
      const auto most = static_cast<std::uint32_t>(begin - anchor_);
      back = back < most ? back : most;
      begin -= back;
      length += back;
    }
    *out_.offset = {static_cast<std::uint16_t>(field), kind.mask};
    ++out_.offset;
    const std::uint32_t before = offset_;
    offset_ = offset;
    add<kNearEnd>(begin, length, kind.source, before);
  }

  // The place two bytes before the end is worth a match later more often than others.
  template <bool kNearEnd>
  [[gnu::always_inline]] void advance(std::uint32_t length) noexcept {
    at_ += length;
    if (!kNearEnd && at_ <= end_ - 6) {
      remember(at_ - 2);
    }
  }

  template <bool kNearEnd>
  [[gnu::always_inline]] void add(const std::uint8_t* begin, std::uint32_t length, Source source,
                                  std::uint32_t offset) noexcept {
    const auto literals = static_cast<std::uint32_t>(begin - anchor_);
    if (kNearEnd || literals > kMaxLiteralsOfMatch || length > kMaxMatch ||
        anchor_ - page_ < static_cast<std::ptrdiff_t>(offset)) [[unlikely]] {
      out_ = emit(out_, page_, anchor_, literals, length, source, offset);
    } else {
      std::memcpy(out_.literal, anchor_, 16);
      if constexpr (Search::kDifferences) {
        Isa::differences_16(out_.literal + out_.to_difference, anchor_, anchor_ - offset, offset);
      }
      out_.literal += literals;
      *out_.token++ = match_id(literals, length, source);
    }
    anchor_ = at_;
  }

  const OffsetClasses& classes_;
  HashTable& last_;
  const std::uint8_t* const page_;
  const std::uint8_t* const end_;
  Sequences& sequences_;
  Sequences::Cursor out_;
  const std::uint8_t* at_ = page_;
  // The first byte that is in no token yet.
  const std::uint8_t* anchor_ = page_;
  std::uint32_t offset_ = kFirstOffset;
};

}  // namespace uzram::codec::pagez
