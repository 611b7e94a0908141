// FreeBatch: room freed by an operation on many pages, brought back to the pool in bulk.
//
// Role: discards and compaction, which free more than a CPU's cache should gather.
// Units: Place and lengths in units of 16 bytes.
// Threads: one; lives on the stack.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "engine/page_store.hpp"

namespace uzram::engine {

class PageStore::FreeBatch {
 public:
  explicit FreeBatch(Pool& pool) noexcept : pool_(pool) {}
  ~FreeBatch() { flush(); }
  FreeBatch(const FreeBatch&) = delete;
  FreeBatch& operator=(const FreeBatch&) = delete;

  // Frees what `entry` owned; it is no longer published.
  void add(Entry entry) noexcept {
    if (!entry.owns_room()) {
      return;
    }
    extents_[count_++] = {entry.place(), units_for(entry.size())};
    if (count_ == extents_.size()) {
      flush();
    }
  }

  void flush() noexcept {
    pool_.give_back(std::span(extents_).first(count_));
    count_ = 0;
  }

 private:
  Pool& pool_;
  std::size_t count_ = 0;
  std::array<Extent16, 256> extents_;
};

}  // namespace uzram::engine
