// DataSet: the bytes a run writes, shared by all its targets and jobs.
//
// Role: the one data source of the load generator. A set is a bank of 4096-byte pages; page p of
// the disk in generation g holds page (p + g) mod pages() of the bank, so a write needs no copy
// and a reader knows what it must find. Writing generation g + 1 over g replaces every page by
// another one (unless the bank holds one page only).
// Units: pages of 4096 bytes, whatever the page size of the target.
// Errors: make says what is wrong with the bytes.
// Threads: immutable after make.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "uzram/error.hpp"

namespace uzram::bench {

inline constexpr std::size_t kDataPage = 4096;
// The longest block of a request.
inline constexpr std::size_t kLongestBlock = std::size_t{4} << 20;

class DataSet {
 public:
  // Errors: invalid_argument when `bytes` is empty or not whole pages; no_space.
  static Result<std::shared_ptr<const DataSet>> make(std::string name,
                                                     std::span<const std::byte> bytes);
  ~DataSet();
  DataSet(const DataSet&) = delete;
  DataSet& operator=(const DataSet&) = delete;

  // The corpus's file name without .pages, or what the buffers are: "pattern-0xbadc0ffee".
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  // Pages in the bank.
  [[nodiscard]] std::uint32_t pages() const noexcept { return pages_; }

  [[nodiscard]] std::uint32_t index_of(std::uint64_t disk_page,
                                       std::uint32_t generation) const noexcept {
    return static_cast<std::uint32_t>((disk_page + generation) % pages_);
  }

  // Bank page `index` and what follows it, page-aligned and readable for kLongestBlock bytes; the
  // bank begins anew after its last page. REQUIRES: index < pages().
  [[nodiscard]] const std::byte* at(std::uint32_t index) const noexcept {
    return bytes_ + std::size_t{index} * kDataPage;
  }

  // The bank page that `buffer`, a pointer from at() advanced by whole pages, shows.
  [[nodiscard]] std::uint32_t index_at(const std::byte* buffer) const noexcept {
    return static_cast<std::uint32_t>(static_cast<std::size_t>(buffer - bytes_) / kDataPage %
                                      pages_);
  }

  // The CRC32C of bank page `index`.
  [[nodiscard]] std::uint32_t crc32c(std::uint32_t index) const noexcept { return sums_[index]; }

 private:
  DataSet() = default;

  std::string name_;
  std::uint32_t pages_ = 0;
  std::byte* bytes_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::vector<std::uint32_t> sums_;
};

using DataSets = std::vector<std::shared_ptr<const DataSet>>;

}  // namespace uzram::bench
