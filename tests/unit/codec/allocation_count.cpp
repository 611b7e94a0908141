#include "allocation_count.hpp"

#include <cerrno>
#include <cstdlib>

#include "support/sanitizer.hpp"

namespace {
thread_local std::size_t allocations = 0;
}  // namespace

namespace uzram::test {
std::size_t allocation_count() noexcept { return allocations; }
}  // namespace uzram::test

#if UZRAM_SANITIZED

// The sanitizer owns malloc and calls these around it when they are defined.
extern "C" void __sanitizer_malloc_hook(const volatile void* /*block*/, std::size_t /*size*/) {
  ++allocations;
}
extern "C" void __sanitizer_free_hook(const volatile void* /*block*/) {}

#else

extern "C" {

// glibc's own names for what the functions below replace.
// NOLINTBEGIN(readability-identifier-naming)
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* block, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
// NOLINTEND(readability-identifier-naming)

void* malloc(std::size_t size) noexcept {
  ++allocations;
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) noexcept {
  ++allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* block, std::size_t size) noexcept {
  ++allocations;
  return __libc_realloc(block, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  ++allocations;
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** block, std::size_t alignment, std::size_t size) noexcept {
  ++allocations;
  *block = __libc_memalign(alignment, size);
  return *block == nullptr ? ENOMEM : 0;
}

}  // extern "C"

#endif
