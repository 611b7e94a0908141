#include "support/guarded_buffer.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

#include "base/size.hpp"

namespace uzram::test {
namespace {

constexpr int kPattern = 0xa5;

void require(bool good, const char* what) {
  if (!good) {
    std::perror(what);
    std::abort();
  }
}

}  // namespace

GuardedBuffer::GuardedBuffer(std::size_t size_bytes, Guard guard) {
  const auto system_page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t inside = round_up(std::max<std::size_t>(size_bytes, 1), system_page);
  const std::size_t length = inside + 2 * system_page;
  void* const mapped =
      mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require(mapped != MAP_FAILED, "GuardedBuffer: mmap");
  mapping_ = {static_cast<std::byte*>(mapped), length};
  inside_ = mapping_.subspan(system_page, inside);
  require(mprotect(inside_.data(), inside_.size(), PROT_READ | PROT_WRITE) == 0,
          "GuardedBuffer: mprotect");
  std::memset(inside_.data(), kPattern, inside_.size());
  bytes_ = guard == Guard::before ? inside_.first(size_bytes) : inside_.last(size_bytes);
  if (size_bytes != 0) {
    std::memset(bytes_.data(), 0, size_bytes);
  }
}

GuardedBuffer::GuardedBuffer(std::span<const std::byte> content, Guard guard)
    : GuardedBuffer(content.size(), guard) {
  if (!content.empty()) {
    std::memcpy(bytes_.data(), content.data(), content.size());
  }
}

GuardedBuffer::~GuardedBuffer() { munmap(mapping_.data(), mapping_.size()); }

bool GuardedBuffer::is_slack_intact() const noexcept {
  const auto intact = [](std::byte byte) { return byte == std::byte{kPattern}; };
  const auto before = static_cast<std::size_t>(bytes_.data() - inside_.data());
  return std::ranges::all_of(inside_.first(before), intact) &&
         std::ranges::all_of(inside_.subspan(before + bytes_.size()), intact);
}

}  // namespace uzram::test
