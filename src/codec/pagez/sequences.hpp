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

  // Where the next elements go. A matcher has it in registers, and hands it back by finish.
  struct Cursor {
    TokenId* token;
    OffsetField* offset;
    std::uint8_t* literal;
    // From a literal to its difference.
    std::ptrdiff_t to_difference;
  };
  [[nodiscard]] Cursor begin() noexcept {
    return {tokens_.data(), offsets_.data(), literals_.data(),
            differences_.data() - literals_.data()};
  }
  // `has_differences`: they have been written for all literals.
  void finish(const Cursor& cursor, bool has_differences) noexcept {
    has_differences_ = has_differences;
    token_count_ = static_cast<std::uint32_t>(cursor.token - tokens_.data());
    offset_count_ = static_cast<std::uint32_t>(cursor.offset - offsets_.data());
    literal_count_ = static_cast<std::uint32_t>(cursor.literal - literals_.data());
  }

  [[nodiscard]] const TokenId* tokens() const noexcept { return tokens_.data(); }
  [[nodiscard]] std::uint32_t token_count() const noexcept { return token_count_; }
  [[nodiscard]] const OffsetField* offsets() const noexcept { return offsets_.data(); }
  [[nodiscard]] std::uint32_t offset_count() const noexcept { return offset_count_; }
  [[nodiscard]] const std::uint8_t* literals() const noexcept { return literals_.data(); }
  [[nodiscard]] bool has_differences() const noexcept { return has_differences_; }
  // Each literal minus the byte that lies the last offset before it.
  [[nodiscard]] const std::uint8_t* differences() const noexcept { return differences_.data(); }
  [[nodiscard]] std::uint32_t literal_count() const noexcept { return literal_count_; }

 private:
  std::vector<TokenId> tokens_;
  std::vector<OffsetField> offsets_;
  std::vector<std::uint8_t> literals_;
  std::vector<std::uint8_t> differences_;
  bool has_differences_ = false;
  std::uint32_t token_count_ = 0;
  std::uint32_t offset_count_ = 0;
  std::uint32_t literal_count_ = 0;
};

}  // namespace uzram::codec::pagez
