// Streams: the working memory of compressors.
//
// Role: step 5 of the data path. A stream is one codec workspace and two page buffers, used by
// one thread at a time. Per-CPU: a thread prefers its CPU's stream and, when that one is busy
// because its user was preempted, takes a spare. Shared: N streams for all threads; a thread
// waits for a free one, as zram's threads did before Linux 4.7.
// Ownership: streams belong to the process; devices with the same codec, level and page size
// share a set.
// Errors: at set-up only; all memory is taken at creation.
// Threads: acquire and release from any.
// Lock order: a thread takes a stream before it locks an entry, and at most one of each.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "uzram/error.hpp"

#include "codec/codec.hpp"

namespace uzram::engine {

struct alignas(64) Stream {
  std::atomic<bool> busy{false};
  std::unique_ptr<codec::Workspace> workspace;
  // The compressed result, and the page that a partial write patches; a page each.
  std::unique_ptr<std::byte[]> compressed;
  std::unique_ptr<std::byte[]> page;
};

class StreamSet {
 public:
  // `shared_streams`: 0 is per-CPU. Sets in use are found again by their parameters.
  // Errors: invalid_argument (algorithm, level), system (no memory).
  static Result<std::shared_ptr<StreamSet>> get(const std::string& algorithm,
                                                std::optional<int> level,
                                                std::uint32_t page_size_bytes,
                                                std::uint32_t shared_streams);

  [[nodiscard]] const codec::Codec& codec() const noexcept { return *codec_; }
  [[nodiscard]] std::size_t size() const noexcept { return streams_.size(); }

  // Waits until a stream is free.
  [[nodiscard]] Stream& acquire() noexcept;
  void release(Stream& stream) noexcept;

 private:
  StreamSet() = default;
  Result<void> fill(std::uint32_t page_size_bytes, std::uint32_t shared_streams);
  Stream* try_acquire() noexcept;

  std::shared_ptr<const codec::Codec> codec_;
  std::vector<std::unique_ptr<Stream>> streams_;
  // Streams tried by their CPU first; 0 when shared.
  std::size_t per_cpu_ = 0;
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
