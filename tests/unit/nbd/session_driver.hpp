// SessionDriver: a Session with a device behind it and nothing around it.
//
// Role: does for tests what the event loop does, without sockets; each step can be withheld.
// Ownership: the exports and their devices outlive it.
// Threads: one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "uzram/device.hpp"

#include "frontend/nbd/session.hpp"
#include "unit/nbd/wire.hpp"

namespace uzram::nbd {

class SessionDriver {
 public:
  explicit SessionDriver(const ExportTable& exports, std::size_t default_export = 0,
                         std::size_t max_reply_bytes = 2U << 20)
      : session_(exports, default_export, max_reply_bytes) {
    greeted_ = session_.greet();
    batch_.reserve(Transmission::kMaxRequests + Transmission::kMaxLong);
    run();
  }

  // Gives the session `bytes` in pieces of at most `piece`, working after each. Returns how many it
  // took: fewer when it wants no more.
  std::size_t feed(std::span<const std::byte> bytes, std::size_t piece = ~std::size_t{0}) {
    std::size_t taken = 0;
    while (taken < bytes.size() && session_.wants_input()) {
      std::array<iovec, 2> places{};
      const unsigned count = session_.space(places);
      std::size_t now = 0;
      for (unsigned i = 0; i < count; ++i) {
        const std::size_t part =
            std::min({places.at(i).iov_len, piece - now, bytes.size() - taken - now});
        if (part != 0) {
          std::memcpy(places.at(i).iov_base, bytes.data() + taken + now, part);
        }
        now += part;
      }
      session_.received(now);
      taken += now;
      run();
    }
    return taken;
  }
  std::size_t feed(const wire::Bytes& bytes, std::size_t piece = ~std::size_t{0}) {
    return feed(bytes.view(), piece);
  }

  // Does all there is to do.
  void run() {
    while (true) {
      if (draining_output && !session_.output().empty()) {
        const auto part = session_.output().first(std::min(session_.output().size(), send_piece));
        output_.insert(output_.end(), part.begin(), part.end());
        session_.sent(part.size());
        session_.answer_long();
      } else if (session_.runnable()) {
        work();
      } else {
        return;
      }
    }
  }

  // What the server has sent since the last call.
  std::vector<std::byte> take_output() { return std::exchange(output_, {}); }

  [[nodiscard]] Session& session() { return session_; }
  [[nodiscard]] bool greeted() const { return greeted_; }
  // The most Requests one batch has had.
  [[nodiscard]] std::size_t largest_batch() const { return largest_batch_; }
  [[nodiscard]] std::size_t batches() const { return batches_; }

  // Says how a Request fares instead of the device; ok asks the device.
  std::function<Errc(const Request&)> fault;
  // Long discards and zeroings are kept until release_long.
  bool holding_long = false;
  void release_long() {
    holding_long = false;
    for (Request* const request : std::exchange(held_, {})) {
      carry_out(*request);
    }
    session_.answer_long();
    run();
  }
  // Whether output is taken by the client, and how much at a time.
  bool draining_output = true;
  std::size_t send_piece = ~std::size_t{0};

 private:
  void work() {
    session_.prepare(1, batch_);
    largest_batch_ = std::max(largest_batch_, batch_.size());
    batches_ += batch_.empty() ? 0 : 1;
    for (Request* const request : batch_) {
      if (holding_long && request->length >= kLongRangeBytes && request->buffer == nullptr) {
        held_.push_back(request);
      } else {
        carry_out(*request);
      }
    }
    batch_.clear();
    session_.finish();
    session_.answer_long();
  }

  void carry_out(Request& request) {
    const Errc failure = fault ? fault(request) : Errc::ok;
    if (failure != Errc::ok) {
      request.status = failure;
      session_.complete(request);
      return;
    }
    Queue queue(*session_.device());
    Request* const one = &request;
    queue.submit(std::span<Request* const>(&one, 1));
    while (const Request* const done = queue.wait()) {
      session_.complete(*done);
    }
  }

  Session session_;
  std::vector<Request*> batch_;
  std::vector<Request*> held_;
  std::vector<std::byte> output_;
  std::size_t largest_batch_ = 0;
  std::size_t batches_ = 0;
  bool greeted_ = false;
};

}  // namespace uzram::nbd
