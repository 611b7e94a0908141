#include "frontend/nbd/handshake.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace uzram::nbd {
namespace {

constexpr std::size_t kGreetingBytes = 18;
constexpr std::size_t kClientFlagsBytes = 4;
constexpr std::size_t kExportNameZeroes = 124;

std::byte* store_text(std::byte* to, std::string_view text) noexcept {
  if (!text.empty()) {
    std::memcpy(to, text.data(), text.size());
  }
  return to + text.size();
}

bool chosen_by(std::string_view query, bool listing) noexcept {
  // A bare namespace asks for all of it, but only when listing.
  return query == kAllocationContext || (listing && query == "base:");
}

}  // namespace

// Takes an option's data apart; every take fails once the data has run out.
class Handshake::Reader {
 public:
  explicit Reader(std::span<const std::byte> data) noexcept : rest_(data) {}

  template <std::unsigned_integral T>
  [[nodiscard]] bool take(T& value) noexcept {
    if (rest_.size() < sizeof(T)) {
      return false;
    }
    value = load_be<T>(rest_.data());
    rest_ = rest_.subspan(sizeof(T));
    return true;
  }

  // A 32-bit length and so many bytes. `too_long`: the text is all there but over the limit.
  [[nodiscard]] bool take_text(std::string_view& text, bool& too_long) noexcept {
    std::uint32_t length = 0;
    if (!take(length)) {
      return false;
    }
    too_long = length > kMaxNameBytes;
    if (too_long) {
      return true;
    }
    if (length > rest_.size()) {
      return false;
    }
    // The bytes are text in the protocol's eyes; char may alias anything.
    text = {reinterpret_cast<const char*>(rest_.data()), length};
    rest_ = rest_.subspan(length);
    return true;
  }

  [[nodiscard]] std::span<const std::byte> rest() const noexcept { return rest_; }

 private:
  std::span<const std::byte> rest_;
};

bool Handshake::greet(ByteBuffer& out) noexcept {
  std::byte* at = out.extend(kGreetingBytes);
  if (at == nullptr) {
    return false;
  }
  at = store_be(at, kInitMagic);
  at = store_be(at, kOptionMagic);
  store_be(at, static_cast<std::uint16_t>(kFlagFixedNewstyle | kFlagNoZeroes));
  return true;
}

std::size_t Handshake::step(std::span<const std::byte> input, ByteBuffer& out) noexcept {
  assert(state_ == State::client_flags || state_ == State::options);
  if (state_ == State::client_flags) {
    return take_client_flags(input);
  }
  if (skip_bytes_ != 0) {
    const std::size_t count = std::min(skip_bytes_, input.size());
    skip_bytes_ -= count;
    return count;
  }
  if (input.size() < kOptionHeaderBytes) {
    return 0;
  }
  if (load_be<std::uint64_t>(input.data()) != kOptionMagic) {
    state_ = State::closed;
    return kOptionHeaderBytes;
  }
  const auto option = load_be<std::uint32_t>(input.data() + 8);
  const auto length = load_be<std::uint32_t>(input.data() + 12);
  // Without fixed newstyle there is only EXPORT_NAME, and no way to say no to anything else.
  // EXPORT_NAME itself has no error reply either.
  const bool answerable = fixed_newstyle_ && static_cast<Option>(option) != Option::export_name;
  if (length > kMaxOptionBytes) {
    if (!answerable || length > kMaxSkippedOptionBytes) {
      state_ = State::closed;
    } else {
      skip_bytes_ = length;
      reply_text(option, OptionReply::err_too_big, "option data: expected at most 65536 bytes",
                 out);
    }
    return kOptionHeaderBytes;
  }
  if (!fixed_newstyle_ && static_cast<Option>(option) != Option::export_name) {
    state_ = State::closed;
    return kOptionHeaderBytes;
  }
  if (input.size() - kOptionHeaderBytes < length) {
    return 0;
  }
  take_option(option, input.subspan(kOptionHeaderBytes, length), out);
  return kOptionHeaderBytes + length;
}

std::size_t Handshake::take_client_flags(std::span<const std::byte> input) noexcept {
  if (input.size() < kClientFlagsBytes) {
    return 0;
  }
  constexpr std::uint32_t kKnown = kFlagFixedNewstyle | kFlagNoZeroes;
  const auto flags = load_be<std::uint32_t>(input.data());
  fixed_newstyle_ = (flags & kFlagFixedNewstyle) != 0;
  no_zeroes_ = (flags & kFlagNoZeroes) != 0;
  // The protocol asks to drop a client whose flags mean something unknown.
  state_ = (flags & ~kKnown) == 0 ? State::options : State::closed;
  return kClientFlagsBytes;
}

