#include "engine/executor.hpp"

#include <algorithm>
#include <string>

#include "base/clock.hpp"
#include "base/process_wide.hpp"
#include "base/size.hpp"
#include "engine/device_impl.hpp"

namespace uzram::engine {
namespace {

// Requests a worker takes from the backlog at once.
constexpr std::uint32_t kMostTaken = 8;
// The pages of a long range that are done at once: giving back their memory takes the most of the
// time, a tenth of a millisecond. A stretch of the table is a multiple of it.
constexpr std::uint64_t kPiecePages = kStretchPages / 4;
// What is measured takes this many pages at least, so that reading the clock costs little.
constexpr std::uint64_t kWorthMeasuringPages = 8;

}  // namespace

// ---- estimates --------------------------------------------------------------------------------

void Executor::PageCost::learn(std::uint64_t pages, std::int64_t elapsed_ns) noexcept {
  const std::int64_t known = ns_.load(std::memory_order_relaxed);
  // A thread that lost its CPU meanwhile has not measured pages.
  const std::int64_t seen = std::min(elapsed_ns / static_cast<std::int64_t>(pages), 8 * known + 8);
  const std::int64_t change = (seen - known) / 8;
  // Small changes are not worth writing to a line that others read.
  if (change > known / 32 || change < -known / 32) {
    ns_.store(static_cast<std::uint32_t>(known + change), std::memory_order_relaxed);
  }
}

Executor::PageCost& Executor::cost_of(Op op) noexcept {
  return op == Op::read ? read_cost_ : op == Op::write ? write_cost_ : range_cost_;
}

std::uint64_t Executor::pages_of(const Request& request) const noexcept {
  // The device refuses longer ones, and nothing is to overflow before it does.
  const std::uint64_t length = std::min(request.length, device_.options.disksize_bytes);
  return request.op == Op::flush
             ? 0
             : (length + device_.options.page_size_bytes - 1) >> device_.page_shift;
}

std::uint32_t Executor::most_helpers() const noexcept {
  const std::uint32_t set = workers() == 0 ? kMaxWorkers : workers();
  // In async it is one of the workers that asks.
  return mode() == Mode::async ? set - 1 : set;
}

// ---- one request ------------------------------------------------------------------------------

void Executor::execute_alone(Request& request) noexcept {
  request.status = device_.carry_out(request);
}

// The pages of a request, each unit so many of them that there are not too many units.
class Executor::RequestWork final : public Divisible {
 public:
  RequestWork(Device::Impl& device, const Request& request, std::uint64_t pages) noexcept
      : device_(device), request_(request) {
    std::uint64_t unit_pages = pages / (Workers::kMaxUnits / 2) + 1;
    if (request.op != Op::read && request.op != Op::write) {
      unit_pages = round_up(unit_pages, kPiecePages);
    }
    unit_bytes_ = unit_pages << device.page_shift;
    first_ = request.offset / unit_bytes_;
  }

  [[nodiscard]] std::uint32_t units() const noexcept {
    const std::uint64_t last = (request_.offset + request_.length - 1) / unit_bytes_;
    return static_cast<std::uint32_t>(last - first_ + 1);
  }

  void run(std::uint32_t begin, std::uint32_t end) noexcept override {
    if (status() != Errc::ok) {
      return;
    }
    const std::uint64_t from = std::max((first_ + begin) * unit_bytes_, request_.offset);
    const std::uint64_t to =
        std::min((first_ + end) * unit_bytes_, request_.offset + request_.length);
    Request part;
    part.op = request_.op;
    part.offset = from;
    part.length = to - from;
    part.buffer = request_.buffer == nullptr ? nullptr : request_.buffer + (from - request_.offset);
    if (const Errc failed = device_.carry_out(part); failed != Errc::ok) {
      status_.store(failed, std::memory_order_relaxed);
    }
  }

  [[nodiscard]] Errc status() const noexcept { return status_.load(std::memory_order_relaxed); }

 private:
  Device::Impl& device_;
  const Request& request_;
  std::uint64_t unit_bytes_ = 0;
  std::uint64_t first_ = 0;
  std::atomic<Errc> status_{Errc::ok};
};

void Executor::execute_divided(Request& request) noexcept {
  const std::uint64_t pages = pages_of(request);
  // A range that is refused must be refused, and counted, once and as a whole.
  if (pages == 0 || device_.range_status(request.offset, request.length) != Errc::ok) {
    execute_alone(request);
    return;
  }
  PageCost& cost = cost_of(request.op);
  RequestWork work(device_, request, pages);
  const std::int64_t start_ns = now_ns();
  const bool alone = !workers_->run(work, work.units(), cost.of(pages), most_helpers());
  if (alone) {
    cost.learn(pages, now_ns() - start_ns);
  }
  request.status = work.status();
}

// ---- batches ----------------------------------------------------------------------------------

class Executor::BatchWork final : public Divisible {
 public:
  BatchWork(Executor& executor, std::span<Request* const> run) noexcept
      : executor_(executor), run_(run) {}
  void run(std::uint32_t begin, std::uint32_t end) noexcept override {
    executor_.execute_run(run_.subspan(begin, end - begin));
  }

