// The client's side of the protocol, for tests: builds what a client sends, takes apart what a
// server answers.
//
// Role: independent of the code under test but for the constants in protocol.hpp.
// Errors: what is not well-formed makes the parsers return nothing.
// Threads: plain functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/nbd/protocol.hpp"

namespace uzram::nbd::wire {

class Bytes {
 public:
  template <std::unsigned_integral T>
  Bytes& add(T value) {
    bytes_.resize(bytes_.size() + sizeof(T));
    store_be(bytes_.data() + bytes_.size() - sizeof(T), value);
    return *this;
  }
  Bytes& add(std::string_view text) {
    for (const char c : text) {
      bytes_.push_back(static_cast<std::byte>(c));
    }
    return *this;
  }
  Bytes& add(std::span<const std::byte> more) {
    bytes_.insert(bytes_.end(), more.begin(), more.end());
    return *this;
  }
  Bytes& add(const Bytes& more) { return add(more.view()); }
  // A 32-bit length and the text.
  Bytes& add_counted(std::string_view text) {
    return add(static_cast<std::uint32_t>(text.size())).add(text);
  }

  [[nodiscard]] std::span<const std::byte> view() const { return bytes_; }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }

 private:
  std::vector<std::byte> bytes_;
};

// Bytes that do not compress, the same for the same seed.
inline std::vector<std::byte> pattern(std::size_t length, std::uint32_t seed) {
  std::vector<std::byte> bytes(length);
  std::uint32_t state = seed * 2654435761U + 1;
  for (std::byte& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(state >> 24U);
  }
  return bytes;
}

inline Bytes client_flags(std::uint32_t flags = kFlagFixedNewstyle | kFlagNoZeroes) {
  return Bytes().add(flags);
}

inline Bytes option(std::uint32_t number, const Bytes& data = {}) {
  return Bytes()
      .add(kOptionMagic)
      .add(number)
      .add(static_cast<std::uint32_t>(data.size()))
      .add(data);
}

inline Bytes option(Option number, const Bytes& data = {}) {
  return option(static_cast<std::uint32_t>(number), data);
}

inline Bytes info_data(std::string_view name, const std::vector<Info>& infos = {}) {
  Bytes data;
  data.add_counted(name).add(static_cast<std::uint16_t>(infos.size()));
  for (const Info info : infos) {
    data.add(static_cast<std::uint16_t>(info));
  }
  return data;
}

inline Bytes context_data(std::string_view name, const std::vector<std::string>& queries) {
  Bytes data;
  data.add_counted(name).add(static_cast<std::uint32_t>(queries.size()));
  for (const std::string& query : queries) {
    data.add_counted(query);
  }
  return data;
}

inline Bytes go(std::string_view name, const std::vector<Info>& infos = {}) {
  return option(Option::go, info_data(name, infos));
}

inline Bytes request(Command command, std::uint64_t cookie, std::uint64_t offset,
                     std::uint32_t length, std::uint16_t flags = 0) {
  return Bytes()
      .add(kRequestMagic)
      .add(flags)
      .add(static_cast<std::uint16_t>(command))
      .add(cookie)
      .add(offset)
      .add(length);
}

inline Bytes write_request(std::uint64_t cookie, std::uint64_t offset,
                           std::span<const std::byte> data, std::uint16_t flags = 0) {
  return request(Command::write, cookie, offset, static_cast<std::uint32_t>(data.size()), flags)
      .add(data);
}

struct OptionAnswer {
  std::uint32_t option = 0;
  OptionReply type = OptionReply::ack;
  std::vector<std::byte> data;

  [[nodiscard]] std::string text() const {
    return {reinterpret_cast<const char*>(data.data()), data.size()};
  }
};

// Takes option replies from the front of `bytes` while there are whole ones.
std::vector<OptionAnswer> take_option_answers(std::span<const std::byte>& bytes);

struct ReplyChunk {
  Chunk type = Chunk::none;
  bool done = false;
  std::vector<std::byte> payload;
};

struct Reply {
  std::uint64_t cookie = 0;
  bool structured = false;
  WireError error = WireError::ok;
  // The data of a READ, holes filled in; structured: relative to the smallest offset replied to.
  std::vector<std::byte> data;
  std::vector<ReplyChunk> chunks;
};

// What is known of the requests that replies belong to.
struct Asked {
  Command command = Command::read;
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
};

// Takes all replies from `bytes`. Empty: something in them is not well-formed, does not belong to a
// request in `asked`, or answers one twice.
std::optional<std::vector<Reply>> take_replies(std::span<const std::byte> bytes,
                                               std::map<std::uint64_t, Asked> asked);

}  // namespace uzram::nbd::wire
