// pagez: all kernels make the same object of a page, and give the same page for any bytes or refuse
// them all.
//
// Input: byte 0 chooses direction, level and page size, the rest is the data. Compressing: the data,
// repeated to fill a page. Decompressing: the data is the object.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "codec/pagez/kernel.hpp"
#include "fuzz/require.hpp"

namespace {

using uzram::Errc;
using uzram::codec::pagez::best_kernel;
using uzram::codec::pagez::DecodeRoomMemory;
using uzram::codec::pagez::EncodeRoom;
using uzram::codec::pagez::header_bytes;
using uzram::codec::pagez::Kernel;
using uzram::codec::pagez::kernels;
using uzram::codec::pagez::Level;
using uzram::codec::pagez::make_decode_room;
using uzram::codec::pagez::Tables;
using uzram::fuzz::require;

using Bytes = std::vector<std::uint8_t>;

// Kept from one input to the next, so that what an input leaves behind meets the following ones.
struct Subject {
  explicit Subject(unsigned page_bits)
      : bits(page_bits), encode(1U << page_bits), decode(make_decode_room(page_bits)) {
    auto made = Tables::builtin(page_bits);
    require(made.has_value(), "the program's tables are sound");
    tables = *made;
  }

  // Empty: refused.
  Bytes unpacked(const Kernel& kernel, const Bytes& object) {
    const std::unique_ptr<std::uint8_t[]> exact(new std::uint8_t[object.size()]);
    std::copy(object.begin(), object.end(), exact.get());
    Bytes page(std::size_t{1} << bits);
    const Errc status = kernel.decompress(*tables, decode.get(), exact.get(),
                                          static_cast<std::uint32_t>(object.size()), page.data());
    require(status == Errc::ok || status == Errc::corrupt, "decompress gives ok or corrupt");
    return status == Errc::ok ? page : Bytes();
  }
  Bytes packed(const Kernel& kernel, Level level, const Bytes& page) {
    const std::unique_ptr<std::uint8_t[]> exact(new std::uint8_t[page.size()]);
    std::copy(page.begin(), page.end(), exact.get());
    const std::uint32_t size = kernel.compress(*tables, 0, level, encode, exact.get(), 1U << bits);
    return {encode.pack.object.begin(), encode.pack.object.begin() + size};
  }

  const unsigned bits;
  std::shared_ptr<const Tables> tables;
  EncodeRoom encode;
  DecodeRoomMemory decode;
};

void check_decompress(Subject& it, const Bytes& object) {
  const Bytes expected = it.unpacked(*kernels().back(), object);
  for (const Kernel* const kernel : kernels()) {
    if (kernel->is_usable()) {
      require(it.unpacked(*kernel, object) == expected, "all kernels decode the same");
    }
  }
}

void check_compress(Subject& it, Level level, const Bytes& page) {
  const Bytes expected = it.packed(*kernels().back(), level, page);
  for (const Kernel* const kernel : kernels()) {
    if (kernel->is_usable()) {
      require(it.packed(*kernel, level, page) == expected, "all kernels make the same object");
    }
  }
  if (!expected.empty()) {
    require(it.unpacked(best_kernel(), expected) == page, "the page comes back unchanged");
    check_decompress(it, expected);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(  // NOLINT(readability-identifier-naming)
    const std::uint8_t* input, std::size_t size) {
  static Subject small(12);
  static Subject large(16);
  if (size < 2) {
    return 0;
  }
  Subject& it = (input[0] & 2) != 0 ? large : small;
  const Bytes data(input + 1, input + size);
  const std::size_t page_bytes = std::size_t{1} << it.bits;
  if ((input[0] & 1) == 0) {
    if (data.size() > header_bytes(it.bits) && data.size() <= page_bytes) {
      check_decompress(it, data);
    }
    return 0;
  }
  Bytes page(page_bytes);
  for (std::size_t at = 0; at < page.size(); ++at) {
    page[at] = data[at % data.size()];
  }
  check_compress(it, static_cast<Level>(1 + (input[0] >> 2) % 3), page);
  return 0;
}
