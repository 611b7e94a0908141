#include "engine/streams.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <tuple>
#include <utility>

#include "base/cpu.hpp"
#include "base/mutex.hpp"
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
  auto set = std::shared_ptr<StreamSet>(new StreamSet);
  set->codec_ = std::move(*codec);
  if (auto filled = set->fill(page_size_bytes, shared_streams); !filled) {
    return std::move(filled).error();
  }
  known.sets.emplace_back(key, set);
  return set;
}

Result<void> StreamSet::fill(std::uint32_t page_size_bytes, std::uint32_t shared_streams) {
  const std::uint32_t cpus = usable_cpus();
  per_cpu_ = shared_streams == 0 ? cpus : 0;
  // A spare for each four CPUs: only preempted threads leave their stream busy.
  const std::size_t count = shared_streams == 0 ? cpus + std::max(1U, cpus / 4) : shared_streams;
  for (std::size_t i = 0; i < count; ++i) {
    auto stream = std::make_unique<Stream>();
    auto workspace = codec_->make_workspace();
    if (!workspace) {
      return std::move(workspace).error();
    }
    stream->workspace = std::move(*workspace);
    stream->compressed = std::make_unique<std::byte[]>(page_size_bytes);
    stream->page = std::make_unique<std::byte[]>(page_size_bytes);
    streams_.push_back(std::move(stream));
  }
  return {};
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
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    Stream& stream = *streams_[(per_cpu_ + i) % streams_.size()];
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
    released_.fetch_add(1, std::memory_order_seq_cst);
    os::futex_wake(&released_, 1);
  }
}

}  // namespace uzram::engine
