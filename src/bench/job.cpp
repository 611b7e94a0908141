#include "bench/job.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <new>
#include <utility>

#include "bench/port_parts.hpp"

namespace uzram::bench {
namespace {

constexpr std::uint64_t kBytesBetweenClocks = std::uint64_t{64} << 10;

std::uint64_t now_ns() noexcept {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

// The same for all targets, another one for every phase, round and job.
std::uint64_t seed_of(const Phase& phase, std::uint32_t index) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto mix = [&hash](std::uint64_t value) { hash = (hash ^ value) * 0x100000001b3U; };
  for (const std::string* const text : {&phase.op, &phase.state}) {
    for (const char byte : *text) {
      mix(static_cast<unsigned char>(byte));
    }
    mix(0x100);
  }
  mix(phase.generation);
  mix(phase.seed);
  mix(index);
  return hash;
}

}  // namespace

void Job::FreeBuffer::operator()(std::byte* buffer) const noexcept { std::free(buffer); }

Job::Job(const Phase& phase, std::uint32_t index, std::shared_ptr<const DataSet> data, Port& port,
         Contents* contents, const std::atomic<bool>& stop)
    : phase_(phase),
      data_(std::move(data)),
      port_(port),
      contents_(contents),
      stop_(stop),
      blocks_(phase.job_bytes / phase.block_size),
      first_byte_(index * phase.job_stride),
      index_(index),
      seed_(seed_of(phase, index)),
      replaces_alone_(phase.access == Access::write && !shares_range(phase)),
      requests_between_clocks_(std::max<std::uint64_t>(1, kBytesBetweenClocks / phase.block_size)),
      order_(std::max<std::uint64_t>(1, blocks_), seed_),
      mix_state_(seed_ | 1) {}

Result<std::unique_ptr<Job>> Job::make(const Phase& phase, std::uint32_t index,
                                       std::shared_ptr<const DataSet> data, Port& port,
                                       Contents* contents, const std::atomic<bool>& stop) {
  auto job = std::unique_ptr<Job>(new Job(phase, index, std::move(data), port, contents, stop));
  if (auto taken = job->take_memory(); !taken) {
    return std::move(taken).error();
  }
  return job;
}

Result<void> Job::take_memory() {
  const auto block = static_cast<std::size_t>(phase_.block_size);
  const bool reads = phase_.access == Access::read || phase_.access == Access::read_write;
  if (reads) {
    buffers_.reset(static_cast<std::byte*>(std::aligned_alloc(kDataPage, block * phase_.iodepth)));
    if (!buffers_) {
      return Error{Errc::no_space, 0,
                   "no memory for " + std::to_string(phase_.iodepth) + " buffers of " +
                       std::to_string(block) + " bytes; take a smaller --iodepth or --block-size"};
    }
    // Touched now, so that no fault is measured.
    std::fill_n(buffers_.get(), block * phase_.iodepth, std::byte{0x55});
  }
  slots_.resize(phase_.iodepth);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].buffer = reads ? buffers_.get() + i * block : nullptr;
    slots_[i].request.length = phase_.block_size;
    slots_[i].request.user_data = i;
    free_.push_back(&slots_[i]);
  }
  batch_.reserve(slots_.size());
  if (phase_.latency) {
    latency_ = std::make_unique<LatencyHistogram>();
    submit_latency_ = std::make_unique<LatencyHistogram>();
  }
  return {};
}

std::uint64_t Job::next_block(bool reads) noexcept {
  // A random mix draws from one order, so that every block is visited once.
  std::uint64_t& cursor = cursors_[phase_.random || reads ? 0 : 1];
  const std::uint64_t block = phase_.random ? order_.at(cursor) : cursor;
  if (++cursor == blocks_) {
    cursor = 0;
    ++pass_;
    if (phase_.random) {
      order_ = RandomOrder(blocks_, seed_ + pass_ * 0x10001);
    }
  }
  return block;
}

// Every pass, and every job of those that write the same range, stores another page than the one
// before. Where contents are kept, a range that others use meanwhile has one content for a phase, as
// requests may finish in any order.
std::uint32_t Job::generation() const noexcept {
  constexpr std::uint64_t kPhases = 4;
  const bool in_turns = contents_ == nullptr || replaces_alone_;
  const std::uint64_t turn = in_turns ? pass_ * phase_.jobs + index_ : 0;
  return phase_.generation + static_cast<std::uint32_t>(turn * kPhases);
}

void Job::prepare(Slot& slot) noexcept {
  Request& request = slot.request;
  bool reads = phase_.access == Access::read;
  if (phase_.access == Access::read_write) {
    mix_state_ = mix_state_ * 6364136223846793005U + 1442695040888963407U;
    reads = (mix_state_ >> 63U) != 0;
  }
  // Before the pass ends with its last block.
  const std::uint32_t stored = generation();
  slot.generation = stored;
  request.offset = first_byte_ + next_block(reads) * phase_.block_size;
  if (phase_.access == Access::discard) {
    request.op = Op::discard;
  } else if (phase_.access == Access::write_zeroes) {
    request.op = Op::write_zeroes;
  } else if (reads) {
    request.op = Op::read;
    request.buffer = slot.buffer;
  } else {
    request.op = Op::write;
    // Requests to write are only read from.
    request.buffer =
        const_cast<std::byte*>(data_->at(data_->index_of(request.offset / kDataPage, stored)));
  }
}

