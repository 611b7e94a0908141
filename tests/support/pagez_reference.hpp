// A second decoder of pagez, written from docs/pagez-format.md and nothing else.
//
// Role: the measure of the codec's kernels in tests. It reads bit by bit, checks every place before
// it reads there, and keeps all that it has read, so that an object can be listed.
// Units: bits and bytes as their names say.
// Errors: `corrupt` says which sentence of the document an object breaks.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codec/pagez/recipe.hpp"

namespace uzram::test {

struct PagezHeader {
  unsigned bytes = 0;
  std::uint32_t tokens = 0;
  unsigned generation = 0;
  unsigned token_code = 0;
  unsigned literal_code = 0;
};

struct PagezToken {
  unsigned symbol_class = 0;
  unsigned rank_bits = 0;
  std::uint32_t rank = 0;
  std::uint32_t number = 0;
  // What the number says.
  std::uint32_t literals = 0;
  std::uint32_t match = 0;
  unsigned source = 0;
  // As stored; 0 bits when the source has no offset.
  unsigned offset_bits = 0;
  std::uint32_t stored_offset = 0;
  // Where the token begins in the page, and the offset of its match.
  std::uint32_t begin = 0;
  std::uint32_t offset = 0;
};

struct PagezLiteral {
  unsigned symbol_class = 0;
  unsigned rank_bits = 0;
  std::uint32_t rank = 0;
  // A byte, or a difference.
  std::uint8_t symbol = 0;
};

// A part of an object, in bytes from its start.
struct PagezPart {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

struct PagezDecoded {
  // Empty when the object is sound; otherwise why it is not, and `page` means nothing.
  std::string corrupt;
  std::vector<std::uint8_t> page;

  // What was read of the object, in its order.
  PagezHeader header;
  std::vector<PagezToken> tokens;
  std::vector<PagezLiteral> literals;
  bool plain_literals = false;
  bool differences = false;
  PagezPart classes;
  PagezPart ranks;
  PagezPart offsets;
  PagezPart literal_classes;
  PagezPart literal_ranks;
};

// The page of 2^page_bits bytes that `object` stands for, with the tables of `recipe` as generation
// 0. REQUIRES: page_bits is 12 to 16.
[[nodiscard]] PagezDecoded decode_pagez(
    std::span<const std::uint8_t> object, unsigned page_bits,
    const codec::pagez::Recipe& recipe = codec::pagez::builtin_recipe());

}  // namespace uzram::test
