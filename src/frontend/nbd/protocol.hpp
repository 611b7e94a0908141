// The NBD protocol's numbers, and integers in its byte order.
//
// Role: vocabulary of this folder; the names are those of the protocol document without their
// NBD_ prefix.
// Units: bytes; every integer on the wire is big-endian.
// Threads: constants and pure functions.
// Invariant: nothing here knows of sockets or devices.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace uzram::nbd {

// Magic numbers.
inline constexpr std::uint64_t kInitMagic = 0x4e42444d41474943;    // "NBDMAGIC"
inline constexpr std::uint64_t kOptionMagic = 0x49484156454f5054;  // "IHAVEOPT"
inline constexpr std::uint64_t kOptionReplyMagic = 0x0003e889045565a9;
inline constexpr std::uint32_t kRequestMagic = 0x25609513;
inline constexpr std::uint32_t kSimpleReplyMagic = 0x67446698;
inline constexpr std::uint32_t kStructuredReplyMagic = 0x668e33ef;

// Lengths of what is fixed.
inline constexpr std::size_t kOptionHeaderBytes = 16;
inline constexpr std::size_t kOptionReplyHeaderBytes = 20;
inline constexpr std::size_t kRequestHeaderBytes = 28;
inline constexpr std::size_t kSimpleReplyBytes = 16;
inline constexpr std::size_t kChunkHeaderBytes = 20;

// Limits of this server.
inline constexpr std::uint32_t kMaxNameBytes = 4096;               // as the protocol recommends
inline constexpr std::uint32_t kMaxPayloadBytes = 32U << 20;       // READ and WRITE
inline constexpr std::uint32_t kMaxOptionBytes = 64U << 10;        // gathered and looked at
inline constexpr std::uint32_t kMaxSkippedOptionBytes = 1U << 20;  // read past; more ends it
inline constexpr std::uint32_t kMaxStatusDescriptors = 1024;       // of one BLOCK_STATUS reply
inline constexpr std::uint32_t kMaxReadChunks = 64;                // of one structured READ reply

// Handshake flags of the server; the client answers with the same bits, 32 wide.
inline constexpr std::uint16_t kFlagFixedNewstyle = 1U << 0;
inline constexpr std::uint16_t kFlagNoZeroes = 1U << 1;

enum class Option : std::uint32_t {
  export_name = 1,
  abort = 2,
  list = 3,
  starttls = 5,
  info = 6,
  go = 7,
  structured_reply = 8,
  list_meta_context = 9,
  set_meta_context = 10,
};

enum class OptionReply : std::uint32_t {
  ack = 1,
  server = 2,
  info = 3,
  meta_context = 4,
  err_unsup = (1U << 31) + 1,
  err_invalid = (1U << 31) + 3,
  err_unknown = (1U << 31) + 6,
  err_too_big = (1U << 31) + 9,
};

enum class Info : std::uint16_t {
  export_size = 0,
  name = 1,
  description = 2,
  block_size = 3,
};

// Transmission flags: what an export can do.
inline constexpr std::uint16_t kHasFlags = 1U << 0;
inline constexpr std::uint16_t kReadOnly = 1U << 1;
inline constexpr std::uint16_t kSendFlush = 1U << 2;
inline constexpr std::uint16_t kSendFua = 1U << 3;
inline constexpr std::uint16_t kSendTrim = 1U << 5;
inline constexpr std::uint16_t kSendWriteZeroes = 1U << 6;
inline constexpr std::uint16_t kSendDf = 1U << 7;
inline constexpr std::uint16_t kCanMultiConn = 1U << 8;
inline constexpr std::uint16_t kSendCache = 1U << 10;
inline constexpr std::uint16_t kSendFastZero = 1U << 11;

enum class Command : std::uint16_t {
  read = 0,
  write = 1,
  disc = 2,
  flush = 3,
  trim = 4,
  cache = 5,
  write_zeroes = 6,
  block_status = 7,
};

inline constexpr std::uint16_t kCommandFua = 1U << 0;
inline constexpr std::uint16_t kCommandNoHole = 1U << 1;
inline constexpr std::uint16_t kCommandDf = 1U << 2;
inline constexpr std::uint16_t kCommandReqOne = 1U << 3;
inline constexpr std::uint16_t kCommandFastZero = 1U << 4;

enum class Chunk : std::uint16_t {
  none = 0,
  offset_data = 1,
  offset_hole = 2,
  block_status = 5,
  error = (1U << 15) + 1,
  error_offset = (1U << 15) + 2,
};

inline constexpr std::uint16_t kChunkDone = 1U << 0;

// base:allocation, the one metadata context.
inline constexpr std::uint32_t kAllocationContextId = 1;
inline constexpr char kAllocationContext[] = "base:allocation";
inline constexpr std::uint32_t kStateHole = 1U << 0;
inline constexpr std::uint32_t kStateZero = 1U << 1;

enum class WireError : std::uint32_t {
  ok = 0,
  eperm = 1,
  eio = 5,
  enomem = 12,
  einval = 22,
  enospc = 28,
  enotsup = 95,
};

namespace detail {
constexpr std::uint16_t swap(std::uint16_t value) noexcept { return __builtin_bswap16(value); }
constexpr std::uint32_t swap(std::uint32_t value) noexcept { return __builtin_bswap32(value); }
constexpr std::uint64_t swap(std::uint64_t value) noexcept { return __builtin_bswap64(value); }
}  // namespace detail

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "byte order on the wire is big-endian");

// REQUIRES: sizeof(T) bytes at `from`, of any alignment.
template <std::unsigned_integral T>
[[nodiscard]] inline T load_be(const std::byte* from) noexcept {
  T value{};
  std::memcpy(&value, from, sizeof value);
  return detail::swap(value);
}

// Writes `value` and returns the place after it. REQUIRES: sizeof(T) bytes of room at `to`.
template <std::unsigned_integral T>
inline std::byte* store_be(std::byte* to, T value) noexcept {
  const T wire = detail::swap(value);
  std::memcpy(to, &wire, sizeof wire);
  return to + sizeof wire;
}

}  // namespace uzram::nbd
