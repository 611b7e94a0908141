// Compiled with AVX-512 up to VBMI, and BMI2.
#include "codec/pagez/isa_avx512.hpp"
#include "codec/pagez/kernel_parts.hpp"
#include "codec/pagez/unpacker_avx512.hpp"

namespace uzram::codec::pagez {
namespace {

using Parts = KernelParts<Avx512, UnpackerAvx512>;

bool is_usable() noexcept {
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
         __builtin_cpu_supports("avx512vbmi") != 0 && __builtin_cpu_supports("bmi") != 0 &&
         __builtin_cpu_supports("bmi2") != 0;
}

}  // namespace

const Kernel& avx512_kernel() noexcept {
  static constexpr Kernel kKernel = {"avx512", is_usable, Parts::match, Parts::compress,
                                     Parts::decompress};
  return kKernel;
}

}  // namespace uzram::codec::pagez
