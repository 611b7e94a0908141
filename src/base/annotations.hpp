// The project's macros: clang's thread-safety attributes, empty elsewhere.
#pragma once

#if defined(__clang__)
#define UZRAM_ATTRIBUTE(x) __attribute__((x))
#else
#define UZRAM_ATTRIBUTE(x)
#endif

#define UZRAM_CAPABILITY(x) UZRAM_ATTRIBUTE(capability(x))
#define UZRAM_SCOPED_CAPABILITY UZRAM_ATTRIBUTE(scoped_lockable)
#define UZRAM_GUARDED_BY(x) UZRAM_ATTRIBUTE(guarded_by(x))
#define UZRAM_REQUIRES(...) UZRAM_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define UZRAM_ACQUIRE(...) UZRAM_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define UZRAM_RELEASE(...) UZRAM_ATTRIBUTE(release_capability(__VA_ARGS__))
