#include "bench/data.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include <sys/mman.h>

#include "base/crc32c.hpp"
#include "base/size.hpp"

namespace uzram::bench {
namespace {

Error bad_bytes(const std::string& name, std::size_t size) {
  return {Errc::invalid_argument, 0,
          "data \"" + name + "\": " + std::to_string(size) +
              " bytes, expected a multiple of 4096 that is not 0"};
}

// The first `size` of `mapped` bytes are there; repeats them until the end.
void repeat(std::byte* bytes, std::size_t size, std::size_t mapped) {
  for (std::size_t at = size; at < mapped; at += size) {
    std::memcpy(bytes + at, bytes, std::min(size, mapped - at));
  }
}

}  // namespace

Result<std::shared_ptr<const DataSet>> DataSet::make(std::string name,
                                                     std::span<const std::byte> bytes) {
  const std::size_t pages = bytes.size() / kDataPage;
  if (bytes.empty() || bytes.size() % kDataPage != 0 ||
      pages > std::numeric_limits<std::uint32_t>::max()) {
    return bad_bytes(name, bytes.size());
  }
  const std::size_t mapped = bytes.size() + kLongestBlock;
  void* const address =
      ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    return Error{Errc::no_space, errno,
                 "data \"" + name + "\": there is no room for " + format_size(mapped) +
                     " of memory; free some or use less data"};
  }
  const std::shared_ptr<DataSet> set(new DataSet);
  set->name_ = std::move(name);
  set->pages_ = static_cast<std::uint32_t>(pages);
  set->bytes_ = static_cast<std::byte*>(address);
  set->mapped_bytes_ = mapped;
  // Pages of other processes have no place in a core file of this one.
  ::madvise(address, mapped, MADV_DONTDUMP);
  std::memcpy(set->bytes_, bytes.data(), bytes.size());
  repeat(set->bytes_, bytes.size(), mapped);
  ::mprotect(address, mapped, PROT_READ);
  set->sums_.reserve(pages);
  for (std::size_t page = 0; page < pages; ++page) {
    set->sums_.push_back(uzram::crc32c(bytes.subspan(page * kDataPage, kDataPage)));
  }
  return std::shared_ptr<const DataSet>(set);
}

DataSet::~DataSet() {
  if (bytes_ != nullptr) {
    ::munmap(bytes_, mapped_bytes_);
  }
}

}  // namespace uzram::bench