void Handshake::take_option(std::uint32_t option, std::span<const std::byte> data,
                            ByteBuffer& out) noexcept {
  switch (static_cast<Option>(option)) {
    case Option::export_name:
      export_name(data, out);
      return;
    case Option::abort:
      reply(option, OptionReply::ack, 0, out);
      state_ = State::closed;
      return;
    case Option::list:
      list(data, out);
      return;
    case Option::info:
    case Option::go:
      info_or_go(static_cast<Option>(option), data, out);
      return;
    case Option::structured_reply:
      structured_reply(data, out);
      return;
    case Option::list_meta_context:
    case Option::set_meta_context:
      meta_context(static_cast<Option>(option), data, out);
      return;
    case Option::starttls:
      reply_text(option, OptionReply::err_unsup, "TLS is not offered: continue without", out);
      return;
  }
  reply_text(option, OptionReply::err_unsup, "unknown option", out);
}

void Handshake::export_name(std::span<const std::byte> data, ByteBuffer& out) noexcept {
  // The one option without an error reply: a wrong name ends the connection.
  const std::string_view name(reinterpret_cast<const char*>(data.data()), data.size());
  std::size_t index = default_export_;
  if (!name.empty()) {
    const auto found = std::ranges::find(exports_, name, &ExportInfo::name);
    index = static_cast<std::size_t>(found - exports_.begin());
  }
  const std::size_t zeroes = no_zeroes_ ? 0 : kExportNameZeroes;
  std::byte* at = index == exports_.size() ? nullptr : out.extend(10 + zeroes);
  if (at == nullptr) {
    state_ = State::closed;
    return;
  }
  at = store_be(at, exports_[index].size_bytes);
  at = store_be(at, transmission_flags(exports_[index]));
  std::memset(at, 0, zeroes);
  enter_transmission(index);
}

void Handshake::list(std::span<const std::byte> data, ByteBuffer& out) noexcept {
  constexpr auto kOption = static_cast<std::uint32_t>(Option::list);
  if (!data.empty()) {
    reply_text(kOption, OptionReply::err_invalid, "LIST: expected no data", out);
    return;
  }
  for (const ExportInfo& exported : exports_) {
    std::byte* at = reply(kOption, OptionReply::server,
                          4 + exported.name.size() + exported.description.size(), out);
    if (at == nullptr) {
      return;
    }
    at = store_be(at, static_cast<std::uint32_t>(exported.name.size()));
    at = store_text(at, exported.name);
    store_text(at, exported.description);
  }
  reply(kOption, OptionReply::ack, 0, out);
}

void Handshake::info_or_go(Option option, std::span<const std::byte> data,
                           ByteBuffer& out) noexcept {
  const auto number = static_cast<std::uint32_t>(option);
  Reader reader(data);
  std::string_view name;
  std::uint16_t count = 0;
  bool too_long = false;
  if (!reader.take_text(name, too_long)) {
    reply_text(number, OptionReply::err_invalid, "export name: longer than the option", out);
    return;
  }
  if (too_long) {
    reply_text(number, OptionReply::err_too_big, "export name: expected at most 4096 bytes", out);
    return;
  }
  if (!reader.take(count) || reader.rest().size() != std::size_t{count} * 2) {
    reply_text(number, OptionReply::err_invalid,
               "information requests: expected a count and so many 16-bit numbers", out);
    return;
  }
  std::size_t index = 0;
  if (!find(option, name, index, out)) {
    return;
  }
  send_infos(option, index, reader.rest(), out);
  reply(number, OptionReply::ack, 0, out);
  if (option == Option::go && state_ == State::options) {
    enter_transmission(index);
  }
}

void Handshake::send_infos(Option option, std::size_t index, std::span<const std::byte> requests,
                           ByteBuffer& out) noexcept {
  const auto number = static_cast<std::uint32_t>(option);
  const ExportInfo& exported = exports_[index];
  const auto info = [&](Info type, std::size_t length) {
    std::byte* const at = reply(number, OptionReply::info, 2 + length, out);
    return at == nullptr ? nullptr : store_be(at, static_cast<std::uint16_t>(type));
  };
  if (std::byte* at = info(Info::export_size, 10); at != nullptr) {
    at = store_be(at, exported.size_bytes);
    store_be(at, transmission_flags(exported));
  }
  // Unasked as well: a client that does not ask may still heed it, and unaligned requests fail.
  if (std::byte* at = info(Info::block_size, 12); at != nullptr) {
    at = store_be(at, exported.minimum_block_bytes);
    at = store_be(at, exported.preferred_block_bytes);
    store_be(at, kMaxPayloadBytes);
  }
  bool name_wanted = false;
  bool description_wanted = false;
  for (std::size_t i = 0; i < requests.size(); i += 2) {
    const auto wanted = static_cast<Info>(load_be<std::uint16_t>(requests.data() + i));
    name_wanted = name_wanted || wanted == Info::name;
    description_wanted = description_wanted || wanted == Info::description;
  }
  if (name_wanted) {
    if (std::byte* at = info(Info::name, exported.name.size()); at != nullptr) {
      store_text(at, exported.name);
    }
  }
  if (description_wanted && !exported.description.empty()) {
    if (std::byte* at = info(Info::description, exported.description.size()); at != nullptr) {
      store_text(at, exported.description);
    }
  }
}