 private:
  Executor& executor_;
  const std::span<Request* const> run_;
};

void Executor::execute_run(std::span<Request* const> run) noexcept {
  PageIndex page = 0;
  for (std::size_t i = 0; i < run.size(); ++i) {
    if (i + 2 < run.size() && device_.first_page(*run[i + 2], page)) {
      device_.store.prefetch_entry(page);
    }
    if (i + 1 < run.size() && run[i + 1]->op == Op::read && device_.first_page(*run[i + 1], page)) {
      device_.store.prefetch_object(page);
    }
    execute_alone(*run[i]);
  }
}

void Executor::execute_shared(std::span<Request* const> run) noexcept {
  if (run.size() < 2) {
    execute_run(run);
    return;
  }
  const Op op = run.front()->op;
  bool alike = true;
  std::uint64_t pages = 0;
  std::uint64_t estimate_ns = 0;
  for (const Request* const request : run) {
    const std::uint64_t of_request = pages_of(*request);
    alike = alike && request->op == op;
    pages += of_request;
    estimate_ns += cost_of(request->op).of(of_request);
  }
  BatchWork work(*this, run);
  const std::int64_t start_ns = now_ns();
  const bool alone =
      !workers_->run(work, static_cast<std::uint32_t>(run.size()), estimate_ns, most_helpers());
  if (alone && alike && pages >= kWorthMeasuringPages) {
    cost_of(op).learn(pages, now_ns() - start_ns);
  }
}

void Executor::execute_batch(std::span<Request* const> batch) noexcept {
  if (mode() != Mode::automatic) {
    execute_run(batch);
    return;
  }
  // Long requests are divided one by one, and what lies between them is shared.
  while (!batch.empty()) {
    const auto end = std::ranges::find_if(batch, [](const Request* request) {
      return request->length >= kWorthDividingBytes && request->op != Op::flush;
    });
    const auto small = static_cast<std::size_t>(end - batch.begin());
    execute_shared(batch.first(std::min<std::size_t>(small, Workers::kMaxUnits)));
    batch = batch.subspan(std::min<std::size_t>(small, Workers::kMaxUnits));
    if (!batch.empty() && small == 0) {
      execute_divided(*batch.front());
      batch = batch.subspan(1);
    }
  }
}

void Executor::submit(Queue& queue, std::span<Request* const> batch) noexcept {
  if (mode() == Mode::async) {
    post(queue, batch);
  } else {
    complete(queue, batch);
  }
}

void Executor::complete(Queue& queue, std::span<Request* const> batch) noexcept {
  while (true) {
    const auto end = std::ranges::find_if(
        batch, [this](const Request* request) { return is_long_range(*request); });
    const auto count = static_cast<std::size_t>(end - batch.begin());
    execute_batch(batch.first(count));
    for (Request* const request : batch.first(count)) {
      queue.append(*request);
    }
    if (count == batch.size()) {
      return;
    }
    queue.defer(**end);
    batch = batch.subspan(count + 1);
  }
}

// ---- long ranges ------------------------------------------------------------------------------

bool Executor::is_long_range(const Request& request) const noexcept {
  return request.length >= kLongRangeBytes && request.op != Op::read && request.op != Op::write &&
         request.op != Op::flush &&
         device_.range_status(request.offset, request.length) == Errc::ok;
}

bool Executor::advance(Request& request) noexcept {
  const std::uint64_t end = request.offset + request.length;
  const std::uint64_t stretch_bytes = std::uint64_t{kStretchPages} << device_.page_shift;
  Request part = request;
  part.status = Errc::ok;
  part.offset = request.offset + request.done;
  if (request.op != Op::allocate_zeroes) {
    // What holds nothing costs hardly anything.
    const engine::PageTable& table = device_.store.table();
    const std::uint64_t stretch =
        table.next_holding(part.offset / stretch_bytes, table.stretches());
    const std::uint64_t held = std::min(std::max(stretch * stretch_bytes, part.offset), end);
    if (part.length = held - part.offset; part.length != 0) {
      execute_alone(part);
      part.offset = held;
    }
  }
  const bool helped = mode() == Mode::automatic;
  const std::uint64_t threads = helped ? std::min(workers_->parallelism(), most_helpers() + 1) : 1;
  if (part.offset < end && part.status == Errc::ok) {
    const std::uint64_t piece_bytes = kPiecePages << device_.page_shift;
    const std::uint64_t piece = part.offset / piece_bytes;
    part.length = std::min(end, (piece + threads) * piece_bytes) - part.offset;
    if (helped) {
      execute_divided(part);
    } else {
      execute_alone(part);
    }
    part.offset += part.length;
  }
  request.status = part.status;
  request.done = part.offset - request.offset;
  return part.offset == end || part.status != Errc::ok;
}

// ---- async ------------------------------------------------------------------------------------

void Executor::post(Queue& queue, std::span<Request* const> batch) noexcept {
  if (batch.empty()) {
    return;
  }
  for (std::size_t i = 0; i < batch.size(); ++i) {
    batch[i]->queue = &queue;
    batch[i]->next = i + 1 < batch.size() ? batch[i + 1] : nullptr;
  }
  const auto count = static_cast<std::uint32_t>(batch.size());
  queue.in_flight_.fetch_add(count, std::memory_order_relaxed);
  if (!backlog_.push(batch.front(), batch.back(), count)) {
    // The mode has just changed.
    queue.in_flight_.fetch_sub(count, std::memory_order_relaxed);
    complete(queue, batch);
  }
}

void Executor::Backlog::open(std::uint32_t workers) noexcept {
  const MutexLock lock(mutex_);
  most_ = workers;
  open_ = true;
}

void Executor::Backlog::close() noexcept {
  {
    const MutexLock lock(mutex_);
    open_ = false;
  }
  for (std::uint32_t active = active_.load(std::memory_order_acquire); active != 0;
       active = active_.load(std::memory_order_acquire)) {
    active_.wait(active, std::memory_order_acquire);
  }
  // The last worker has let go of the mutex, too.
  const MutexLock lock(mutex_);
}

bool Executor::Backlog::push(Request* first, Request* last, std::uint32_t count) noexcept {
  std::uint32_t to_summon = 0;
  {
    const MutexLock lock(mutex_);
    if (!open_) {
      return false;
    }
    if (first_ == nullptr) {
      first_ = first;
    } else {
      last_->next = first;
    }
    last_ = last;
    queued_ += count;
    const std::uint32_t active = active_.load(std::memory_order_relaxed);
    to_summon = std::min(most_, queued_) - std::min(active, std::min(most_, queued_));
    active_.store(active + to_summon, std::memory_order_relaxed);
  }
  for (; to_summon != 0; --to_summon) {
    executor_.workers_->summon(*this);
  }
  return true;
}

Request* Executor::Backlog::take() noexcept {
  const MutexLock lock(mutex_);
  if (first_ == nullptr) {
    active_.fetch_sub(1, std::memory_order_release);
    active_.notify_all();
    return nullptr;
  }
  std::uint32_t count = std::clamp(queued_ / (2 * most_), 1U, kMostTaken);
  queued_ -= count;
  Request* const taken = first_;
  Request* end = first_;
  while (--count != 0) {
    end = end->next;
  }
  first_ = end->next;
  end->next = nullptr;
  return taken;
}

void Executor::Backlog::run() noexcept {
  while (Request* request = take()) {
    while (request != nullptr) {
      Request* const next = request->next;
      if (request->length < kWorthDividingBytes) {
        executor_.execute_alone(*request);
      } else {
        executor_.execute_divided(*request);
      }
      request->queue->arrive(*request);
      request = next;
    }
  }
}

// ---- modes ------------------------------------------------------------------------------------

Executor::Executor(Device::Impl& device)
    : device_(device), workers_(process_wide<Workers>()), backlog_(*this) {}

Executor::~Executor() {
  backlog_.close();
  workers_->reserve(-static_cast<std::int32_t>(chores_reserved_));
}

Result<void> Executor::set_mode(Mode mode, std::uint32_t workers) {
  if (workers > kMaxWorkers) {
    return Error{Errc::invalid_argument, 0,
                 "workers " + std::to_string(workers) + ": expected 0 (one per CPU) to " +
                     std::to_string(kMaxWorkers)};
  }
  const MutexLock lock(mode_mutex_);
  const std::uint32_t threads = workers == 0 ? workers_->parallelism() : workers;
  if (mode == Mode::async) {
    if (Result<void> started = workers_->start(threads); !started) {
      return started;
    }
    if (threads > chores_reserved_) {
      workers_->reserve(static_cast<std::int32_t>(threads - chores_reserved_));
      chores_reserved_ = threads;
    }
    backlog_.open(threads);
  } else if (mode == Mode::automatic && device_.options.reserve_bytes != 0) {
    // Left to themselves they start when a submitter first wants them.
    if (Result<void> started = workers_->start(workers_->cpus()); !started) {
      return started;
    }
  }
  mode_.store(mode, std::memory_order_relaxed);
  workers_set_.store(workers, std::memory_order_relaxed);
  if (mode != Mode::async) {
    backlog_.close();
  }
  return {};
}

}  // namespace uzram::engine
