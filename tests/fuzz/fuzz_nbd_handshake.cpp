// Whatever a client sends, the handshake stays within its input, says only well-formed things, and
// agrees on an export that exists.
//
// Input: what a client sends after the greeting. The first byte picks how it is cut into pieces.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "frontend/nbd/handshake.hpp"
#include "frontend/nbd/protocol.hpp"
#include "unit/nbd/wire.hpp"

namespace {

using uzram::nbd::ByteBuffer;
using uzram::nbd::ExportInfo;
using uzram::nbd::Handshake;

void require(bool held) {
  if (!held) {
    std::abort();
  }
}

const std::vector<ExportInfo>& exports() {
  static const std::vector<ExportInfo> list = {
      {"disk", "the first", std::uint64_t{1} << 40, 4096, 4096, false},
      {"fine", "", 8192, 512, 4096, true},
      {std::string(4096, 'n'), std::string(4096, 'd'), 4096, 4096, 4096, false}};
  return list;
}

// Feeds everything, `piece` more bytes at a time, each step from memory of exactly its size.
void converse(Handshake& handshake, std::span<const std::byte> input, std::size_t piece,
              ByteBuffer& out) {
  std::size_t begin = 0;
  std::size_t end = 0;
  while (handshake.state() <= Handshake::State::options) {
    const std::size_t count = end - begin;
    const std::unique_ptr<std::byte[]> exact(new std::byte[count]);
    std::copy_n(input.begin() + static_cast<std::ptrdiff_t>(begin), count, exact.get());
    const std::size_t used = handshake.step({exact.get(), count}, out);
    require(used <= count);
    begin += used;
    if (used == 0) {
      if (end == input.size()) {
        return;
      }
      end = std::min(end + piece, input.size());
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(  // NOLINT(readability-identifier-naming)
    const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const auto input = std::as_bytes(std::span(data, size)).subspan(1);
  const std::size_t piece = data[0] < 8 ? std::size_t{1} + data[0] : std::size_t{data[0]} * 64;
  Handshake handshake(exports(), 0);
  ByteBuffer out;
  converse(handshake, input, piece, out);

  // Cutting the stream differently changes nothing.
  Handshake whole(exports(), 0);
  ByteBuffer out_whole;
  converse(whole, input, std::max(input.size(), std::size_t{1}), out_whole);
  require(whole.state() == handshake.state());
  require(std::ranges::equal(out.bytes(), out_whole.bytes()));

  std::span<const std::byte> rest = out.bytes();
  const auto answers = uzram::nbd::wire::take_option_answers(rest);
  for (const auto& answer : answers) {
    require(answer.data.size() <= 3 * uzram::nbd::kMaxNameBytes);
  }
  if (handshake.state() == Handshake::State::transmission) {
    require(handshake.agreement().export_index < exports().size());
    require(handshake.agreement().structured_replies || !handshake.agreement().allocation_context);
    // Nothing more, or the answer to EXPORT_NAME, which has no header.
    require(rest.empty() || rest.size() == 10 || rest.size() == 134);
  } else {
    require(rest.empty());
  }
  return 0;
}
