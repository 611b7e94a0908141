#include "uzram/device.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/size.hpp"
#include "engine/device_impl.hpp"
#include "engine/reserve_option.hpp"
#include "engine/train_option.hpp"

namespace uzram {
namespace {

constexpr std::uint32_t kMaxPageSize = 16384;

Error invalid(const DeviceOptions& options, const std::string& what) {
  return {Errc::invalid_argument, 0, "device " + options.name + ": " + what};
}

Result<void> check_options(const DeviceOptions& options) {
  const std::uint32_t page = options.page_size_bytes;
  if (!std::has_single_bit(page) || page < kDefaultPageSize || page > kMaxPageSize) {
    return invalid(options, "page size " + std::to_string(page) + ": expected 4096, 8192 or 16384");
  }
  const std::uint64_t size = options.disksize_bytes;
  if (size == 0 || size % page != 0 || size > kMaxDiskSize) {
    return invalid(options, "size " + std::to_string(size) + ": expected a multiple of the page (" +
                                std::to_string(page) + "), at least one page and at most " +
                                format_size(kMaxDiskSize));
  }
  if (options.max_comp_streams > kMaxCompStreams) {
    return invalid(options, "max_comp_streams " + std::to_string(options.max_comp_streams) +
                                ": expected 0 (one per CPU) to " + std::to_string(kMaxCompStreams));
  }
  if (auto checked = engine::check_reserve(options); !checked) {
    return invalid(options, checked.error().message);
  }
  if (auto checked = engine::check_train(options); !checked) {
    return invalid(options, checked.error().message);
  }
  return {};
}

engine::Header header_of(const DeviceOptions& options, engine::StreamSet& streams) {
  engine::Header header = {};
  header.page_size_bytes = options.page_size_bytes;
  header.disksize_bytes = options.disksize_bytes;
  header.mem_limit_bytes = options.mem_limit_bytes;
  engine::CodecSlot& slot = header.codecs[0];
  std::copy_n(options.algorithm.data(), std::min(options.algorithm.size(), slot.name.size() - 1),
              slot.name.data());
  slot.level = options.level.value_or(0);
  if (const codec::TrainableCodec* const trainable = streams.trainable(); trainable != nullptr) {
    header.recipe_slot_bytes = static_cast<std::uint32_t>(trainable->max_recipe_bytes());
  }
  return header;
}

constexpr std::array<std::byte, kMaxPageSize> kZeroes{};

}  // namespace

Device::Impl::Impl(DeviceOptions device_options, std::unique_ptr<engine::PageTable> table,
                   std::unique_ptr<engine::Pool> pool,
                   const std::shared_ptr<engine::StreamSet>& streams)
    : options(std::move(device_options)),
      page_shift(static_cast<std::uint32_t>(std::countr_zero(options.page_size_bytes))),
      store(std::move(table), std::move(pool), streams, options.page_size_bytes, options.name),
      executor(*this) {
  if (options.background) {
    upkeep.emplace(store);
  }
  if (options.train) {
    training.emplace(*streams, store.table(), engine::Room::process(), options.page_size_bytes);
  }
}

Result<std::unique_ptr<Device>> Device::create(const DeviceOptions& options) {
  if (auto checked = check_options(options); !checked) {
    return std::move(checked).error();
  }
  auto streams = (options.train ? engine::StreamSet::make_trainable : engine::StreamSet::get)(
      options.algorithm, options.level, options.page_size_bytes, options.max_comp_streams);
  if (!streams) {
    return std::move(streams).error();
  }
  DeviceOptions filled = options;
  filled.level = (*streams)->codec().level();
  engine::Room& room = engine::Room::process();
  const std::uint32_t kept_spans = engine::reserve_spans_of(options);
  filled.reserve_bytes = std::uint64_t{kept_spans} * engine::kSpanBytes;
  auto table = engine::PageTable::create(options.name, header_of(filled, **streams), room,
                                         kept_spans != 0, options.checksum);
  if (!table) {
    return std::move(table).error();
  }
  auto pool = engine::Pool::create(options.name, options.page_size_bytes, options.mem_limit_bytes,
                                   room, kept_spans, (*table)->sums());
  if (!pool) {
    return std::move(pool).error();
  }
  auto impl = std::make_unique<Impl>(std::move(filled), std::move(*table), std::move(*pool),
                                     std::move(*streams));
  if (Result<void> set = impl->executor.set_mode(options.mode, options.workers); !set) {
    Error error = std::move(set).error();
    error.message = "device " + options.name + ": " + error.message;
    return error;
  }
  return std::unique_ptr<Device>(new Device(std::move(impl)));
}

Device::Device(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Device::~Device() = default;

// ---- the data path ----------------------------------------------------------------------------

Errc Device::Impl::carry_out(const Request& request) noexcept {
  const auto length = static_cast<std::size_t>(request.length);
  switch (request.op) {
    case Op::read:
      return read(request.offset, {request.buffer, length});
    case Op::write:
      return write(request.offset, {request.buffer, length});
    case Op::discard:
      return discard(request.offset, request.length);
    case Op::write_zeroes:
      return write_zeroes(request.offset, request.length, false);
    case Op::allocate_zeroes:
      return write_zeroes(request.offset, request.length, true);
    case Op::flush:
      return Errc::ok;
  }
  return Errc::invalid_argument;
}

bool Device::Impl::first_page(const Request& request, engine::PageIndex& page) const noexcept {
  page = request.offset >> page_shift;
  return (request.op == Op::read || request.op == Op::write || request.op == Op::discard) &&
         request.offset < options.disksize_bytes;
}

Errc Device::Impl::check_range(std::uint64_t offset, std::uint64_t length) noexcept {
  const Errc status = range_status(offset, length);
  if (status != Errc::ok) [[unlikely]] {
    store.stats().add(engine::Counter::invalid_io, 1);
  }
  return status;
}

Errc Device::Impl::range_status(std::uint64_t offset, std::uint64_t length) const noexcept {
  if (length == 0 || (offset | length) % kSectorSize != 0) {
    return Errc::invalid_argument;
  }
  if (length > options.disksize_bytes || offset > options.disksize_bytes - length) {
    return Errc::out_of_range;
  }
  return Errc::ok;
}

Errc Device::Impl::write(std::uint64_t offset, std::span<const std::byte> buffer) noexcept {
  if (const Errc failed = check_range(offset, buffer.size()); failed != Errc::ok) {
    return failed;
  }
  engine::ScopedTally tally(store.stats());
  while (!buffer.empty()) {
    const engine::PageIndex page = offset >> page_shift;
    const std::uint32_t from = offset_in_page(offset);
    const auto piece =
        buffer.first(std::min<std::size_t>(buffer.size(), options.page_size_bytes - from));
    const Errc status = piece.size() == options.page_size_bytes
                            ? store.write_page(page, piece, tally)
                            : store.write_part(page, from, piece, tally);
    if (status != Errc::ok) [[unlikely]] {
      return status;
    }
    buffer = buffer.subspan(piece.size());
    offset += piece.size();
  }
  return Errc::ok;
}

Errc Device::Impl::read(std::uint64_t offset, std::span<std::byte> buffer) noexcept {
  if (const Errc failed = check_range(offset, buffer.size()); failed != Errc::ok) {
    return failed;
  }
  engine::ScopedTally tally(store.stats());
  while (!buffer.empty()) {
    const std::uint32_t from = offset_in_page(offset);
    const auto piece =
        buffer.first(std::min<std::size_t>(buffer.size(), options.page_size_bytes - from));
    if (buffer.size() > piece.size()) {
      store.prefetch_object((offset >> page_shift) + 1);
    }
    const Errc status = store.read_part(offset >> page_shift, from, piece, tally);
    if (status != Errc::ok) [[unlikely]] {
      return status;
    }
    buffer = buffer.subspan(piece.size());
    offset += piece.size();
  }
  return Errc::ok;
}

Errc Device::Impl::discard(std::uint64_t offset, std::uint64_t length) noexcept {
  if (const Errc failed = check_range(offset, length); failed != Errc::ok) {
    return failed;
  }
  const engine::PageIndex first = (offset + options.page_size_bytes - 1) >> page_shift;
  const engine::PageIndex end = (offset + length) >> page_shift;
  if (first < end) {
    engine::ScopedTally tally(store.stats());
    store.drop(first, end, tally);
  }
  return Errc::ok;
}

// REQUIRES: the range lies within one page and is not the whole of it.
Errc Device::Impl::zero_part(std::uint64_t offset, std::uint64_t length, bool keep_allocated,
                             engine::Tally& tally) noexcept {
  const engine::PageIndex page = offset >> page_shift;
  const bool empty = !store.table().holds_anything(engine::PageTable::stretch_of(page)) ||
                     store.state_of(page) == ExtentState::hole;
  if (empty && !keep_allocated) {
    return Errc::ok;
  }
  return store.write_part(page, offset_in_page(offset), std::span(kZeroes).first(length), tally);
}

Errc Device::Impl::write_zeroes(std::uint64_t offset, std::uint64_t length,
                                bool keep_allocated) noexcept {
  if (const Errc failed = check_range(offset, length); failed != Errc::ok) {
    return failed;
  }
  engine::ScopedTally tally(store.stats());
  const std::uint64_t page_size = options.page_size_bytes;
  const std::uint64_t end = offset + length;
  const std::uint64_t first_whole = std::min(round_up(offset, page_size), end);
  const std::uint64_t end_whole = std::max(end & ~(page_size - 1), first_whole);
  if (offset < first_whole) {
    if (const Errc failed = zero_part(offset, first_whole - offset, keep_allocated, tally);
        failed != Errc::ok) {
      return failed;
    }
  }
  if (first_whole < end_whole) {
    const engine::PageIndex first_page = first_whole >> page_shift;
    const engine::PageIndex end_page = end_whole >> page_shift;
    if (!keep_allocated) {
      store.drop(first_page, end_page, tally);
    } else if (const Errc failed = store.fill_with_zeroes(first_page, end_page, tally);
               failed != Errc::ok) {
      return failed;
    }
  }
  return end_whole < end ? zero_part(end_whole, end - end_whole, keep_allocated, tally) : Errc::ok;
}

Extent Device::Impl::extent_at(std::uint64_t offset, std::uint64_t limit) const noexcept {
  const engine::PageTable& table = store.table();
  const auto state_of = [&](engine::PageIndex page) {
    return table.holds_anything(engine::PageTable::stretch_of(page)) ? store.state_of(page)
                                                                     : ExtentState::hole;
  };
  const engine::PageIndex end = (limit + options.page_size_bytes - 1) >> page_shift;
  engine::PageIndex page = offset >> page_shift;
  const ExtentState state = state_of(page);
  while (++page < end) {
    const std::uint64_t stretch = engine::PageTable::stretch_of(page);
    if (!table.holds_anything(stretch)) {
      if (state != ExtentState::hole) {
        break;
      }
      // Skip to the last page before the next stretch that holds something.
      const std::uint64_t holding =
          table.next_holding(stretch + 1, engine::PageTable::stretch_of(end - 1) + 1);
      page = std::min(end, holding << engine::kStretchShift) - 1;
    } else if (store.state_of(page) != state) {
      break;
    }
  }
  return {std::min(page << page_shift, limit) - offset, state};
}

// ---- the public face --------------------------------------------------------------------------

std::string_view mode_name(Mode mode) noexcept {
  return mode == Mode::nowait ? "nowait" : mode == Mode::async ? "async" : "auto";
}

std::optional<Mode> mode_from_name(std::string_view name) noexcept {
  for (const Mode mode : {Mode::nowait, Mode::async, Mode::automatic}) {
    if (name == mode_name(mode)) {
      return mode;
    }
  }
  return std::nullopt;
}

namespace {

Errc execute(Device::Impl& impl, Op op, std::uint64_t offset, std::uint64_t length,
             std::byte* buffer = nullptr) noexcept {
  Request request;
  request.op = op;
  request.offset = offset;
  request.length = length;
  request.buffer = buffer;
  impl.executor.execute(request);
  return request.status;
}

}  // namespace

Errc Device::read(std::uint64_t offset, std::span<std::byte> buffer) noexcept {
  return execute(*impl_, Op::read, offset, buffer.size(), buffer.data());
}
Errc Device::write(std::uint64_t offset, std::span<const std::byte> buffer) noexcept {
  // Requests have one kind of buffer; a write only reads it.
  return execute(*impl_, Op::write, offset, buffer.size(), const_cast<std::byte*>(buffer.data()));
}
Errc Device::discard(std::uint64_t offset, std::uint64_t length) noexcept {
  return execute(*impl_, Op::discard, offset, length);
}
Errc Device::write_zeroes(std::uint64_t offset, std::uint64_t length,
                          bool keep_allocated) noexcept {
  return execute(*impl_, keep_allocated ? Op::allocate_zeroes : Op::write_zeroes, offset, length);
}
// Everything acknowledged is where it belongs already.
Errc Device::flush() noexcept { return Errc::ok; }

Extent Device::extent_at(std::uint64_t offset, std::uint64_t limit) const noexcept {
  return impl_->extent_at(offset, limit);
}

std::uint64_t Device::compact() noexcept { return impl_->store.compact(); }

void Device::set_mem_limit(std::uint64_t bytes) noexcept {
  impl_->store.table().set_mem_limit(bytes);
  impl_->store.pool().set_limit(bytes);
}

Result<void> Device::set_mode(Mode mode, std::uint32_t workers) {
  return impl_->executor.set_mode(mode, workers);
}

Result<void> Device::set_training(bool on) {
  if (impl_->training) {
    impl_->training->set_wanted(on);
  } else if (on) {
    return invalid(impl_->options,
                   "train on: it was made without, and shares its tables; make it with train on");
  }
  return {};
}

void Device::reset_mem_used_max() noexcept { impl_->store.pool().reset_used_max(); }

void Device::count_invalid_io() noexcept {
  impl_->store.stats().add(engine::Counter::invalid_io, 1);
}

DeviceStats Device::stats() const noexcept {
  using engine::Counter;
  const engine::Stats& counters = impl_->store.stats();
  const engine::Pool& pool = impl_->store.pool();
  DeviceStats stats;
  stats.orig_data_size = counters.sum(Counter::stored_pages) * impl_->options.page_size_bytes;
  stats.compr_data_size = counters.sum(Counter::compr_bytes);
  stats.mem_used_total = pool.used_bytes();
  stats.mem_limit = pool.limit_bytes();
  stats.mem_used_max = pool.used_max_bytes();
  stats.same_pages = counters.sum(Counter::same_pages);
  stats.pages_compacted = counters.sum(Counter::pages_compacted);
  stats.huge_pages = counters.sum(Counter::huge_pages);
  stats.huge_pages_since = counters.sum(Counter::huge_pages_since);
  stats.failed_reads = counters.sum(Counter::failed_reads);
  stats.failed_writes = counters.sum(Counter::failed_writes);
  stats.invalid_io = counters.sum(Counter::invalid_io);
  stats.notify_free = counters.sum(Counter::notify_free);
  stats.corrupt_pages = counters.sum(Counter::corrupt_pages);
  stats.table_bytes = impl_->store.table().resident_bytes();
  stats.metadata_bytes = pool.metadata_bytes() + impl_->store.caches().memory_bytes();
  if (impl_->training) {
    const engine::Training::Stats training = impl_->training->stats();
    stats.metadata_bytes += training.memory_bytes;
    stats.generations = training.generations;
    stats.trained_saving = training.saving;
  }
  return stats;
}

DeviceOptions Device::options() const {
  DeviceOptions current = impl_->options;
  current.mem_limit_bytes = impl_->store.pool().limit_bytes();
  current.mode = impl_->executor.mode();
  current.workers = impl_->executor.workers();
  current.train = impl_->training && impl_->training->wanted();
  return current;
}

std::uint64_t Device::disksize_bytes() const noexcept { return impl_->options.disksize_bytes; }
std::uint32_t Device::page_size_bytes() const noexcept { return impl_->options.page_size_bytes; }
int Device::table_fd() const noexcept { return impl_->store.table().fd(); }
int Device::pool_fd() const noexcept { return impl_->store.pool().fd(); }

}  // namespace uzram
