// Compiled with AVX2 and BMI2.
#include "codec/pagez/isa_avx2.hpp"
#include "codec/pagez/kernel_parts.hpp"
#include "codec/pagez/unpacker.hpp"

namespace uzram::codec::pagez {
namespace {

template <typename Room>
using Decoder = Unpacker<Avx2, Room>;
using Parts = KernelParts<Avx2, Decoder>;

bool is_usable() noexcept {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi") != 0 &&
         __builtin_cpu_supports("bmi2") != 0;
}

}  // namespace

const Kernel& avx2_kernel() noexcept {
  static constexpr Kernel kKernel = {"avx2", is_usable, Parts::match, Parts::compress,
                                     Parts::decompress};
  return kKernel;
}

}  // namespace uzram::codec::pagez
