#include "codec/pagez/isa_portable.hpp"
#include "codec/pagez/kernel_parts.hpp"
#include "codec/pagez/unpacker.hpp"

namespace uzram::codec::pagez {
namespace {

template <typename Room>
using Decoder = Unpacker<Portable, Room>;
using Parts = KernelParts<Portable, Decoder>;

bool is_usable() noexcept { return true; }

}  // namespace

const Kernel& portable_kernel() noexcept {
  static constexpr Kernel kKernel = {"portable", is_usable, Parts::match, Parts::compress,
                                     Parts::decompress};
  return kKernel;
}

}  // namespace uzram::codec::pagez
