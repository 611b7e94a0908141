// Kernel: encoder and decoder for one kind of processor.
//
// Role: what differs between processors, behind one table of functions. All kernels make the same
// object of a page and accept the same objects.
// Units: bytes.
// Errors: as codec.hpp.
// Threads: the functions are pure; a workspace is used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "uzram/error.hpp"

#include "codec/pagez/lazy_matcher.hpp"
#include "codec/pagez/matcher.hpp"
#include "codec/pagez/packer.hpp"
#include "codec/pagez/sequences.hpp"
#include "codec/pagez/tables.hpp"

namespace uzram::codec::pagez {

enum class Level : std::uint8_t { fast = 1, normal = 2, high = 3 };

// Working memory of an encoder for pages of one size.
struct EncodeRoom {
  explicit EncodeRoom(std::uint32_t page_bytes)
      : chains(page_bytes), sequences(page_bytes), pack(page_bytes) {}

  alignas(64) HashTable hash_table{};
  HashChains chains;
  Sequences sequences;
  PackRoom pack;
};

struct Kernel {
  std::string_view name;
  bool (*is_usable)() noexcept;
  // The first half of compress: for training.
  void (*match)(Level level, EncodeRoom& room, const std::uint8_t* page,
                unsigned page_bits) noexcept;
  // Returns the size of the object in room.pack.object; 0: it would not be smaller than `limit`.
  std::uint32_t (*compress)(const Tables& tables, std::uint32_t generation, Level level,
                            EncodeRoom& room, const std::uint8_t* page,
                            std::uint32_t limit) noexcept;
  // `room`: a DecodeRoom for pages of that size; nullptr: it is taken on the stack. REQUIRES: for
  // pages larger than 4 KiB a room.
  Errc (*decompress)(const Tables& tables, void* room, const std::uint8_t* object,
                     std::uint32_t size, std::uint8_t* page) noexcept;
};

[[nodiscard]] const Kernel& portable_kernel() noexcept;
#if defined(__x86_64__)
[[nodiscard]] const Kernel& avx2_kernel() noexcept;
[[nodiscard]] const Kernel& avx512_kernel() noexcept;
#endif

// All of this build, the fastest first; not all need be usable.
[[nodiscard]] std::span<const Kernel* const> kernels() noexcept;
// The fastest that this processor can run.
[[nodiscard]] const Kernel& best_kernel() noexcept;

// Bytes of a DecodeRoom for pages of that size.
[[nodiscard]] std::size_t decode_room_bytes(unsigned page_bits) noexcept;

struct DecodeRoomDelete {
  void operator()(void* memory) const noexcept;
};
// Memory for a DecodeRoom, aligned as decoders want it, with any content.
using DecodeRoomMemory = std::unique_ptr<void, DecodeRoomDelete>;
// Errors: bad_alloc.
[[nodiscard]] DecodeRoomMemory make_decode_room(unsigned page_bits);

}  // namespace uzram::codec::pagez
