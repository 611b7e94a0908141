// Memory files and mappings of them.
//
// Role: table and pool live in memory files (memfd), so that a second process can map them. Room in
// a file is taken with calls that can fail, never by first touch, and is given back by punching
// holes.
// Units: bytes; offsets and lengths are multiples of the system page.
// Ownership: a MemoryFile owns its descriptor, a Mapping its address range.
// Errors: create returns Result; what may be called on a write's way returns Errc, or an empty
// Mapping, without allocating.
// Threads: distinct ranges may be used from any number of threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "uzram/error.hpp"

namespace uzram::os {

inline constexpr std::size_t kSystemPage = 4096;
// On x86-64, and on arm64 with pages of 4 KiB.
inline constexpr std::size_t kLargePage = std::size_t{2} << 20;

class Mapping {
 public:
  Mapping() = default;
  Mapping(std::byte* data, std::size_t size) noexcept : data_(data), size_(size) {}
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

class MemoryFile {
 public:
  MemoryFile() = default;
  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile& operator=(MemoryFile&& other) noexcept;
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile();

  // An empty memory file; `name` shows in /proc/PID/fd.
  static Result<MemoryFile> create(const std::string& name);

  [[nodiscard]] int fd() const noexcept { return fd_; }

  // Sets the size; what is added holds no memory yet. Errors: system, with errno set (EFBIG beyond
  // RLIMIT_FSIZE, which would otherwise end in a signal).
  Errc resize(std::uint64_t size) noexcept;

  // Maps [offset, offset + size) for reading and writing, outside core dumps and forks. Empty, with
  // errno set, when that fails. `alignment`, of the address: a power of two.
  [[nodiscard]] Mapping map(std::uint64_t offset, std::size_t size,
                            std::size_t alignment = kSystemPage) const noexcept;

  // Gives [offset, offset + size) back to the system; it reads as zeroes afterwards.
  Errc give_back(std::uint64_t offset, std::uint64_t size) const noexcept;

  // Takes memory for [offset, offset + size) and makes it present at `address`, where it is mapped.
  // Errors: no_space; then the range may be partly taken.
  Errc take_room(std::byte* address, std::uint64_t offset, std::size_t size) const noexcept;
  // The same for one large page, which is mapped and given back as one. REQUIRES: address and
  // offset are aligned to it, and none of it is taken. Errors: unsupported: the system has none now,
  // or never (before Linux 6.1), and then part of it may be taken; or the process has locked its
  // memory.
  Errc take_large_page(std::byte* address) const noexcept;

  // Bytes of memory the file holds now.
  [[nodiscard]] std::uint64_t resident_bytes() const noexcept;

 private:
  int fd_ = -1;
};

// Address space of private memory that holds nothing until taken with take_private_room. Read as
// zeroes. Outside core dumps and forks. Empty, with errno set, when that fails.
[[nodiscard]] Mapping reserve_private(std::size_t size) noexcept;

// Takes memory for part of such a range. Errors: no_space.
Errc take_private_room(std::byte* address, std::size_t size) noexcept;

// Takes the memory of a mapped range now: as for reading, or copies of its own and zeroed pages as for
// writing. Returns 0 or an errno; EINVAL before Linux 5.14.
enum class Touch : std::uint8_t { read, write };
[[nodiscard]] int make_present(std::byte* address, std::size_t size, Touch touch) noexcept;

// Maps what a driver shows of its own at `offset` of `fd`, for reading, outside forks. Empty, with
// errno set, when that fails.
[[nodiscard]] Mapping map_driver_memory(int fd, std::uint64_t offset, std::size_t size) noexcept;

}  // namespace uzram::os
