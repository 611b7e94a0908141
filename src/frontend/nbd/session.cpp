#include "frontend/nbd/session.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace uzram::nbd {
namespace {

// Replies of the handshake are sent once there are so many bytes of them.
constexpr std::size_t kHandshakeOutputBytes = 64U << 10;
// Replies of one batch while buffers are scarce: those of a single request may be more.
constexpr std::size_t kScarceReplyBytes = 256U << 10;
// A buffer of replies up to this is kept for the next batch.
constexpr std::size_t kRetainedBytes = 4U << 20;

}  // namespace

bool Session::greet() noexcept {
  const bool laid = handshake_.greet(laying_out_);
  send_laid_out();
  return laid;
}

bool Session::wants_input() const noexcept {
  return phase_ != Phase::draining && starved_ && !input_ended_ && !batch_open_ &&
         laying_out_.empty();
}

void Session::received(std::size_t count) noexcept {
  intake_.received(count);
  starved_ = starved_ && count == 0;
}

void Session::end_input() noexcept {
  input_ended_ = true;
  if (starved_) {
    drain();
  }
}

void Session::drain() noexcept {
  if (batch_open_) {
    last_batch_ = true;
  } else {
    phase_ = Phase::draining;
  }
}

bool Session::runnable() const noexcept {
  return phase_ != Phase::draining && !starved_ && !crowded_ && !batch_open_ && laying_out_.empty();
}

void Session::prepare(std::uint64_t user_data, std::vector<Request*>& batch) noexcept {
  assert(runnable());
  batch_open_ = true;
  if (phase_ == Phase::handshake) {
    negotiate();
    return;
  }
  const std::size_t on_the_way = output().size();
  const std::size_t most =
      ByteBuffer::scarce() ? std::min(max_reply_bytes_, kScarceReplyBytes) : max_reply_bytes_;
  const std::size_t room = most > on_the_way ? most - on_the_way : 0;
  switch (transmission_->parse(intake_, laying_out_, room, on_the_way == 0, user_data, batch)) {
    case Transmission::End::starved:
      starved_ = true;
      last_batch_ = input_ended_;
      break;
    case Transmission::End::full:
      crowded_ = laying_out_.empty();
      break;
    case Transmission::End::disconnected:
    case Transmission::End::broken:
    case Transmission::End::no_memory:
      last_batch_ = true;
      break;
  }
}

void Session::negotiate() noexcept {
  while (laying_out_.size() < kHandshakeOutputBytes) {
    const std::size_t used = handshake_.step(intake_.available(), laying_out_);
    intake_.consume(used);
    if (handshake_.state() == Handshake::State::transmission) {
      enter_transmission();
      return;
    }
    if (handshake_.state() == Handshake::State::closed) {
      last_batch_ = true;
      return;
    }
    if (used == 0) {
      starved_ = true;
      last_batch_ = input_ended_;
      return;
    }
  }
}

void Session::enter_transmission() noexcept {
  const Agreement& agreement = handshake_.agreement();
  const ExportInfo& info = exports_.infos[agreement.export_index];
  transmission_.emplace(
      Transmission::Parameters{.device = exports_.devices[agreement.export_index],
                               .logical_block_bytes = info.minimum_block_bytes,
                               .read_only = info.read_only,
                               .structured_replies = agreement.structured_replies,
                               .allocation_context = agreement.allocation_context});
  phase_ = Phase::transmission;
}

void Session::finish() noexcept {
  assert(batch_open_ && outstanding() == 0);
  if (transmission_) {
    transmission_->finish(intake_, laying_out_);
  }
  batch_open_ = false;
  if (last_batch_) {
    phase_ = Phase::draining;
  }
  send_laid_out();
}

void Session::answer_long() noexcept {
  if (!transmission_ || transmission_->long_unanswered() == 0 || !laying_out_.empty()) {
    return;
  }
  if (!transmission_->answer_long(laying_out_)) {
    drain();
  }
  send_laid_out();
}

void Session::send_laid_out() noexcept {
  if (sending_.empty() && !batch_open_) {
    std::swap(sending_, laying_out_);
    sent_bytes_ = 0;
  }
}

void Session::sent(std::size_t count) noexcept {
  sent_bytes_ += count;
  assert(sent_bytes_ <= sending_.size());
  if (sent_bytes_ < sending_.size()) {
    return;
  }
  sending_.clear();
  sent_bytes_ = 0;
  if (sending_.capacity() > kRetainedBytes) {
    sending_.release();
  }
  crowded_ = false;
  send_laid_out();
}

bool Session::over() const noexcept {
  const bool answered = !transmission_ || transmission_->long_unanswered() == 0;
  return phase_ == Phase::draining && !batch_open_ && answered && sending_.empty() &&
         laying_out_.empty();
}

void Session::trim() noexcept {
  if (sending_.empty()) {
    sending_.release();
  }
  if (laying_out_.empty() && !batch_open_) {
    laying_out_.release();
  }
  intake_.trim();
}

}  // namespace uzram::nbd
