#include "engine/streams.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "base/cpu.hpp"
#include "base/mutex.hpp"
#include "base/process_wide.hpp"
#include "os/futex.hpp"

namespace uzram::engine {
namespace {

struct Key {
  std::string algorithm;
  int level = 0;
  std::uint32_t page_size_bytes = 0;
  std::uint32_t shared_streams = 0;

  bool operator==(const Key&) const = default;
};

struct Registry {
  Mutex mutex;
  std::vector<std::pair<Key, std::weak_ptr<StreamSet>>> sets UZRAM_GUARDED_BY(mutex);
};

Registry& registry() {
  static Registry instance;
  return instance;
}

}  // namespace

Result<std::shared_ptr<StreamSet>> StreamSet::get(const std::string& algorithm,
                                                  std::optional<int> level,
                                                  std::uint32_t page_size_bytes,
                                                  std::uint32_t shared_streams) {
  auto codec = codec::make(algorithm, level, page_size_bytes);
  if (!codec) {
    return std::move(codec).error();
  }
  const Key key{algorithm, (*codec)->level(), page_size_bytes, shared_streams};
  Registry& known = registry();
  const MutexLock lock(known.mutex);
  std::erase_if(known.sets, [](const auto& item) { return item.second.expired(); });
  for (const auto& [other, weak] : known.sets) {
    if (auto set = weak.lock(); other == key && set != nullptr) {
      return set;
    }
  }
  auto set = make(*std::move(codec), page_size_bytes, shared_streams, nullptr);
  if (set) {
    known.sets.emplace_back(key, *set);
  }
  return set;
}

Result<std::shared_ptr<StreamSet>> StreamSet::make_trainable(const std::string& algorithm,
                                                             std::optional<int> level,
                                                             std::uint32_t page_size_bytes,
                                                             std::uint32_t shared_streams) {
  auto codec = codec::make(algorithm, level, page_size_bytes);
  if (!codec) {
    return std::move(codec).error();
  }
  if ((*codec)->trainable() == nullptr) {
    return Error{
        Errc::invalid_argument, 0,
        "algorithm \"" + algorithm + "\" cannot be trained: expected " + codec::trainable_names()};
  }
  return make(*std::move(codec), page_size_bytes, shared_streams, std::make_unique<Sampling>());
}

Result<std::shared_ptr<StreamSet>> StreamSet::make(std::unique_ptr<codec::Codec> codec,
                                                   std::uint32_t page_size_bytes,
                                                   std::uint32_t shared_streams,
                                                   std::unique_ptr<Sampling> sampling) {
  auto set = std::shared_ptr<StreamSet>(
      new StreamSet(std::move(codec), page_size_bytes, shared_streams, std::move(sampling)));
  // A spare for each four CPUs to begin with: only preempted threads leave their stream busy.
  const std::size_t first = shared_streams != 0
                                ? shared_streams
                                : set->per_cpu_ + std::max<std::size_t>(1, set->per_cpu_ / 4);
  while (set->size() < first) {
    if (auto added = set->add_stream(); !added) {
      return std::move(added).error();
    }
  }
  if (set->size() < set->capacity_) {
    set->keeper_ = process_wide<Housekeeper>();
    set->keeper_->add(*set);
  }
  return set;
}

StreamSet::StreamSet(std::unique_ptr<codec::Codec> codec, std::uint32_t page_size_bytes,
                     std::uint32_t shared_streams, std::unique_ptr<Sampling> sampling)
    : codec_(std::move(codec)),
      sampling_(std::move(sampling)),
      page_size_bytes_(page_size_bytes),
      per_cpu_(shared_streams == 0 ? usable_cpus() : 0),
      capacity_(shared_streams == 0 ? per_cpu_ + std::max(kMostSpares, per_cpu_ / 4)
                                    : shared_streams),
      streams_(std::make_unique<std::unique_ptr<Stream>[]>(capacity_)) {}

StreamSet::~StreamSet() {
  if (keeper_) {
    keeper_->remove(*this);
  }
}

Result<void> StreamSet::add_stream() {
  auto stream = std::make_unique<Stream>();
  auto workspace = codec_->make_workspace();
  if (!workspace) {
    return std::move(workspace).error();
  }
  stream->workspace = std::move(*workspace);
  stream->compressed = std::make_unique<std::byte[]>(page_size_bytes_);
  stream->page = std::make_unique<std::byte[]>(page_size_bytes_);
  if (sampling_) {
    stream->samples = std::make_unique<Sampling::Slot>(*sampling_, page_size_bytes_);
  }
  const std::size_t count = size_.load(std::memory_order_relaxed);
  streams_[count] = std::move(stream);
  size_.store(count + 1, std::memory_order_release);
  return {};
}

std::chrono::nanoseconds StreamSet::tidy() noexcept {
  try {
    while (waiting_.load(std::memory_order_relaxed) != 0 && size() < capacity_ && add_stream()) {
      wake_waiting();
    }
  } catch (const std::bad_alloc&) {
    // Those that wait get a stream when one is released.
  }
  return kNever;
}

Stream* StreamSet::try_acquire() noexcept {
  const auto take = [](Stream& stream) {
    return !stream.busy.load(std::memory_order_seq_cst) &&
           !stream.busy.exchange(true, std::memory_order_seq_cst);
  };
  if (per_cpu_ != 0) {
    Stream& own = *streams_[current_cpu_slot() % per_cpu_];
    if (take(own)) [[likely]] {
      return &own;
    }
  }
  // Spares lie behind the per-CPU streams; the last resort is another CPU's.
  const std::size_t count = size();
  for (std::size_t i = 0; i < count; ++i) {
    Stream& stream = *streams_[(per_cpu_ + i) % count];
    if (take(stream)) {
      return &stream;
    }
  }
  return nullptr;
}

Stream& StreamSet::acquire() noexcept {
  if (Stream* stream = try_acquire(); stream != nullptr) [[likely]] {
    return *stream;
  }
  waiting_.fetch_add(1, std::memory_order_seq_cst);
  if (keeper_ && size() < capacity_) {
    poke();
  }
  for (;;) {
    const std::uint32_t seen = released_.load(std::memory_order_seq_cst);
    if (Stream* stream = try_acquire(); stream != nullptr) {
      waiting_.fetch_sub(1, std::memory_order_relaxed);
      return *stream;
    }
    os::futex_wait(&released_, seen);
  }
}

void StreamSet::release(Stream& stream) noexcept {
  stream.busy.exchange(false, std::memory_order_seq_cst);
  if (waiting_.load(std::memory_order_seq_cst) != 0) [[unlikely]] {
    wake_waiting();
  }
}

void StreamSet::wake_waiting() noexcept {
  released_.fetch_add(1, std::memory_order_seq_cst);
  os::futex_wake(&released_, 1);
}

}  // namespace uzram::engine
