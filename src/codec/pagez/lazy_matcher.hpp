// LazyMatcher: finds the matches of a page for the level `high`.
//
// Role: the first half of the encoder. At each place it weighs the last offset, zero bytes and
// several earlier places with the same hash by the bits they save, and takes none of them while the
// place after it saves more.
// Units: bytes; gains in bits.
// Errors: none. Reads nothing outside the page.
// Threads: as Sequences.
// Invariant: the sequences of a page do not depend on Isa.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "codec/pagez/bytes.hpp"
#include "codec/pagez/emit.hpp"
#include "codec/pagez/offset_classes.hpp"
#include "codec/pagez/sequences.hpp"

namespace uzram::codec::pagez {

// Chains of places with the same hash, as distances from the page's begin.
struct HashChains {
  static constexpr unsigned kHashBits = 11;
  static constexpr std::uint16_t kNone = 0xffff;

  explicit HashChains(std::uint32_t page_bytes) : before(page_bytes) {}

  std::array<std::uint16_t, 1U << kHashBits> last{};
  // By place: the one before it in its chain.
  std::vector<std::uint16_t> before;
};

template <typename Isa>
class LazyMatcher {
 public:
  LazyMatcher(HashChains& chains, const std::uint8_t* page, unsigned page_bits,
              Sequences& out) noexcept
      : classes_(offset_classes(page_bits)),
        chains_(chains),
        page_(page),
        end_(page + (std::size_t{1} << page_bits)),
        sequences_(out),
        out_(out.begin()) {}

  void run() noexcept {
    chains_.last.fill(HashChains::kNone);
    const std::uint8_t* at = page_;
    while (at <= end_ - kWord) {
      Match match = best_at(at);
      remember(at);
      if (match.gain <= 0) {
        at += 1 + ((at - anchor_) >> kPatienceShift);
        continue;
      }
      while (at + 1 <= end_ - kWord && match.length < kLongEnough) {
        const Match next = best_at(at + 1);
        if (next.gain <= match.gain + kLiteralBits) {
          break;
        }
        ++at;
        remember(at);
        match = next;
      }
      take(at, match);
      at = anchor_;
    }
    out_ = emit(out_, page_, anchor_, static_cast<std::uint32_t>(end_ - anchor_), 0, Source::zero,
                offset_);
    sequences_.finish(out_, true);
  }

 private:
  struct Match {
    std::int32_t gain = 0;
    std::uint32_t length = 0;
    // 0: zero bytes.
    std::uint32_t offset = 0;
  };

  static constexpr std::ptrdiff_t kWord = sizeof(std::uint64_t);
  static constexpr std::uint32_t kReach = 32;
  // What bytes and tokens take on the average.
  static constexpr std::int32_t kLiteralBits = 6;
  static constexpr std::int32_t kTokenBits = 8;
  static constexpr unsigned kDepth = 4;
  static constexpr std::uint32_t kLongEnough = 32;
  static constexpr unsigned kPatienceShift = 8;

  static std::uint32_t hash(const std::uint8_t* at) noexcept {
    constexpr std::uint32_t kGolden = 0x9e3779b1;
    return load<std::uint32_t>(at) * kGolden >> (32 - HashChains::kHashBits);
  }

  void remember(const std::uint8_t* at) noexcept {
    std::uint16_t& last = chains_.last[hash(at)];
    const auto place = static_cast<std::uint16_t>(at - page_);
    chains_.before[place] = last;
    last = place;
  }

  [[nodiscard]] std::uint32_t equal_length(const std::uint8_t* from,
                                           const std::uint8_t* at) const noexcept {
    std::uint32_t length = 0;
    while (at + length <= end_ - kReach) {
      const std::uint32_t more = Isa::equal_32(from + length, at + length);
      length += more;
      if (more < kReach) {
        return length;
      }
    }
    while (at + length < end_ && from[length] == at[length]) {
      ++length;
    }
    return length;
  }
  [[nodiscard]] std::uint32_t zero_length(const std::uint8_t* at) const noexcept {
    std::uint32_t length = 0;
    while (at + length <= end_ - kReach) {
      const std::uint32_t more = Isa::zero_32(at + length);
      length += more;
      if (more < kReach) {
        return length;
      }
    }
    while (at + length < end_ && at[length] == 0) {
      ++length;
    }
    return length;
  }

  static void weigh(Match& best, std::uint32_t length, std::uint32_t offset,
                    std::int32_t cost) noexcept {
    const std::int32_t gain = static_cast<std::int32_t>(length) * kLiteralBits - cost;
    if (length >= kMinMatch && gain > best.gain) {
      best = {gain, length, offset};
    }
  }

  [[nodiscard]] Match best_at(const std::uint8_t* at) const noexcept {
    Match best;
    const auto first = load<std::uint32_t>(at);
    if (at - page_ >= static_cast<std::ptrdiff_t>(offset_) &&
        load<std::uint32_t>(at - offset_) == first) {
      weigh(best, equal_length(at - offset_, at), offset_, kTokenBits);
    }
    if (first == 0) {
      weigh(best, zero_length(at), 0, kTokenBits);
    }
    std::uint32_t place = chains_.last[hash(at)];
    for (unsigned depth = 0; depth < kDepth && place != HashChains::kNone; ++depth) {
      const std::uint8_t* const from = page_ + place;
      // One that is no longer than the best so far differs where that one ends.
      if (load<std::uint32_t>(from) == first && at + best.length < end_ &&
          from[best.length] == at[best.length]) {
        const auto offset = static_cast<std::uint32_t>(at - from);
        const OffsetClass& kind = classes_[offset];
        if (((offset - 1) >> kind.shift) <= kind.mask) {
          weigh(best, equal_length(from, at), offset, kTokenBits + std::popcount(kind.mask));
        }
      }
      place = chains_.before[place];
    }
    return best;
  }

  void take(const std::uint8_t* at, const Match& match) noexcept {
    Source source = Source::zero;
    const std::uint32_t before = offset_;
    if (match.offset == offset_) {
      source = Source::repeat;
    } else if (match.offset != 0) {
      const OffsetClass& kind = classes_[match.offset];
      source = kind.source;
      *out_.offset++ = {static_cast<std::uint16_t>((match.offset - 1) >> kind.shift), kind.mask};
      offset_ = match.offset;
    }
    out_ = emit(out_, page_, anchor_, static_cast<std::uint32_t>(at - anchor_), match.length,
                source, before);
    anchor_ = at + match.length;
    const std::uint8_t* const last = std::min(anchor_, end_ - kWord + 1);
    for (const std::uint8_t* inside = at + 1; inside < last; ++inside) {
      remember(inside);
    }
  }

  const OffsetClasses& classes_;
  HashChains& chains_;
  const std::uint8_t* const page_;
  const std::uint8_t* const end_;
  Sequences& sequences_;
  Sequences::Cursor out_;
  // The first byte that is in no token yet.
  const std::uint8_t* anchor_ = page_;
  std::uint32_t offset_ = kFirstOffset;
};

}  // namespace uzram::codec::pagez
