// LatencyHistogram: counts of durations, in buckets of at most 1/64 of their value.
//
// Role: latency of single requests. Log-linear buckets as HdrHistogram has them: 64 for each power
// of two.
// Units: nanoseconds.
// Threads: one at a time; histograms of several are merged.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "bench/results.hpp"

namespace uzram::bench {

class LatencyHistogram {
 public:
  void add(std::uint64_t ns) noexcept {
    ++counts_[bucket_of(ns)];
    ++count_;
    sum_ += ns;
    min_ = std::min(min_, ns);
    max_ = std::max(max_, ns);
  }

  void merge(const LatencyHistogram& other) noexcept {
    for (std::size_t i = 0; i < kBuckets; ++i) {
      counts_[i] += other.counts_[i];
    }
    count_ += other.count_;
    sum_ += other.sum_;
    min_ = std::min(min_, other.min_);
    max_ = std::max(max_, other.max_);
  }

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

  // The value below or at which `share` (0 to 1) of the durations lie, exact to its bucket. REQUIRES:
  // count() != 0.
  [[nodiscard]] std::uint64_t percentile(double share) const noexcept {
    const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_)));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < kBuckets; ++i) {
      seen += counts_[i];
      if (seen >= std::max<std::uint64_t>(wanted, 1)) {
        return std::clamp(top_of(i), min_, max_);
      }
    }
    return max_;
  }

  // REQUIRES: count() != 0.
  [[nodiscard]] Latency summary() const noexcept {
    return {min_,
            static_cast<double>(sum_) / static_cast<double>(count_),
            percentile(0.5),
            percentile(0.99),
            percentile(0.999),
            max_};
  }

 private:
  static constexpr unsigned kSubBits = 6;
  static constexpr std::uint64_t kSub = std::uint64_t{1} << kSubBits;
  static constexpr std::size_t kBuckets = (64 - kSubBits + 1) * kSub;

  [[nodiscard]] static std::size_t bucket_of(std::uint64_t ns) noexcept {
    if (ns < kSub) {
      return static_cast<std::size_t>(ns);
    }
    const auto exponent = static_cast<unsigned>(std::bit_width(ns)) - 1 - kSubBits;
    return static_cast<std::size_t>((exponent + 1) * kSub + ((ns >> exponent) & (kSub - 1)));
  }

  // The greatest duration of bucket i.
  [[nodiscard]] static std::uint64_t top_of(std::size_t i) noexcept {
    if (i < kSub) {
      return i;
    }
    const auto exponent = static_cast<unsigned>(i / kSub) - 1;
    const std::uint64_t low = (kSub + i % kSub) << exponent;
    return low + ((std::uint64_t{1} << exponent) - 1);
  }

  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t count_ = 0;
  std::uint64_t sum_ = 0;
  std::uint64_t min_ = ~std::uint64_t{0};
  std::uint64_t max_ = 0;
};

}  // namespace uzram::bench
