#include "codec/pagez/kernel.hpp"

#include <algorithm>
#include <array>
#include <new>

#include "codec/pagez/decode_room.hpp"

namespace uzram::codec::pagez {

std::span<const Kernel* const> kernels() noexcept {
  static const std::array all = {
#if defined(__x86_64__)
    &avx512_kernel(),
    &avx2_kernel(),
#endif
    &portable_kernel()
  };
  return all;
}

const Kernel& best_kernel() noexcept {
  static const Kernel& best = **std::find_if(
      kernels().begin(), kernels().end(), [](const Kernel* kernel) { return kernel->is_usable(); });
  return best;
}

std::size_t decode_room_bytes(unsigned page_bits) noexcept {
  switch (page_bits) {
    case 12:
      return sizeof(DecodeRoom<12>);
    case 13:
      return sizeof(DecodeRoom<13>);
    case 14:
      return sizeof(DecodeRoom<14>);
    case 15:
      return sizeof(DecodeRoom<15>);
    default:
      return sizeof(DecodeRoom<16>);
  }
}

namespace {
constexpr std::align_val_t kRoomAlignment{64};
}

void DecodeRoomDelete::operator()(void* memory) const noexcept {
  ::operator delete(memory, kRoomAlignment);
}

DecodeRoomMemory make_decode_room(unsigned page_bits) {
  return DecodeRoomMemory(::operator new(decode_room_bytes(page_bits), kRoomAlignment));
}

}  // namespace uzram::codec::pagez
