// Whether a test runs under a sanitizer, whose run-time library stands between it and the system.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UZRAM_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define UZRAM_SANITIZED 1
#endif
#endif
#ifndef UZRAM_SANITIZED
#define UZRAM_SANITIZED 0
#endif

namespace uzram::test {

inline constexpr bool kSanitized = UZRAM_SANITIZED != 0;
// ThreadSanitizer starts a thread of its own in every process.
#ifdef __SANITIZE_THREAD__
inline constexpr bool kHasThreadOfSanitizer = true;
#else
inline constexpr bool kHasThreadOfSanitizer = false;
#endif

}  // namespace uzram::test