void Handshake::structured_reply(std::span<const std::byte> data, ByteBuffer& out) noexcept {
  constexpr auto kOption = static_cast<std::uint32_t>(Option::structured_reply);
  if (!data.empty()) {
    reply_text(kOption, OptionReply::err_invalid, "STRUCTURED_REPLY: expected no data", out);
    return;
  }
  structured_replies_ = true;
  reply(kOption, OptionReply::ack, 0, out);
}

void Handshake::meta_context(Option option, std::span<const std::byte> data,
                             ByteBuffer& out) noexcept {
  const auto number = static_cast<std::uint32_t>(option);
  const bool listing = option == Option::list_meta_context;
  if (!listing) {
    // A new selection replaces the old one, a failed one too.
    context_export_ = kNoExport;
    if (!structured_replies_) {
      reply_text(number, OptionReply::err_invalid,
                 "SET_META_CONTEXT: expected STRUCTURED_REPLY before it", out);
      return;
    }
  }
  Reader reader(data);
  std::string_view name;
  std::uint32_t queries = 0;
  bool too_long = false;
  if (!reader.take_text(name, too_long) || (!too_long && !reader.take(queries))) {
    reply_text(number, OptionReply::err_invalid, "meta context: option data too short", out);
    return;
  }
  // No queries at all asks a listing for everything and selects nothing.
  bool chosen = listing && queries == 0;
  for (std::uint32_t i = 0; i < queries && !too_long; ++i) {
    std::string_view query;
    if (!reader.take_text(query, too_long)) {
      reply_text(number, OptionReply::err_invalid, "meta context: query beyond the option", out);
      return;
    }
    chosen = chosen || (!too_long && chosen_by(query, listing));
  }
  if (too_long) {
    reply_text(number, OptionReply::err_too_big, "meta context: expected at most 4096 bytes", out);
    return;
  }
  if (!reader.rest().empty()) {
    reply_text(number, OptionReply::err_invalid, "meta context: more data than queries", out);
    return;
  }
  std::size_t index = 0;
  if (!find(option, name, index, out)) {
    return;
  }
  if (chosen) {
    constexpr std::string_view kContext = kAllocationContext;
    std::byte* at = reply(number, OptionReply::meta_context, 4 + kContext.size(), out);
    if (at == nullptr) {
      return;
    }
    at = store_be(at, listing ? 0U : kAllocationContextId);
    store_text(at, kContext);
    if (!listing) {
      context_export_ = index;
    }
  }
  reply(number, OptionReply::ack, 0, out);
}

void Handshake::enter_transmission(std::size_t index) noexcept {
  agreement_ = Agreement{index, structured_replies_, context_export_ == index};
  state_ = State::transmission;
}

bool Handshake::find(Option option, std::string_view name, std::size_t& index,
                     ByteBuffer& out) noexcept {
  index = default_export_;
  if (name.empty()) {
    return true;
  }
  const auto found = std::ranges::find(exports_, name, &ExportInfo::name);
  if (found != exports_.end()) {
    index = static_cast<std::size_t>(found - exports_.begin());
    return true;
  }
  reply_text(static_cast<std::uint32_t>(option), OptionReply::err_unknown,
             "no export of that name: LIST tells which there are", out);
  return false;
}

std::uint16_t Handshake::transmission_flags(const ExportInfo& exported) const noexcept {
  std::uint16_t flags = kHasFlags | kSendFlush | kSendFua | kCanMultiConn | kSendCache;
  if (structured_replies_) {
    flags |= kSendDf;
  }
  if (exported.read_only) {
    flags |= kReadOnly;
  } else {
    flags |= kSendTrim | kSendWriteZeroes | kSendFastZero;
  }
  return flags;
}

std::byte* Handshake::reply(std::uint32_t option, OptionReply type, std::size_t length,
                            ByteBuffer& out) noexcept {
  std::byte* at = state_ == State::closed ? nullptr : out.extend(kOptionReplyHeaderBytes + length);
  if (at == nullptr) {
    state_ = State::closed;
    return nullptr;
  }
  at = store_be(at, kOptionReplyMagic);
  at = store_be(at, option);
  at = store_be(at, static_cast<std::uint32_t>(type));
  return store_be(at, static_cast<std::uint32_t>(length));
}

void Handshake::reply_text(std::uint32_t option, OptionReply type, std::string_view text,
                           ByteBuffer& out) noexcept {
  if (std::byte* const at = reply(option, type, text.size(), out); at != nullptr) {
    store_text(at, text);
  }
}

}  // namespace uzram::nbd
