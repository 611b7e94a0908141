// Streams: the working memory of compressors.
//
// Role: step 5 of the data path. A stream is one codec workspace and two page buffers, used by one
// thread at a time. Per-CPU: a thread prefers its CPU's stream and, when that one is busy because
// its user was preempted, takes a spare; the housekeeper adds spares when a thread had to wait for
// one. Shared: N streams for all threads; a thread waits for a free one, as zram's threads did
// before Linux 4.7.
// Ownership: streams belong to the process; devices with the same codec, level and page size
// share a set. One that trains its codec has a set of its own.
// Errors: at set-up only; a stream's memory is all taken when it is made. A spare that cannot be
// made is done without.
// Threads: acquire and release from any.
// Lock order: a thread takes a stream before it locks an entry, and at most one of each.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "uzram/error.hpp"

#include "codec/codec.hpp"
#include "engine/housekeeper.hpp"
#include "engine/sampling.hpp"

namespace uzram::engine {

struct alignas(64) Stream {
  std::atomic<bool> busy{false};
  std::unique_ptr<codec::Workspace> workspace;
  // The compressed result, and the page that a partial write patches; a page each.
  std::unique_ptr<std::byte[]> compressed;
  std::unique_ptr<std::byte[]> page;
  // Only where pages are sampled.
  std::unique_ptr<Sampling::Slot> samples;
};

class StreamSet final : private Housekeeper::Client {
 public:
  // More spares than this are not added: it is memory, and so many threads at once are rare.
  static constexpr std::size_t kMostSpares = 64;

  // `shared_streams`: 0 is per-CPU. Sets in use are found again by their parameters.
  // Errors: invalid_argument (algorithm, level), system (no memory).
  static Result<std::shared_ptr<StreamSet>> get(const std::string& algorithm,
                                                std::optional<int> level,
                                                std::uint32_t page_size_bytes,
                                                std::uint32_t shared_streams);
  // A set that nobody else gets, of a codec that can be trained, whose streams sample pages. Errors:
  // those of get; invalid_argument when the algorithm cannot be trained.
  static Result<std::shared_ptr<StreamSet>> make_trainable(const std::string& algorithm,
                                                           std::optional<int> level,
                                                           std::uint32_t page_size_bytes,
                                                           std::uint32_t shared_streams);
  ~StreamSet();
  StreamSet(const StreamSet&) = delete;
  StreamSet& operator=(const StreamSet&) = delete;

  [[nodiscard]] const codec::Codec& codec() const noexcept { return *codec_; }
  // nullptr for sets that are shared.
  [[nodiscard]] codec::TrainableCodec* trainable() noexcept {
    return sampling_ ? codec_->trainable() : nullptr;
  }
  [[nodiscard]] Sampling* sampling() noexcept { return sampling_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_.load(std::memory_order_acquire); }
  // REQUIRES: index < size().
  [[nodiscard]] Stream& stream(std::size_t index) noexcept { return *streams_[index]; }

  // Waits until a stream is free.
  [[nodiscard]] Stream& acquire() noexcept;
  void release(Stream& stream) noexcept;

 private:
  StreamSet(std::unique_ptr<codec::Codec> codec, std::uint32_t page_size_bytes,
            std::uint32_t shared_streams, std::unique_ptr<Sampling> sampling);
  static Result<std::shared_ptr<StreamSet>> make(std::unique_ptr<codec::Codec> codec,
                                                 std::uint32_t page_size_bytes,
                                                 std::uint32_t shared_streams,
                                                 std::unique_ptr<Sampling> sampling);
  // REQUIRES: size() < capacity_; called by one thread at a time.
  Result<void> add_stream();
  // Adds a spare while threads wait.
  std::chrono::nanoseconds tidy() noexcept override;
  void wake_waiting() noexcept;
  Stream* try_acquire() noexcept;

  const std::unique_ptr<codec::Codec> codec_;
  const std::unique_ptr<Sampling> sampling_;
  const std::uint32_t page_size_bytes_;
  // Streams tried by their CPU first; 0 when shared.
  const std::size_t per_cpu_;
  const std::size_t capacity_;
  // The first size_ of capacity_ are there.
  const std::unique_ptr<std::unique_ptr<Stream>[]> streams_;
  std::atomic<std::size_t> size_{0};
  // Looks after sets that may grow.
  std::shared_ptr<Housekeeper> keeper_;
  // Waiting threads, and the futex word that changes at each release they may be waiting for.
  alignas(64) std::atomic<std::uint32_t> waiting_{0};
  std::atomic<std::uint32_t> released_{0};
};

class StreamLease {
 public:
  explicit StreamLease(StreamSet& set) noexcept : set_(set), stream_(&set.acquire()) {}
  ~StreamLease() { set_.release(*stream_); }
  StreamLease(const StreamLease&) = delete;
  StreamLease& operator=(const StreamLease&) = delete;
  Stream* operator->() const noexcept { return stream_; }
  Stream& operator*() const noexcept { return *stream_; }

 private:
  StreamSet& set_;
  Stream* stream_;
};

}  // namespace uzram::engine
