// Sequences: a page as tokens, offsets and literals, before they are coded.
//
// Role: what the matcher writes and the packer reads; also what training counts.
// Ownership: of one workspace, reused for each page; all memory is taken at creation.
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/pagez/format.hpp"

namespace uzram::codec::pagez {

// One offset as it is written: its bits and as many ones.
struct OffsetField {
  std::uint16_t bits;
  std::uint16_t mask;
};

class Sequences {
 public:
  // What vector code may write or read beyond the end of an array.
  static constexpr std::size_t kSlack = 64;

  explicit Sequences(std::uint32_t page_bytes)
      : tokens_(page_bytes / 2 + kSlack),
        offsets_(page_bytes / 2 + kSlack),
        literals_(page_bytes + kSlack),
        differences_(page_bytes + kSlack) {}

  // Positions of the next element; the matcher moves them.
  TokenId* next_token = nullptr;
  OffsetField* next_offset = nullptr;
  // The same place in differences.
  std::uint8_t* next_literal = nullptr;

  void clear() noexcept {
    next_token = tokens_.data();
    next_offset = offsets_.data();
    next_literal = literals_.data();
  }

  [[nodiscard]] const TokenId* tokens() const noexcept { return tokens_.data(); }
  [[nodiscard]] std::uint32_t token_count() const noexcept {
    return static_cast<std::uint32_t>(next_token - tokens_.data());
  }
  [[nodiscard]] const OffsetField* offsets() const noexcept { return offsets_.data(); }
  [[nodiscard]] std::uint32_t offset_count() const noexcept {
    return static_cast<std::uint32_t>(next_offset - offsets_.data());
  }
  [[nodiscard]] const std::uint8_t* literals() const noexcept { return literals_.data(); }
  // Each literal minus the byte that lies the last offset before it.
  [[nodiscard]] const std::uint8_t* differences() const noexcept { return differences_.data(); }
  [[nodiscard]] std::uint32_t literal_count() const noexcept {
    return static_cast<std::uint32_t>(next_literal - literals_.data());
  }
  [[nodiscard]] std::uint8_t* difference_of(const std::uint8_t* literal) noexcept {
    return differences_.data() + (literal - literals_.data());
  }

 private:
  std::vector<TokenId> tokens_;
  std::vector<OffsetField> offsets_;
  std::vector<std::uint8_t> literals_;
  std::vector<std::uint8_t> differences_;
};

}  // namespace uzram::codec::pagez
