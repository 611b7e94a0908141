// The example in docs/pagez-format.md still holds: its object is listed as the document lists it.
//
// With UZRAM_UPDATE_DOCS=1 the listing is made anew, which new tables ask for.
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codec/codec.hpp"
#include "support/pagez_reference.hpp"

namespace uzram::codec {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr const char* kDocument = UZRAM_SOURCE_DIR "/docs/pagez-format.md";
const std::string kBegin = "```\nobject\n";
const std::string kEnd = "```\n";

// As the document describes it.
Bytes example_page() {
  Bytes page(4096);
  const std::string text = "for pages\n";
  std::memcpy(page.data(), text.data(), text.size());
  std::memcpy(page.data() + 128, text.data(), text.size());
  for (std::size_t at = 0; at < 4; ++at) {
    const std::uint64_t pointer = 0x00007f5a10002040U + at * 0x60;
    for (std::size_t byte = 0; byte < 8; ++byte) {
      page[64 + at * 8 + byte] = static_cast<std::uint8_t>(pointer >> 8 * byte);
    }
  }
  return page;
}

std::string hex(const Bytes& object, test::PagezPart part) {
  std::string text;
  for (std::uint32_t at = part.begin; at < part.end; ++at) {
    text += fmt::format("{}{:02x}", (at - part.begin) % 16 == 0 ? "\n    " : " ", object[at]);
  }
  return text + "\n";
}

std::string tokens_listed(const test::PagezDecoded& decoded) {
  constexpr std::array<const char*, 7> kSources = {"zero", "repeat", "2", "3", "4", "5", "6"};
  std::string text = "tokens: class, rank, its bits in the ranks, number: what it says\n";
  unsigned rank_bit = 0;
  unsigned offset_bit = 0;
  for (const test::PagezToken& token : decoded.tokens) {
    text += fmt::format("    {:2} {:4}  {:3} to {:3}  {:4}: at {:4} {:2} literals, match of {:4}",
                        token.symbol_class, token.rank, rank_bit, rank_bit + token.rank_bits,
                        token.number, token.begin, token.literals, token.match);
    rank_bit += token.rank_bits;
    text += fmt::format(", source {}", kSources.at(token.source));
    if (token.offset_bits != 0) {
      text += fmt::format(", {} in offset bits {} to {}", token.stored_offset, offset_bit,
                          offset_bit + token.offset_bits);
    }
    offset_bit += token.offset_bits;
    text += token.source == 0 ? "\n" : fmt::format(", offset {}\n", token.offset);
  }
  return text;
}

std::string literals_listed(const test::PagezDecoded& decoded) {
  std::string text = decoded.differences ? "differences" : "literals";
  text += ": class, rank, its bits in the lit-ranks: byte\n";
  unsigned rank_bit = 0;
  for (const test::PagezLiteral& literal : decoded.literals) {
    text += fmt::format("    {:2} {:3}  {:3} to {:3}: {:02x}", literal.symbol_class, literal.rank,
                        rank_bit, rank_bit + literal.rank_bits, literal.symbol);
    rank_bit += literal.rank_bits;
    const bool is_printable = literal.symbol > ' ' && literal.symbol < 0x7f;
    text += is_printable && !decoded.differences
                ? fmt::format(" {}\n", static_cast<char>(literal.symbol))
                : "\n";
  }
  return text;
}

std::string listing(const Bytes& object) {
  const test::PagezDecoded decoded = test::decode_pagez(object, 12);
  const test::PagezHeader& header = decoded.header;
  std::string text = "object" + hex(object, {0, static_cast<std::uint32_t>(object.size())});
  text += "header" + hex(object, {0, header.bytes});
  text += fmt::format("    {} tokens, generation {}, token code {}, literal code {}\n",
                      header.tokens, header.generation, header.token_code, header.literal_code);
  text += "classes" + hex(object, decoded.classes) + "ranks" + hex(object, decoded.ranks);
  text += "offsets" + hex(object, decoded.offsets);
  text += "lit-classes" + hex(object, decoded.literal_classes);
  text += "lit-ranks" + hex(object, decoded.literal_ranks);
  return text + tokens_listed(decoded) + literals_listed(decoded);
}

std::string read_document() {
  std::ifstream in(kDocument);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The object in a listing: the bytes between its first line and the header's.
Bytes object_of(const std::string& listed) {
  const std::size_t begin = listed.find('\n');
  std::istringstream in(listed.substr(begin, listed.find("header") - begin));
  Bytes object;
  for (unsigned byte = 0; in >> std::hex >> byte;) {
    object.push_back(static_cast<std::uint8_t>(byte));
  }
  return object;
}

std::string made_anew() {
  const auto codec = make("pagez", 2, 4096);
  const auto workspace = (*codec)->make_workspace();
  Bytes object(8192);
  const Bytes page = example_page();
  const CompressResult result = (*codec)->compress(**workspace, std::as_bytes(std::span(page)),
                                                   std::as_writable_bytes(std::span(object)));
  object.resize(result.size);
  return listing(object);
}

TEST(PagezExample, in_the_document_holds) {
  std::string document = read_document();
  const std::size_t fence = document.find(kBegin);
  ASSERT_NE(fence, std::string::npos);
  const std::size_t begin = fence + 4;
  const std::size_t end = document.find(kEnd, begin);
  ASSERT_NE(end, std::string::npos);
  if (std::getenv("UZRAM_UPDATE_DOCS") != nullptr) {  // NOLINT(concurrency-mt-unsafe)
    document.replace(begin, end - begin, made_anew());
    std::ofstream(kDocument) << document;
    return;
  }
  const std::string listed = document.substr(begin, end - begin);
  const Bytes object = object_of(listed);
  const test::PagezDecoded decoded = test::decode_pagez(object, 12);
  ASSERT_EQ(decoded.corrupt, "");
  EXPECT_EQ(decoded.page, example_page());
  EXPECT_EQ(listed, listing(object));
}

}  // namespace
}  // namespace uzram::codec
