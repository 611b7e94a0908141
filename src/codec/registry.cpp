#include <array>

#include "base/option_value.hpp"
#include "codec/codec.hpp"
#include "codec/codecs.hpp"

namespace uzram::codec {
namespace {

template <typename Wanted>
std::string names_of(Wanted wanted) {
  std::string all;
  for (const CodecInfo& info : registry()) {
    if (wanted(info)) {
      all += all.empty() ? "" : ", ";
      all += info.name;
    }
  }
  return all;
}

}  // namespace

std::span<const CodecInfo> registry() noexcept {
  static const std::array codecs = {
      lz4_info(),     lz4hc_info(), zstd_info(), pagez_info(),
#ifdef UZRAM_HAVE_LZO
      lzo_info(),
#endif
      deflate_info(),
  };
  return codecs;
}

const CodecInfo* find(std::string_view name) noexcept {
  for (const CodecInfo& info : registry()) {
    if (info.name == name) {
      return &info;
    }
  }
  return nullptr;
}

std::string names() {
  return names_of([](const CodecInfo&) { return true; });
}

std::string trainable_names() {
  return names_of([](const CodecInfo& info) { return info.trainable; });
}

std::optional<int> level_from(const CodecInfo& info, std::string_view text) noexcept {
  int level = info.min_level;
  for (const std::string_view name : info.level_names) {
    if (text == name) {
      return level;
    }
    ++level;
  }
  return take_number(text, level) ? std::optional(level) : std::nullopt;
}

std::string level_forms(const CodecInfo& info) {
  std::string forms;
  for (const std::string_view name : info.level_names) {
    forms += std::string(name) + (name == info.level_names.back() ? " or " : ", ");
  }
  return forms + "a whole number";
}

Result<std::unique_ptr<Codec>> make(std::string_view name, std::optional<int> level,
                                    std::uint32_t page_size_bytes) {
  const CodecInfo* const info = find(name);
  if (info == nullptr) {
    return Error{Errc::invalid_argument, 0,
                 "algorithm \"" + std::string(name) + "\": expected one of " + names()};
  }
  const int chosen = level.value_or(info->default_level);
  if (chosen < info->min_level || chosen > info->max_level) {
    return Error{Errc::invalid_argument, 0,
                 "level " + std::to_string(chosen) + ": expected " +
                     std::to_string(info->min_level) + " to " + std::to_string(info->max_level) +
                     " for " + std::string(name) + " (" + std::string(info->level_meaning) + ")"};
  }
  return info->make(chosen, page_size_bytes);
}

}  // namespace uzram::codec
