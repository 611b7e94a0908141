#include "frontend/nbd/transmission.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "frontend/nbd/extent_runs.hpp"
#include "frontend/nbd/wire_error.hpp"

namespace uzram::nbd {
namespace {

constexpr std::size_t kDataChunkBytes = kChunkHeaderBytes + 8;  // and the data
constexpr std::size_t kHoleChunkBytes = kChunkHeaderBytes + 12;
constexpr std::size_t kErrorChunkBytes = kChunkHeaderBytes + 6;  // and the text
constexpr std::size_t kErrorOffsetBytes = kErrorChunkBytes + 8;
// The longest text of a refusal, and then some.
constexpr std::size_t kRefusalBytes = kErrorChunkBytes + 128;

std::byte* store_chunk(std::byte* to, Chunk type, std::uint16_t flags, std::uint64_t cookie,
                       std::size_t length) noexcept {
  to = store_be(to, kStructuredReplyMagic);
  to = store_be(to, flags);
  to = store_be(to, static_cast<std::uint16_t>(type));
  to = store_be(to, cookie);
  return store_be(to, static_cast<std::uint32_t>(length));
}

std::byte* store_simple(std::byte* to, WireError error, std::uint64_t cookie) noexcept {
  to = store_be(to, kSimpleReplyMagic);
  to = store_be(to, static_cast<std::uint32_t>(error));
  return store_be(to, cookie);
}

std::uint32_t state_flags(ExtentState state) noexcept {
  switch (state) {
    case ExtentState::hole:
      return kStateHole | kStateZero;
    case ExtentState::zero:
      return kStateZero;
    case ExtentState::data:
      return 0;
  }
  return 0;
}

bool changes_data(Command command) noexcept {
  return command == Command::write || command == Command::trim || command == Command::write_zeroes;
}

}  // namespace

Transmission::End Transmission::parse(Intake& in, ByteBuffer& out, std::size_t room, bool alone,
                                      std::uint64_t user_data,
                                      std::vector<Request*>& batch) noexcept {
  assert(out.empty() && count_ == 0 && outstanding_ == 0);
  const End end = parse_requests(in, out, room, alone);
  // Only now do replies stay where they are.
  for (std::size_t i = 0; i < count_; ++i) {
    Request& request = requests_[i];
    const Piece& piece = pieces_[i];
    if (request.op == Op::read) {
      request.buffer = out.data() + piece.begin +
                       (piece.shape == Shape::data_chunk ? kDataChunkBytes : kSimpleReplyBytes);
    }
    request.user_data = user_data;
    batch.push_back(&request);
  }
  outstanding_ = count_;
  for (Long& each : long_) {
    if (each.state == Long::State::parsed) {
      each.state = Long::State::submitted;
      each.request.user_data = user_data;
      batch.push_back(&each.request);
    }
  }
  return end;
}

Transmission::End Transmission::parse_requests(Intake& in, ByteBuffer& out, std::size_t room,
                                               bool alone) noexcept {
  while (true) {
    if (dropping_ || gathering_) {
      if (const std::optional<End> end = resume(in, out); end) {
        return *end;
      }
      continue;
    }
    const std::span<std::byte> available = in.available();
    if (available.size() < kRequestHeaderBytes) {
      return End::starved;
    }
    if (load_be<std::uint32_t>(available.data()) != kRequestMagic) {
      return End::broken;
    }
    const Header header = decode(available.data());
    const bool first = alone && out.empty();
    if (count_ + kMaxReadChunks > kMaxRequests ||
        (!first && out.size() + reply_bound(header) > room)) {
      return End::full;
    }
    if (header.command == Command::disc) {
      in.consume(kRequestHeaderBytes);
      return End::disconnected;
    }
    if (header.command == Command::write) {
      if (const std::optional<End> end = take_write(header, in, out); end) {
        return *end;
      }
      continue;
    }
    in.consume(kRequestHeaderBytes);
    if (!carry_out(header, out)) {
      return End::no_memory;
    }
  }
}

std::optional<Transmission::End> Transmission::take_write(const Header& header, Intake& in,
                                                          ByteBuffer& out) noexcept {
  const std::span<std::byte> available = in.available();
  const std::size_t length = header.length;
  if (length > kMaxPayloadBytes) {
    // Up to 4 GiB would have to be read past; the protocol lets a server hang up instead.
    return End::broken;
  }
  if (const Refusal refusal = check(header); refusal.error != WireError::ok) {
    drop_payload(header, refusal, in);
    return std::nullopt;
  }
  if (available.size() - kRequestHeaderBytes >= length) {
    in.consume(kRequestHeaderBytes + length);
    return plain_request(header, Op::write, available.data() + kRequestHeaderBytes, out)
               ? std::nullopt
               : std::optional(End::no_memory);
  }
  if (length <= Intake::kInPlaceBytes) {
    return End::starved;
  }
  if (in.payload_kept()) {
    // This batch writes from it.
    return End::full;
  }
  if (!in.begin_payload(kRequestHeaderBytes, length)) {
    drop_payload(header, Refusal{WireError::enomem, "no memory for the payload"}, in);
    return std::nullopt;
  }
  gathering_ = true;
  pending_ = header;
  return std::nullopt;
}

void Transmission::drop_payload(const Header& header, Refusal refusal, Intake& in) noexcept {
  in.consume(kRequestHeaderBytes);
  in.skip(header.length);
  dropping_ = true;
  pending_ = header;
  refusal_ = refusal;
}

std::optional<Transmission::End> Transmission::resume(Intake& in, ByteBuffer& out) noexcept {
  if (dropping_ ? in.skipping() : !in.payload_complete()) {
    return End::starved;
  }
  const bool laid = dropping_ ? refuse(pending_, refusal_, out)
                              : plain_request(pending_, Op::write, in.payload().data(), out);
  dropping_ = false;
  gathering_ = false;
  return laid ? std::nullopt : std::optional(End::no_memory);
}

Transmission::Header Transmission::decode(const std::byte* from) noexcept {
  return Header{.flags = load_be<std::uint16_t>(from + 4),
                .command = static_cast<Command>(load_be<std::uint16_t>(from + 6)),
                .cookie = load_be<std::uint64_t>(from + 8),
                .offset = load_be<std::uint64_t>(from + 16),
                .length = load_be<std::uint32_t>(from + 24)};
}

Transmission::Refusal Transmission::check(const Header& header) const noexcept {
  if (const Refusal refusal = check_flags(header); refusal.error != WireError::ok) {
    return refusal;
  }
  if (parameters_.read_only && changes_data(header.command)) {
    return Refusal{WireError::eperm, "the export is read-only"};
  }
  if (header.command == Command::flush) {
    return Refusal{};
  }
  if (header.command == Command::block_status && !parameters_.allocation_context) {
    return Refusal{WireError::einval, "BLOCK_STATUS: expected SET_META_CONTEXT before it"};
  }
  const Refusal refusal = check_range(header);
  if (refusal.error != WireError::ok) {
    parameters_.device->count_invalid_io();
  }
  return refusal;
}

Transmission::Refusal Transmission::check_flags(const Header& header) const noexcept {
  // Some clients set FUA on whatever they send; it means nothing to what writes nothing.
  std::uint16_t known = kCommandFua;
  switch (header.command) {
    case Command::read:
      known |= parameters_.structured_replies ? kCommandDf : std::uint16_t{0};
      break;
    case Command::write_zeroes:
      known |= kCommandNoHole | kCommandFastZero;
      break;
    case Command::block_status:
      known |= kCommandReqOne;
      break;
    case Command::write:
    case Command::disc:
    case Command::flush:
    case Command::trim:
    case Command::cache:
      break;
    default:
      return Refusal{WireError::einval, "unknown command"};
  }
  if ((header.flags & ~known) != 0) {
    return Refusal{WireError::einval, "unknown command flag"};
  }
  return Refusal{};
}

Transmission::Refusal Transmission::check_range(const Header& header) const noexcept {
  // The block is a power of two.
  const std::uint64_t misaligned =
      (header.offset | header.length) & (parameters_.logical_block_bytes - 1U);
  if (misaligned != 0 || header.length == 0) {
    return Refusal{WireError::einval,
                   "offset and length: expected multiples of the minimum block size"};
  }
  const std::uint64_t size = parameters_.device->disksize_bytes();
  if (header.offset > size || header.length > size - header.offset) {
    return Refusal{wire_error(Errc::out_of_range, header.command), "beyond the end of the export"};
  }
  if (header.command == Command::read && header.length > kMaxPayloadBytes) {
    return Refusal{WireError::einval, "length: expected at most 32 MiB"};
  }
  return Refusal{};
}

std::size_t Transmission::reply_bound(const Header& header) const noexcept {
  switch (header.command) {
    case Command::read:
      if (header.length > kMaxPayloadBytes) {
        return kRefusalBytes;
      }
      return std::size_t{header.length} + kRefusalBytes +
             std::size_t{kMaxReadChunks} * kHoleChunkBytes;
    case Command::block_status:
      return kChunkHeaderBytes + 4 + std::size_t{kMaxStatusDescriptors} * 8;
    default:
      return kRefusalBytes;
  }
}

bool Transmission::carry_out(const Header& header, ByteBuffer& out) noexcept {
  if (const Refusal refusal = check(header); refusal.error != WireError::ok) {
    return refuse(header, refusal, out);
  }
  switch (header.command) {
    case Command::read:
      return parameters_.structured_replies ? read_structured(header, out) : read(header, out);
    case Command::block_status:
      return block_status(header, out);
    case Command::trim:
      return range_request(header, Op::discard, out);
    case Command::write_zeroes:
      // Zeroing stores no data and so is fast whether FAST_ZERO asks for it or not.
      return range_request(
          header, (header.flags & kCommandNoHole) != 0 ? Op::allocate_zeroes : Op::write_zeroes,
          out);
    case Command::flush:
      return plain_request(header, Op::flush, nullptr, out);
    case Command::cache:
      // Everything is in memory already.
      return simple_reply(header, WireError::ok, out);
    case Command::write:
    case Command::disc:
      break;
  }
  return false;
}

// Write, discard, zero, flush. What is complete is as stable as it gets, so FUA asks nothing more.
bool Transmission::plain_request(const Header& header, Op op, std::byte* buffer,
                                 ByteBuffer& out) noexcept {
  const std::size_t begin = out.size();
  if (!simple_reply(header, WireError::ok, out)) {
    return false;
  }
  const bool ranged = op != Op::flush;
  add_request(op, ranged ? header.offset : 0, ranged ? header.length : 0, buffer,
              Piece{Shape::status, header.command, begin});
  return true;
}

bool Transmission::range_request(const Header& header, Op op, ByteBuffer& out) noexcept {
  if (header.length >= kLongRangeBytes) {
    const auto free = std::ranges::find(long_, Long::State::unused, &Long::state);
    if (free != long_.end()) {
      free->state = Long::State::parsed;
      free->header = header;
      free->request = Request{};
      free->request.op = op;
      free->request.offset = header.offset;
      free->request.length = header.length;
      ++long_outstanding_;
      ++long_unanswered_;
      return true;
    }
  }
  return plain_request(header, op, nullptr, out);
}

void Transmission::complete(const Request& request) noexcept {
  const auto found = std::ranges::find_if(
      long_, [&request](const Long& each) { return &each.request == &request; });
  if (found == long_.end()) {
    --outstanding_;
    failed_ = failed_ || request.status != Errc::ok;
  } else {
    --long_outstanding_;
    found->state = Long::State::complete;
  }
}

bool Transmission::answer_long(ByteBuffer& out) noexcept {
  for (Long& each : long_) {
    if (each.state == Long::State::complete) {
      if (!simple_reply(each.header, wire_error(each.request.status, each.header.command), out)) {
        return false;
      }
      each.state = Long::State::unused;
      --long_unanswered_;
    }
  }
  return true;
}

bool Transmission::read(const Header& header, ByteBuffer& out) noexcept {
  const std::size_t begin = out.size();
  std::byte* const at = out.extend(kSimpleReplyBytes + header.length);
  if (at == nullptr) {
    return refuse(header, Refusal{WireError::enomem, "no memory for the reply"}, out);
  }
  store_simple(at, WireError::ok, header.cookie);
  add_request(Op::read, header.offset, header.length, nullptr,
              Piece{Shape::simple_read, header.command, begin});
  return true;
}

bool Transmission::read_structured(const Header& header, ByteBuffer& out) noexcept {
  const std::size_t begin = out.size();
  const std::size_t requests_before = count_;
  const std::uint64_t end = header.offset + header.length;
  const std::size_t most = (header.flags & kCommandDf) != 0 ? 1 : kMaxReadChunks;
  ExtentRuns runs(*parameters_.device, header.offset, end, ExtentRuns::Kind::content);
  std::uint64_t at = header.offset;
  for (std::size_t chunks = 1; at != end; ++chunks) {
    Extent run = runs.next();
    if (chunks == most && !runs.done()) {
      run = Extent{end - at, ExtentState::data};
    }
    const std::uint16_t flags = at + run.length == end ? kChunkDone : std::uint16_t{0};
    const std::size_t place = out.size();
    const bool hole = run.state != ExtentState::data;
    std::byte* to = out.extend(hole ? kHoleChunkBytes : kDataChunkBytes + run.length);
    if (to == nullptr) {
      out.truncate(begin);
      count_ = requests_before;
      return refuse(header, Refusal{WireError::enomem, "no memory for the reply"}, out);
    }
    to = store_chunk(to, hole ? Chunk::offset_hole : Chunk::offset_data, flags, header.cookie,
                     hole ? 12 : 8 + run.length);
    to = store_be(to, at);
    if (hole) {
      store_be(to, static_cast<std::uint32_t>(run.length));
    } else {
      add_request(Op::read, at, run.length, nullptr,
                  Piece{Shape::data_chunk, header.command, place});
    }
    at += run.length;
  }
  return true;
}

bool Transmission::block_status(const Header& header, ByteBuffer& out) noexcept {
  const std::size_t begin = out.size();
  if (out.extend(kChunkHeaderBytes + 4) == nullptr) {
    return false;
  }
  const std::size_t most = (header.flags & kCommandReqOne) != 0 ? 1 : kMaxStatusDescriptors;
  ExtentRuns runs(*parameters_.device, header.offset, header.offset + header.length,
                  ExtentRuns::Kind::state);
  // A reply may cover less than was asked for, so a cap on descriptors loses nothing.
  for (std::size_t i = 0; i < most && !runs.done(); ++i) {
    const Extent run = runs.next();
    std::byte* to = out.extend(8);
    if (to == nullptr) {
      out.truncate(begin);
      return false;
    }
    to = store_be(to, static_cast<std::uint32_t>(run.length));
    store_be(to, state_flags(run.state));
  }
  std::byte* const to = store_chunk(out.data() + begin, Chunk::block_status, kChunkDone,
                                    header.cookie, out.size() - begin - kChunkHeaderBytes);
  store_be(to, kAllocationContextId);
  return true;
}

bool Transmission::simple_reply(const Header& header, WireError error, ByteBuffer& out) noexcept {
  std::byte* const at = out.extend(kSimpleReplyBytes);
  if (at == nullptr) {
    return false;
  }
  store_simple(at, error, header.cookie);
  return true;
}

bool Transmission::refuse(const Header& header, Refusal refusal, ByteBuffer& out) noexcept {
  // Once structured replies are agreed on, these two may not be answered otherwise.
  const bool structured =
      parameters_.structured_replies &&
      (header.command == Command::read || header.command == Command::block_status);
  if (!structured) {
    return simple_reply(header, refusal.error, out);
  }
  std::byte* at = out.extend(kErrorChunkBytes + refusal.text.size());
  if (at == nullptr) {
    return false;
  }
  at = store_chunk(at, Chunk::error, kChunkDone, header.cookie, 6 + refusal.text.size());
  at = store_be(at, static_cast<std::uint32_t>(refusal.error));
  at = store_be(at, static_cast<std::uint16_t>(refusal.text.size()));
  std::memcpy(at, refusal.text.data(), refusal.text.size());
  return true;
}

void Transmission::add_request(Op op, std::uint64_t offset, std::uint64_t length, std::byte* buffer,
                               Piece piece) noexcept {
  assert(count_ < kMaxRequests);
  requests_.at(count_) = Request{.op = op,
                                 .status = Errc::ok,
                                 .offset = offset,
                                 .length = length,
                                 .buffer = buffer,
                                 .user_data = 0,
                                 .next = nullptr};
  pieces_.at(count_) = piece;
  ++count_;
}

void Transmission::finish(Intake& in, ByteBuffer& out) noexcept {
  assert(outstanding_ == 0);
  if (failed_) {
    replace_failed(out);
  }
  if (in.payload_kept() && !gathering_) {
    in.end_payload();
  }
  count_ = 0;
  failed_ = false;
}

// Walks the output once, moving what stays over what goes. An error reply is never longer than the
// read it replaces, so the write position cannot overtake the read position.
void Transmission::replace_failed(ByteBuffer& out) noexcept {
  std::byte* const bytes = out.data();
  std::size_t from = 0;
  std::size_t to = 0;
  const auto keep_until = [&](std::size_t end) {
    std::memmove(bytes + to, bytes + from, end - from);
    to += end - from;
    from = end;
  };
  for (std::size_t i = 0; i < count_; ++i) {
    const Request& request = requests_.at(i);
    if (request.status == Errc::ok) {
      continue;
    }
    const Piece& piece = pieces_.at(i);
    const WireError error = wire_error(request.status, piece.command);
    keep_until(piece.begin);
    if (piece.shape == Shape::data_chunk) {
      const auto flags = load_be<std::uint16_t>(bytes + from + 4);
      const auto cookie = load_be<std::uint64_t>(bytes + from + 8);
      std::byte* at = store_chunk(bytes + to, Chunk::error_offset, flags, cookie,
                                  kErrorOffsetBytes - kChunkHeaderBytes);
      at = store_be(at, static_cast<std::uint32_t>(error));
      at = store_be(at, std::uint16_t{0});
      store_be(at, request.offset);
      to += kErrorOffsetBytes;
      from += kDataChunkBytes + request.length;
    } else {
      const auto cookie = load_be<std::uint64_t>(bytes + from + 8);
      store_simple(bytes + to, error, cookie);
      to += kSimpleReplyBytes;
      from += kSimpleReplyBytes + (piece.shape == Shape::simple_read ? request.length : 0);
    }
  }
  keep_until(out.size());
  out.truncate(to);
}

}  // namespace uzram::nbd
