#include "os/proc_text.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include <fcntl.h>
#include <unistd.h>

namespace uzram::os {

Descriptor open_at(int directory, const char* name, int flags) noexcept {
  return Descriptor(::openat(directory, name, flags | O_CLOEXEC));
}

std::optional<std::string_view> read_file(const Descriptor& file, std::span<char> room,
                                          std::size_t offset) noexcept {
  ssize_t got = 0;
  do {
    got = ::pread(file.get(), room.data(), room.size(), static_cast<off_t>(offset));
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    return std::nullopt;
  }
  return std::string_view(room.data(), static_cast<std::size_t>(got));
}

std::optional<std::string> slurp(const std::string& path) {
  const Descriptor file = open_at(AT_FDCWD, path.c_str(), O_RDONLY);
  std::string text;
  std::array<char, 4096> room{};
  while (true) {
    const auto piece = read_file(file, room, text.size());
    if (!piece) {
      return std::nullopt;
    }
    if (piece->empty()) {
      return text;
    }
    text += *piece;
  }
}

std::string_view take_until(std::string_view& text, char separator) noexcept {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view head = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return head;
}

std::optional<std::uint64_t> leading_number(std::string_view text) noexcept {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::uint64_t number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc{}) {
    return std::nullopt;
  }
  return number;
}

}  // namespace uzram::os
