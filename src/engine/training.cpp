#include "engine/training.hpp"

#include <algorithm>
#include <ctime>
#include <new>
#include <string>
#include <utility>

#include "base/cpu.hpp"
#include "base/log.hpp"
#include "base/process_wide.hpp"
#include "os/background_thread.hpp"
#include "os/futex.hpp"

namespace uzram::engine {
namespace {

using namespace std::chrono_literals;

// How often it is looked whether enough pages have been compressed since the last attempt.
constexpr std::chrono::nanoseconds kRestPause = 500ms;
// After so many looks at which there was nothing new the next pages are waited for.
constexpr std::uint32_t kQuietLooks = 4;
// One of so many samples is held out.
constexpr std::size_t kHeldOut = 4;

std::chrono::nanoseconds thread_cpu_time() noexcept {
  timespec now = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace

Training::Training(StreamSet& streams, PageTable& table, Room& room, std::uint32_t page_size_bytes)
    : streams_(streams),
      codec_(*streams.trainable()),
      table_(table),
      room_(room),
      page_size_bytes_(page_size_bytes),
      keeper_(process_wide<Housekeeper>()) {
  keeper_->add(*this);
  streams_.sampling()->set_taker(this);
}

Training::~Training() {
  streams_.sampling()->set_taker(nullptr);
  keeper_->remove(*this);
  stopping_.store(true, std::memory_order_seq_cst);
  if (thread_.joinable()) {
    calls_.fetch_add(1, std::memory_order_seq_cst);
    os::futex_wake(&calls_, 1);
    thread_.join();
  }
}

void Training::set_wanted(bool wanted) noexcept {
  wanted_.store(wanted, std::memory_order_relaxed);
  streams_.sampling()->set_taker(wanted ? this : nullptr);
  // Not wanted: samples that have been gathered so far are dropped.
  poke();
}

void Training::set_eager(double least_saving) noexcept {
  rules_ = {std::size_t{64} * page_size_bytes_, least_saving, 1, 1ms, false};
  streams_.sampling()->set_period(2);
}

Training::Stats Training::stats() const noexcept {
  Stats stats;
  stats.generations = codec_.generation();
  if (stats.generations != 0) {
    stats.saving = saving_.load(std::memory_order_relaxed);
  }
  stats.cpu_time = std::chrono::nanoseconds(cpu_time_ns_.load(std::memory_order_relaxed));
  stats.attempts = attempts_.load(std::memory_order_relaxed);
  stats.is_learning = state_.load(std::memory_order_relaxed) == State::learning;
  stats.memory_bytes = samples_bytes_.load(std::memory_order_relaxed) +
                       learning_bytes_.load(std::memory_order_relaxed) +
                       tables_bytes_.load(std::memory_order_relaxed) +
                       streams_.size() * page_size_bytes_;
  return stats;
}

// ---- by whoever compresses pages --------------------------------------------------------------

void Training::pages_came() noexcept {
  if (asleep_.load(std::memory_order_relaxed) &&
      asleep_.exchange(false, std::memory_order_relaxed)) {
    poke();
  }
}

// ---- by the housekeeper -----------------------------------------------------------------------

std::chrono::nanoseconds Training::tidy() noexcept {
  const State state = state_.load(std::memory_order_acquire);
  if (state == State::learning) {
    return kNever;
  }
  if (state == State::learnt) {
    conclude();
    if (codec_.generation() == codec::kMostGenerations) {
      streams_.sampling()->set_taker(nullptr);
    }
  }
  if (!wanted() || codec_.generation() == codec::kMostGenerations) {
    rest(begin_at_pages_);
    asleep_.store(true, std::memory_order_relaxed);
    return kNever;
  }
  const std::uint64_t now = pages();
  if (state_.load(std::memory_order_relaxed) == State::resting) {
    if (now < begin_at_pages_) {
      return look_again(now);
    }
    begin_gathering();
  }
  try {
    gather();
    if (samples_.size() < rules_.sample_bytes / page_size_bytes_) {
      return look_again(now);
    }
    if (begin_learning()) {
      return kNever;
    }
  } catch (const std::bad_alloc&) {
    // As if it had been refused.
  }
  attempts_.fetch_add(1, std::memory_order_relaxed);
  rest(now * rules_.patience);
  return look_again(now);
}

std::uint64_t Training::pages() noexcept {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < streams_.size(); ++at) {
    sum += streams_.stream(at).samples->pages();
  }
  return sum;
}

void Training::begin_gathering() noexcept {
  // What is there may have been there for long.
  for (std::size_t at = 0; at < streams_.size(); ++at) {
    streams_.stream(at).samples->clear();
  }
  state_.store(State::gathering, std::memory_order_relaxed);
}

void Training::gather() {
  const std::size_t wanted = rules_.sample_bytes / page_size_bytes_;
  samples_.reserve(wanted);
  for (std::size_t at = 0; at < streams_.size() && samples_.size() < wanted; ++at) {
    Sampling::Slot& slot = *streams_.stream(at).samples;
    if (!slot.full()) {
      continue;
    }
    if (const Room::Grant grant = room_.ask(page_size_bytes_); grant) {
      auto page = std::make_unique<std::byte[]>(page_size_bytes_);
      std::copy_n(slot.page(), page_size_bytes_, page.get());
      samples_.push_back(std::move(page));
    }
    slot.clear();
  }
  samples_bytes_.store(samples_.size() * page_size_bytes_, std::memory_order_relaxed);
}

bool Training::begin_learning() {
  const std::size_t bytes = codec_.training_bytes(samples_.size() - samples_.size() / kHeldOut);
  grant_.reset(new Room::Grant(room_.ask(bytes)));
  if (!*grant_) {
    return false;
  }
  if (!thread_.joinable()) {
    auto started = os::start_background_thread("uzram-trainer", [this] { serve(); });
    if (!started) {
      log(LogLevel::warning, "no tables are trained: " + started.error().message);
      return false;
    }
    thread_ = *std::move(started);
  }
  learning_bytes_.store(bytes, std::memory_order_relaxed);
  state_.store(State::learning, std::memory_order_release);
  calls_.fetch_add(1, std::memory_order_seq_cst);
  os::futex_wake(&calls_, 1);
  return true;
}

void Training::conclude() noexcept {
  if (outcome_.tables && outcome_.saving >= rules_.least_saving) {
    publish();
  }
  outcome_ = {};
  attempts_.fetch_add(1, std::memory_order_relaxed);
  rest(pages() * rules_.patience);
}

void Training::publish() noexcept {
  // First where it survives this process, then in use.
  if (table_.add_recipe(outcome_.tables->recipe()) != Errc::ok) {
    return;
  }
  tables_bytes_.fetch_add(outcome_.tables->memory_bytes(), std::memory_order_relaxed);
  saving_.store(outcome_.saving, std::memory_order_relaxed);
  codec_.publish(std::move(outcome_.tables));
}

// Until so many pages have been compressed.
void Training::rest(std::uint64_t until_pages) noexcept {
  samples_.clear();
  samples_.shrink_to_fit();
  grant_.reset();
  samples_bytes_.store(0, std::memory_order_relaxed);
  learning_bytes_.store(0, std::memory_order_relaxed);
  begin_at_pages_ = until_pages;
  state_.store(State::resting, std::memory_order_relaxed);
}

std::chrono::nanoseconds Training::look_again(std::uint64_t pages) noexcept {
  quiet_looks_ = pages == seen_pages_ ? quiet_looks_ + 1 : 0;
  seen_pages_ = pages;
  if (quiet_looks_ < kQuietLooks) {
    return state_.load(std::memory_order_relaxed) == State::gathering ? rules_.pause : kRestPause;
  }
  // Pages that come at this moment are followed by others, or make no difference.
  quiet_looks_ = 0;
  asleep_.store(true, std::memory_order_relaxed);
  return kNever;
}

// ---- by the thread ----------------------------------------------------------------------------

void Training::serve() noexcept {
  if (rules_.only_when_idle) {
    run_when_idle();
  }
  // The housekeeper that started it keeps off one.
  constexpr std::uint32_t kNone = ~std::uint32_t{0};
  avoid_cpu_slot(kNone);
  while (true) {
    const std::uint32_t seen = calls_.load(std::memory_order_seq_cst);
    if (stopping_.load(std::memory_order_seq_cst)) {
      return;
    }
    if (state_.load(std::memory_order_acquire) != State::learning) {
      os::futex_wait(&calls_, seen);
      continue;
    }
    try {
      outcome_ = learn();
    } catch (const std::bad_alloc&) {
      outcome_ = {};
    }
    cpu_time_ns_.store(thread_cpu_time().count(), std::memory_order_relaxed);
    state_.store(State::learnt, std::memory_order_release);
    poke();
  }
}

Training::Outcome Training::learn() const {
  std::vector<std::span<const std::byte>> learnt_from;
  std::vector<std::span<const std::byte>> held_out;
  for (std::size_t at = 0; at < samples_.size(); ++at) {
    (at % kHeldOut == 0 ? held_out : learnt_from)
        .emplace_back(samples_[at].get(), page_size_bytes_);
  }
  auto tables = codec_.train(learnt_from, stopping_);
  auto workspace = streams_.codec().make_workspace();
  if (!tables || !workspace) {
    return {};
  }
  const std::uint64_t before = stored_bytes(held_out, nullptr, **workspace);
  const std::uint64_t after = stored_bytes(held_out, tables->get(), **workspace);
  Outcome outcome;
  outcome.saving = before == 0 ? 0 : 1 - static_cast<double>(after) / static_cast<double>(before);
  outcome.tables = *std::move(tables);
  return outcome;
}

std::uint64_t Training::stored_bytes(codec::TrainableCodec::Pages pages,
                                     const codec::TrainedTables* tables,
                                     codec::Workspace& workspace) const {
  // As PageStore: what shrinks less is stored as it is.
  std::vector<std::byte> object(page_size_bytes_ - page_size_bytes_ / 16);
  std::uint64_t sum = 0;
  for (const std::span<const std::byte> page : pages) {
    const codec::CompressResult result = codec_.compress_with(tables, workspace, page, object);
    sum += result.status == Errc::ok ? result.size : page_size_bytes_;
  }
  return sum;
}

}  // namespace uzram::engine
