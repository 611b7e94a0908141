// The contract of codec.hpp, for every codec of the registry.
//
// Input: byte 0 chooses the codec, 1 the level, 2 the direction and the page size, 3 and 4 the room
// for the result, the rest is the data. Compressing: the data, repeated to fill a page, must come
// back unchanged whenever it fitted. Decompressing: the data is what the decoder is given; it must
// call it corrupt or fill the page, and work as well afterwards.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "codec/codec.hpp"
#include "fuzz/require.hpp"

namespace {

using uzram::Errc;
using uzram::codec::Codec;
using uzram::codec::CodecInfo;
using uzram::codec::Workspace;
using uzram::fuzz::require;

constexpr std::size_t kHeaderBytes = 5;
constexpr std::byte kCanary{0xc3};

struct Subject {
  std::unique_ptr<Codec> codec;
  std::unique_ptr<Workspace> workspace;
};

// Kept from one input to the next, so that what an input leaves behind meets the following ones.
Subject& subject(const CodecInfo& info, int level, std::uint32_t page_size) {
  static std::map<std::tuple<std::string_view, int, std::uint32_t>, Subject> subjects;
  Subject& it = subjects[{info.name, level, page_size}];
  if (!it.codec) {
    auto codec = uzram::codec::make(info.name, level, page_size);
    require(codec.has_value(), "a level in range makes a codec");
    it.codec = *std::move(codec);
    auto workspace = it.codec->make_workspace();
    require(workspace.has_value(), "a workspace can be made");
    it.workspace = *std::move(workspace);
  }
  return it;
}

// A few levels of each codec: the cost of a workspace bounds how many can be kept.
int choose_level(const CodecInfo& info, std::uint8_t choice) {
  const std::array levels = {info.default_level, info.min_level, info.max_level,
                             std::max(info.min_level, -1)};
  return levels.at(choice % levels.size());
}

// `size` bytes of exactly that allocation, so that AddressSanitizer sees every step outside.
std::unique_ptr<std::byte[]> exact(std::size_t size) {
  std::unique_ptr<std::byte[]> bytes(new std::byte[size]);
  std::fill_n(bytes.get(), size, kCanary);
  return bytes;
}

void check_decompress(Subject& it, std::span<const std::byte> data, std::size_t page_size) {
  const std::unique_ptr<std::byte[]> page = exact(page_size);
  const Errc status = it.codec->decompress(it.workspace.get(), data, {page.get(), page_size});
  require(status == Errc::ok || status == Errc::corrupt, "decompress gives ok or corrupt");
}

void check_compress(Subject& it, std::span<const std::byte> page, std::size_t room) {
  const std::unique_ptr<std::byte[]> dst = exact(room);
  const auto result = it.codec->compress(*it.workspace, page, {dst.get(), room});
  if (result.status == Errc::incompressible) {
    require(room < page.size() * 2 + 1024, "ample room is enough");
    return;
  }
  require(result.status == Errc::ok, "compress gives ok or incompressible");
  require(result.size >= 1 && result.size <= room, "the size is within the room");
  const std::unique_ptr<std::byte[]> packed = exact(result.size);
  std::copy_n(dst.get(), result.size, packed.get());
  const std::unique_ptr<std::byte[]> decoded = exact(page.size());
  const Errc status = it.codec->decompress(it.workspace.get(), {packed.get(), result.size},
                                           {decoded.get(), page.size()});
  require(status == Errc::ok, "what compress made decompresses");
  require(std::equal(page.begin(), page.end(), decoded.get()), "the page comes back unchanged");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(  // NOLINT(readability-identifier-naming)
    const std::uint8_t* input, std::size_t size) {
  if (size <= kHeaderBytes) {
    return 0;
  }
  const auto codecs = uzram::codec::registry();
  const CodecInfo& info = codecs[input[0] % codecs.size()];
  const std::uint32_t page_size = (input[2] & 2) != 0 ? 65536 : 4096;
  Subject& it = subject(info, choose_level(info, input[1]), page_size);
  const std::span<const std::byte> data =
      std::as_bytes(std::span(input, size)).subspan(kHeaderBytes);

  std::vector<std::byte> page(page_size);
  for (std::size_t i = 0; i < page.size(); ++i) {
    page[i] = data[i % data.size()];
  }
  const std::size_t ample = page.size() * 2 + 1024;
  if ((input[2] & 1) != 0) {
    const std::size_t room = 1 + (std::size_t{input[3]} | std::size_t{input[4]} << 8);
    check_compress(it, page, room);
  } else {
    check_decompress(it, data, page_size);
  }
  // Whatever came before, ample room always works.
  check_compress(it, page, ample);
  return 0;
}
