#include "unit/nbd/wire.hpp"

#include <algorithm>
#include <cstring>

namespace uzram::nbd::wire {
namespace {

struct ChunkHeader {
  std::uint16_t flags = 0;
  Chunk type = Chunk::none;
  std::uint64_t cookie = 0;
  std::uint32_t length = 0;
};

// Puts a chunk's content into `reply`. False: not well-formed.
bool take_chunk(const ChunkHeader& header, std::span<const std::byte> payload, const Asked& asked,
                Reply& reply) {
  const auto place = [&](std::uint64_t offset, std::uint64_t length) -> std::byte* {
    if (asked.command != Command::read || offset < asked.offset ||
        offset - asked.offset > asked.length || length > asked.length - (offset - asked.offset)) {
      return nullptr;
    }
    reply.data.resize(asked.length);
    return reply.data.data() + (offset - asked.offset);
  };
  switch (header.type) {
    case Chunk::none:
      return payload.empty();
    case Chunk::offset_data: {
      if (payload.size() <= 8) {
        return false;
      }
      std::byte* const to = place(load_be<std::uint64_t>(payload.data()), payload.size() - 8);
      if (to != nullptr) {
        std::memcpy(to, payload.data() + 8, payload.size() - 8);
      }
      return to != nullptr;
    }
    case Chunk::offset_hole: {
      if (payload.size() != 12) {
        return false;
      }
      const auto length = load_be<std::uint32_t>(payload.data() + 8);
      return length != 0 && place(load_be<std::uint64_t>(payload.data()), length) != nullptr;
    }
    case Chunk::block_status:
      return asked.command == Command::block_status && payload.size() >= 12 &&
             (payload.size() - 4) % 8 == 0 &&
             load_be<std::uint32_t>(payload.data()) == kAllocationContextId;
    case Chunk::error:
    case Chunk::error_offset: {
      const std::size_t tail = header.type == Chunk::error ? 0 : 8;
      if (payload.size() < 6 + tail ||
          load_be<std::uint16_t>(payload.data() + 4) != payload.size() - 6 - tail) {
        return false;
      }
      reply.error = static_cast<WireError>(load_be<std::uint32_t>(payload.data()));
      return reply.error != WireError::ok;
    }
  }
  return false;
}

}  // namespace

std::vector<OptionAnswer> take_option_answers(std::span<const std::byte>& bytes) {
  std::vector<OptionAnswer> answers;
  while (bytes.size() >= kOptionReplyHeaderBytes &&
         load_be<std::uint64_t>(bytes.data()) == kOptionReplyMagic) {
    const auto length = load_be<std::uint32_t>(bytes.data() + 16);
    if (bytes.size() - kOptionReplyHeaderBytes < length) {
      break;
    }
    const auto data = bytes.subspan(kOptionReplyHeaderBytes, length);
    answers.push_back(
        OptionAnswer{load_be<std::uint32_t>(bytes.data() + 8),
                     static_cast<OptionReply>(load_be<std::uint32_t>(bytes.data() + 12)),
                     std::vector<std::byte>(data.begin(), data.end())});
    bytes = bytes.subspan(kOptionReplyHeaderBytes + length);
  }
  return answers;
}

std::optional<std::vector<Reply>> take_replies(std::span<const std::byte> bytes,
                                               std::map<std::uint64_t, Asked> asked) {
  std::vector<Reply> replies;
  // A structured reply whose last chunk has not been seen.
  bool open = false;
  while (!bytes.empty()) {
    if (bytes.size() < kSimpleReplyBytes) {
      return std::nullopt;
    }
    const bool structured = load_be<std::uint32_t>(bytes.data()) == kStructuredReplyMagic;
    if (!structured && load_be<std::uint32_t>(bytes.data()) != kSimpleReplyMagic) {
      return std::nullopt;
    }
    const auto cookie = load_be<std::uint64_t>(bytes.data() + 8);
    const auto found = asked.find(cookie);
    if (found == asked.end() || (open && (!structured || replies.back().cookie != cookie))) {
      return std::nullopt;
    }
    if (!open) {
      replies.emplace_back();
      replies.back().cookie = cookie;
      replies.back().structured = structured;
    }
    Reply& reply = replies.back();
    if (!structured) {
      reply.error = static_cast<WireError>(load_be<std::uint32_t>(bytes.data() + 4));
      const bool has_data = found->second.command == Command::read && reply.error == WireError::ok;
      bytes = bytes.subspan(kSimpleReplyBytes);
      const std::size_t length = has_data ? found->second.length : 0;
      if (bytes.size() < length) {
        return std::nullopt;
      }
      reply.data.assign(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
      bytes = bytes.subspan(length);
      asked.erase(found);
      continue;
    }
    if (bytes.size() < kChunkHeaderBytes) {
      return std::nullopt;
    }
    const ChunkHeader header{load_be<std::uint16_t>(bytes.data() + 4),
                             static_cast<Chunk>(load_be<std::uint16_t>(bytes.data() + 6)), cookie,
                             load_be<std::uint32_t>(bytes.data() + 16)};
    bytes = bytes.subspan(kChunkHeaderBytes);
    if (bytes.size() < header.length ||
        !take_chunk(header, bytes.first(header.length), found->second, reply)) {
      return std::nullopt;
    }
    open = (header.flags & kChunkDone) == 0;
    reply.chunks.push_back(
        ReplyChunk{header.type, !open,
                   std::vector<std::byte>(
                       bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(header.length))});
    bytes = bytes.subspan(header.length);
    if (!open) {
      asked.erase(found);
    }
  }
  if (open) {
    return std::nullopt;
  }
  return replies;
}

}  // namespace uzram::nbd::wire
