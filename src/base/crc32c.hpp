// CRC32C (Castagnoli), as iSCSI, ext4 and fio's verify=crc32c use it: polynomial 0x1EDC6F41,
// reflected, initial value and final exclusive-or all ones (RFC 3720, appendix B.4).
//
// Role: verifies what a bench reads.
// Cost: by instruction where the CPU has one (SSE4.2 or ARMv8's, three streams at a time), else by
// table; the choice is made once.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace uzram {

[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept;

// The same, always by table; for CPUs without the instruction, and for tests.
[[nodiscard]] std::uint32_t crc32c_by_table(std::span<const std::byte> bytes) noexcept;

}  // namespace uzram
