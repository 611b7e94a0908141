// Loads and stores of words at any address.
#pragma once

#include <cstdint>
#include <cstring>

namespace uzram::codec::pagez {

template <typename Word>
[[nodiscard]] inline Word load(const void* from) noexcept {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}
template <typename Word>
inline void store(void* to, Word word) noexcept {
  std::memcpy(to, &word, sizeof word);
}

}  // namespace uzram::codec::pagez