void Job::fail(const Request& request, const std::string& why) {
  if (failure_.empty()) {
    failure_ = phase_.op + ": a " + std::string(op_name(request.op)) + " of " +
               std::to_string(request.length) + " bytes at " + std::to_string(request.offset) +
               " failed: " + why;
  }
}

void Job::finish(Slot& slot) noexcept {
  const Request& request = slot.request;
  if (request.status != Errc::ok) [[unlikely]] {
    fail(request, port_.failure());
    return;
  }
  ++counts_.requests;
  (request.op == Op::read ? counts_.read_bytes : counts_.write_bytes) += request.length;
  if (contents_ == nullptr) [[likely]] {
    return;
  }
  const std::uint64_t page = request.offset / kDataPage;
  const std::uint64_t count = request.length / kDataPage;
  if (request.op == Op::write) {
    contents_->note_write(page, count, slot.generation);
  } else if (request.op == Op::discard || request.op == Op::write_zeroes) {
    contents_->note_discard(page, count);
  } else if (phase_.verify &&
             !contents_->matches(page, {request.buffer, static_cast<std::size_t>(request.length)},
                                 phase_.access == Access::read_write, phase_.generation)) {
    fail(request, "its content is not what was written (--verify crc32c)");
  }
}

bool Job::goes_on(const Stretch& stretch, std::uint64_t issued) noexcept {
  if (!failure_.empty() || stop_.load(std::memory_order_relaxed)) {
    return false;
  }
  if (stretch.until != nullptr) {
    return !stretch.until->load(std::memory_order_relaxed);
  }
  if (stretch.time_ns == 0) {
    return issued < stretch.requests;
  }
  return issued % requests_between_clocks_ != 0 || now_ns() - counts_.start_ns < stretch.time_ns;
}

void Job::run_one_at_a_time(const Stretch& stretch) noexcept {
  Slot& slot = slots_.front();
  for (std::uint64_t issued = 0; goes_on(stretch, issued); ++issued) {
    prepare(slot);
    if (!phase_.latency) {
      port_.execute(slot.request);
    } else {
      const std::uint64_t start = now_ns();
      port_.execute(slot.request);
      const std::uint64_t taken = now_ns() - start;
      latency_->add(taken);
      submit_latency_->add(taken);
    }
    finish(slot);
  }
}

// Of two writes of one block in flight nobody knows which is the last: where contents are kept, a
// pass begins when the one before it has ended.
bool Job::waits_for_pass() const noexcept {
  return contents_ != nullptr && replaces_alone_ && cursors_[phase_.random ? 0 : 1] == 0 &&
         free_.size() != slots_.size();
}

void Job::submit_batch() noexcept {
  const std::uint64_t start = phase_.latency ? now_ns() : 0;
  for (const Request* const request : batch_) {
    slots_[request->user_data].submitted_ns = start;
  }
  port_.submit(batch_);
  if (phase_.latency) {
    const std::uint64_t taken = now_ns() - start;
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      submit_latency_->add(taken);
    }
  }
}

// Waits for one, and takes all that have completed with it.
void Job::reap_completed() noexcept {
  const Request* request = port_.reap();
  // Those that are there as well had completed by now, but for the time it takes to look at them.
  const std::uint64_t now = phase_.latency ? now_ns() : 0;
  while (request != nullptr) {
    Slot& slot = slots_[request->user_data];
    if (phase_.latency) {
      latency_->add(now - slot.submitted_ns);
    }
    finish(slot);
    free_.push_back(&slot);
    request = port_.has_completed() ? port_.reap() : nullptr;
  }
}

void Job::run_in_flight(const Stretch& stretch) noexcept {
  std::uint64_t issued = 0;
  while (true) {
    batch_.clear();
    while (!free_.empty() && !waits_for_pass() && goes_on(stretch, issued)) {
      Slot& slot = *free_.back();
      free_.pop_back();
      prepare(slot);
      batch_.push_back(&slot.request);
      ++issued;
    }
    if (!batch_.empty()) {
      submit_batch();
    } else if (free_.size() == slots_.size()) {
      return;
    }
    reap_completed();
  }
}

void Job::run(const Stretch& stretch) noexcept {
  port_.begin();
  counts_.start_ns = now_ns();
  if (phase_.iodepth == 1) {
    run_one_at_a_time(stretch);
  } else {
    run_in_flight(stretch);
  }
  if (stretch.flush && failure_.empty()) {
    Request request;
    request.op = Op::flush;
    port_.execute(request);
    if (request.status != Errc::ok) {
      fail(request, port_.failure());
    }
  }
  counts_.end_ns = now_ns();
}

}  // namespace uzram::bench
