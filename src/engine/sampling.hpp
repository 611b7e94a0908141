// Sampling: some of the pages that a device compresses, for training.
//
// Role: beside step 5 of the data path. Each stream of a device that trains has a slot for one page:
// of every kPeriod pages that the stream compresses one is copied there, if the last one has been
// taken, and left out otherwise.
// Ownership: slots belong to their streams, the Sampling to the set of streams.
// Errors: none; a slot's memory is taken when its stream is made.
// Threads: offer by whoever has the stream; the rest by the one that takes samples.
// Cost: a count for each page; for one of kPeriod the copy of a page, or a load when the slot is
// full.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

namespace uzram::engine {

class Sampling {
 public:
  // A prime, so that no pattern of powers of two in what is written hides pages from it.
  static constexpr std::uint32_t kPeriod = 61;

  class Taker {
   public:
    // On the data path, each time that a stream has compressed a period's pages.
    virtual void pages_came() noexcept = 0;

   protected:
    ~Taker() = default;
  };

  class Slot {
   public:
    Slot(Sampling& sampling, std::uint32_t page_size_bytes)
        : sampling_(sampling), page_(std::make_unique<std::byte[]>(page_size_bytes)) {}

    void offer(std::span<const std::byte> page) noexcept {
      if (++since_last_ >= sampling_.period_.load(std::memory_order_relaxed)) [[unlikely]] {
        offer_slow(page);
      }
    }

    [[nodiscard]] bool full() const noexcept { return full_.load(std::memory_order_acquire); }
    // REQUIRES: full().
    [[nodiscard]] const std::byte* page() const noexcept { return page_.get(); }
    void clear() noexcept { full_.store(false, std::memory_order_release); }
    // How many pages the stream has compressed while there was a taker, about.
    [[nodiscard]] std::uint64_t pages() const noexcept {
      return pages_.load(std::memory_order_relaxed);
    }

   private:
    void offer_slow(std::span<const std::byte> page) noexcept {
      Taker* const taker = sampling_.taker_.load(std::memory_order_acquire);
      const std::uint32_t passed = since_last_;
      since_last_ = 0;
      if (taker == nullptr) {
        return;
      }
      pages_.store(pages() + passed, std::memory_order_relaxed);
      if (!full()) {
        std::memcpy(page_.get(), page.data(), page.size());
        full_.store(true, std::memory_order_release);
      }
      taker->pages_came();
    }

    Sampling& sampling_;
    // Of the thread that has the stream.
    std::uint32_t since_last_ = 0;
    std::atomic<std::uint64_t> pages_{0};
    std::atomic<bool> full_{false};
    const std::unique_ptr<std::byte[]> page_;
  };

  // nullptr: nothing is sampled. A taker stays until no operation that began before goes on.
  void set_taker(Taker* taker) noexcept { taker_.store(taker, std::memory_order_release); }
  void set_period(std::uint32_t pages) noexcept { period_.store(pages, std::memory_order_relaxed); }

 private:
  std::atomic<Taker*> taker_{nullptr};
  std::atomic<std::uint32_t> period_{kPeriod};
};

}  // namespace uzram::engine
