#include "os/memory_file.hpp"

#include <cerrno>
#include <cstdint>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/swap_fitness.hpp"

namespace uzram::os {
namespace {

#ifndef MADV_POPULATE_READ
// NOLINTBEGIN(readability-identifier-naming): the kernel's names
constexpr int MADV_POPULATE_READ = 22;
constexpr int MADV_POPULATE_WRITE = 23;
// NOLINTEND(readability-identifier-naming)
#endif
// MADV_COLLAPSE of linux/mman.h, which Debian 12's C library does not have.
constexpr int kCollapse = 25;

// Devices hold user data: it belongs neither in core dumps nor in children.
Mapping map_privately(int flags, int fd, std::byte* wanted, std::uint64_t offset,
                      std::size_t size) noexcept {
  void* const address =
      ::mmap(wanted, size, PROT_READ | PROT_WRITE, flags, fd, static_cast<off_t>(offset));
  if (address == MAP_FAILED) {
    return {};
  }
  ::madvise(address, size, MADV_DONTDUMP);
  ::madvise(address, size, MADV_DONTFORK);
  return {static_cast<std::byte*>(address), size};
}

}  // namespace

int make_present(std::byte* address, std::size_t size, Touch touch) noexcept {
  const int advice = touch == Touch::write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
  int failed = 0;
  do {
    failed = ::madvise(address, size, advice) == 0 ? 0 : errno;
  } while (failed == EINTR || failed == EAGAIN);
  return failed;
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) {
    ::munmap(data_, size_);
  }
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

MemoryFile& MemoryFile::operator=(MemoryFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

MemoryFile::~MemoryFile() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

Result<MemoryFile> MemoryFile::create(const std::string& name) {
  MemoryFile file;
  file.fd_ = ::memfd_create(name.c_str(), MFD_CLOEXEC);
  if (file.fd_ < 0) {
    return system_error("cannot create the memory file " + name, errno);
  }
  return file;
}

Errc MemoryFile::resize(std::uint64_t size) noexcept {
  rlimit most = {};
  if (::getrlimit(RLIMIT_FSIZE, &most) == 0 && size > most.rlim_cur) {
    errno = EFBIG;
    return Errc::system;
  }
  return ::ftruncate(fd_, static_cast<off_t>(size)) == 0 ? Errc::ok : Errc::system;
}

Mapping MemoryFile::map(std::uint64_t offset, std::size_t size,
                        std::size_t alignment) const noexcept {
  constexpr int kFlags = MAP_SHARED | MAP_NORESERVE;
  if (alignment <= kSystemPage) {
    return map_privately(kFlags, fd_, nullptr, offset, size);
  }
  // Address space enough to hold an aligned range, of which the rest goes again.
  const std::size_t whole = size + alignment;
  void* const found =
      ::mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) {
    return {};
  }
  auto* const begin = static_cast<std::byte*>(found);
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(begin) % alignment;
  Mapping mapping = map_privately(kFlags | MAP_FIXED, fd_, begin + before, offset, size);
  if (mapping.data() == nullptr) {
    const int failed = errno;
    ::munmap(begin, whole);
    errno = failed;
    return mapping;
  }
  if (before != 0) {
    ::munmap(begin, before);
  }
  ::munmap(begin + before + size, alignment - before);
  return mapping;
}

Errc MemoryFile::give_back(std::uint64_t offset, std::uint64_t size) const noexcept {
  int failed = 0;
  do {
    failed = ::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                         static_cast<off_t>(offset), static_cast<off_t>(size)) == 0
                 ? 0
                 : errno;
  } while (failed == EINTR);
  return failed == 0 ? Errc::ok : Errc::system;
}

Errc MemoryFile::take_room(std::byte* address, std::uint64_t offset,
                           std::size_t size) const noexcept {
  int failed = make_present(address, size, Touch::write);
  if (failed == EINVAL) {
    // Before Linux 5.14: the file takes the memory here, the first touch only maps it.
    do {
      failed = ::fallocate(fd_, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                           static_cast<off_t>(size)) == 0
                   ? 0
                   : errno;
    } while (failed == EINTR);
  }
  return failed == 0 ? Errc::ok : Errc::no_space;
}

Errc MemoryFile::take_large_page(std::byte* address) const noexcept {
  // What is left of a large page when part of it goes back is not mapped until it is used again, and
  // what is not mapped is not locked: it could be swapped out, to this very process.
  if (memory_is_locked()) {
    return Errc::unsupported;
  }
  // Of a range that holds nothing the kernel makes no large page.
  if (make_present(address, kSystemPage, Touch::write) != 0) {
    return Errc::unsupported;
  }
  return ::madvise(address, kLargePage, kCollapse) == 0 ? Errc::ok : Errc::unsupported;
}

std::uint64_t MemoryFile::resident_bytes() const noexcept {
  struct stat status = {};
  if (::fstat(fd_, &status) != 0) {
    return 0;
  }
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

Mapping reserve_private(std::size_t size) noexcept {
  return map_privately(MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, nullptr, 0, size);
}

Errc take_private_room(std::byte* address, std::size_t size) noexcept {
  const int failed = make_present(address, size, Touch::write);
  // Before Linux 5.14 private memory can only be taken by touching it.
  return failed == 0 || failed == EINVAL ? Errc::ok : Errc::no_space;
}

Mapping map_driver_memory(int fd, std::uint64_t offset, std::size_t size) noexcept {
  void* const address =
      ::mmap(nullptr, size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, static_cast<off_t>(offset));
  if (address == MAP_FAILED) {
    return {};
  }
  ::madvise(address, size, MADV_DONTFORK);
  return {static_cast<std::byte*>(address), size};
}

}  // namespace uzram::os
