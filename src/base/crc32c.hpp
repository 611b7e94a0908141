// CRC32C (Castagnoli), as iSCSI, ext4 and fio's verify=crc32c use it: polynomial 0x1EDC6F41,
// reflected, initial value and final exclusive-or all ones (RFC 3720, appendix B.4).
//
// Role: the checksums of what devices store; verifies what a bench reads.
// Cost: by instruction where the CPU has one, else by table; the choice is made once. x86-64 (SSE4.2 and
// PCLMULQDQ): three streams at a time for any length from 24 bytes on. arm64: for a page.
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
