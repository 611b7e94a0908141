// KernelParts: the functions of a Kernel from an Isa and its decoder.
//
// Role: included by the kernel_*.cpp, each of which is compiled for its instructions.
#pragma once

#include <new>

#include "codec/pagez/decode_room.hpp"
#include "codec/pagez/kernel.hpp"

namespace uzram::codec::pagez {

template <typename Isa, template <typename Room> typename Decoder>
struct KernelParts {
  static void match(Level level, EncodeRoom& room, const std::uint8_t* page,
                    unsigned page_bits) noexcept {
    switch (level) {
      case Level::fast:
        Matcher<Isa, FastSearch>(room.hash_table, page, page_bits, room.sequences).run();
        break;
      case Level::normal:
        Matcher<Isa, NormalSearch>(room.hash_table, page, page_bits, room.sequences).run();
        break;
      case Level::high:
        LazyMatcher<Isa>(room.chains, page, page_bits, room.sequences).run();
        break;
    }
  }

  static std::uint32_t compress(const Tables& tables, std::uint32_t generation, Level level,
                                EncodeRoom& room, const std::uint8_t* page,
                                std::uint32_t limit) noexcept {
    match(level, room, page, tables.page_bits());
    return Packer<Isa>(tables, generation, room.pack, room.sequences).pack(limit);
  }

  static Errc decompress(const Tables& tables, void* room, const std::uint8_t* object,
                         std::uint32_t size, std::uint8_t* page) noexcept {
    switch (tables.page_bits()) {
      case 12:
        if (room == nullptr) {
          return decompress_on_stack(tables, object, size, page);
        }
        return decompress_in<12>(tables, room, object, size, page);
      case 13:
        return decompress_in<13>(tables, room, object, size, page);
      case 14:
        return decompress_in<14>(tables, room, object, size, page);
      case 15:
        return decompress_in<15>(tables, room, object, size, page);
      default:
        return decompress_in<16>(tables, room, object, size, page);
    }
  }

 private:
  template <unsigned kPageBits>
  static Errc decompress_in(const Tables& tables, void* memory, const std::uint8_t* object,
                            std::uint32_t size, std::uint8_t* page) noexcept {
    using Room = DecodeRoom<kPageBits>;
    return Decoder<Room>(tables, *static_cast<Room*>(memory))
        .unpack(object, size, page, 1U << kPageBits);
  }
  static Errc decompress_on_stack(const Tables& tables, const std::uint8_t* object,
                                  std::uint32_t size, std::uint8_t* page) noexcept {
    DecodeRoom<12> room;
    return decompress_in<12>(tables, &room, object, size, page);
  }
};

}  // namespace uzram::codec::pagez
