#include "os/memory_file.hpp"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace uzram::os {
namespace {

#ifndef MADV_POPULATE_WRITE
constexpr int MADV_POPULATE_WRITE = 23;  // NOLINT(readability-identifier-naming): the kernel's name
#endif

// Devices hold user data: it belongs neither in core dumps nor in children.
void keep_private(void* address, std::size_t size) noexcept {
  ::madvise(address, size, MADV_DONTDUMP);
  ::madvise(address, size, MADV_DONTFORK);
}

int populate(std::byte* address, std::size_t size) noexcept {
  int failed = 0;
  do {
    failed = ::madvise(address, size, MADV_POPULATE_WRITE) == 0 ? 0 : errno;
  } while (failed == EINTR || failed == EAGAIN);
  return failed;
}

}  // namespace

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

Result<void> MemoryFile::resize(std::uint64_t size) noexcept {
  if (::ftruncate(fd_, static_cast<off_t>(size)) != 0) {
    return system_error("cannot resize a memory file to " + std::to_string(size) + " bytes", errno);
  }
  return {};
}

Result<Mapping> MemoryFile::map(std::uint64_t offset, std::size_t size) const noexcept {
  void* address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd_,
                         static_cast<off_t>(offset));
  if (address == MAP_FAILED) {
    return system_error("cannot map " + std::to_string(size) + " bytes of a memory file", errno);
  }
  keep_private(address, size);
  return Mapping(static_cast<std::byte*>(address), size);
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
  int failed = populate(address, size);
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

std::uint64_t MemoryFile::resident_bytes() const noexcept {
  struct stat status = {};
  if (::fstat(fd_, &status) != 0) {
    return 0;
  }
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

Result<Mapping> reserve_private(std::size_t size) noexcept {
  void* address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    return system_error("cannot reserve " + std::to_string(size) + " bytes", errno);
  }
  keep_private(address, size);
  return Mapping(static_cast<std::byte*>(address), size);
}

Errc take_private_room(std::byte* address, std::size_t size) noexcept {
  const int failed = populate(address, size);
  // Before Linux 5.14 private memory can only be taken by touching it.
  return failed == 0 || failed == EINVAL ? Errc::ok : Errc::no_space;
}

}  // namespace uzram::os
