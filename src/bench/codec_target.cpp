// The bare codec: the limit of what a compressed device can reach.
//
// A write compresses into one buffer and keeps nothing but the number of the bank's page; a read
// decompresses the object of that page, compressed once beforehand and laid close to the others.
// There is no table of entries, no pool, no lock, and objects of a small bank stay in the caches.
// Pages never written read as zeroes; a page that does not shrink is copied, as the engine's raw
// pages are. Same-filled pages are compressed like any other.
#include <atomic>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/target.hpp"
#include "codec/codec.hpp"

namespace uzram::bench {
namespace {

constexpr std::uint32_t kNothing = ~std::uint32_t{0};

struct Object {
  std::uint64_t at = 0;
  std::uint32_t size = 0;
};

// What the ports of a target share.
struct Shared {
  std::unique_ptr<codec::Codec> codec;
  std::shared_ptr<const DataSet> data;
  // One for each page of the bank; of full size: stored raw.
  std::vector<Object> objects;
  std::vector<std::byte> bytes;
  // For each page of the disk the page of the bank it holds, or kNothing.
  std::vector<std::atomic<std::uint32_t>> contents;
};

class CodecPort final : public Port {
 public:
  CodecPort(Shared& shared, std::unique_ptr<codec::Workspace> workspace)
      : shared_(shared), workspace_(std::move(workspace)), room_(kDataPage) {}

  void submit(std::span<Request* const> batch) noexcept override {
    for (Request* const request : batch) {
      execute(*request);
      request->next = nullptr;
      *tail_ = request;
      tail_ = &request->next;
    }
  }

  Request* reap() noexcept override {
    Request* const request = head_;
    if (request != nullptr) {
      head_ = request->next;
      if (head_ == nullptr) {
        tail_ = &head_;
      }
    }
    return request;
  }

  bool has_completed() noexcept override { return head_ != nullptr; }

  void execute(Request& request) noexcept override {
    request.status = Errc::ok;
    if (request.op == Op::flush) {
      return;
    }
    const std::uint64_t size_bytes = shared_.contents.size() * kDataPage;
    if (request.offset > size_bytes || request.length > size_bytes - request.offset) {
      request.status = Errc::out_of_range;
      failed_ = request.status;
      return;
    }
    for (std::uint64_t done = 0; done < request.length && request.status == Errc::ok;
         done += kDataPage) {
      auto& content = shared_.contents[(request.offset + done) / kDataPage];
      if (request.op == Op::write) {
        write(content, request.buffer + done);
      } else if (request.op == Op::read) {
        request.status = read(content, request.buffer + done);
      } else {
        content.store(kNothing, std::memory_order_relaxed);
      }
    }
  }

  std::string failure() const override {
    return failed_ == Errc::out_of_range ? std::string(describe(failed_))
                                         : "an object of the codec did not decompress";
  }

 private:
  void write(std::atomic<std::uint32_t>& content, const std::byte* page) noexcept {
    const auto result = shared_.codec->compress(*workspace_, {page, kDataPage}, room_);
    if (result.status != Errc::ok) {
      std::memcpy(room_.data(), page, kDataPage);
    }
    content.store(shared_.data->index_at(page), std::memory_order_relaxed);
  }

  Errc read(const std::atomic<std::uint32_t>& content, std::byte* page) noexcept {
    const std::uint32_t index = content.load(std::memory_order_relaxed);
    if (index == kNothing) {
      std::memset(page, 0, kDataPage);
      return Errc::ok;
    }
    const Object& object = shared_.objects[index];
    if (object.size == kDataPage) {
      std::memcpy(page, shared_.data->at(index), kDataPage);
      return Errc::ok;
    }
    return shared_.codec->decompress(workspace_.get(),
                                     std::span(shared_.bytes).subspan(object.at, object.size),
                                     {page, kDataPage});
  }

  Shared& shared_;
  std::unique_ptr<codec::Workspace> workspace_;
  std::vector<std::byte> room_;
  Errc failed_ = Errc::corrupt;
  Request* head_ = nullptr;
  Request** tail_ = &head_;
};

class CodecTarget final : public Target {
 public:
  explicit CodecTarget(std::unique_ptr<Shared> shared) : shared_(std::move(shared)) {
    info_.path = "function call, codec alone";
    info_.algorithm = shared_->codec->name();
    info_.level = shared_->codec->level();
  }

  const TargetInfo& info() const noexcept override { return info_; }

  Result<std::unique_ptr<Port>> open_port(std::uint32_t /*iodepth*/) override {
    auto workspace = shared_->codec->make_workspace();
    if (!workspace) {
      return std::move(workspace).error();
    }
    return std::unique_ptr<Port>(std::make_unique<CodecPort>(*shared_, *std::move(workspace)));
  }

  MemoryUse memory() const override {
    std::uint64_t stored = 0;
    std::uint64_t compressed = 0;
    for (const auto& content : shared_->contents) {
      const std::uint32_t index = content.load(std::memory_order_relaxed);
      if (index != kNothing) {
        ++stored;
        compressed += shared_->objects[index].size;
      }
    }
    return {stored * kDataPage, compressed, std::nullopt, std::nullopt};
  }

 private:
  std::unique_ptr<Shared> shared_;
  TargetInfo info_;
};

// Compresses every page of the bank.
Result<void> compress_bank(Shared& shared) {
  auto workspace = shared.codec->make_workspace();
  if (!workspace) {
    return std::move(workspace).error();
  }
  std::vector<std::byte> room(kDataPage);
  for (std::uint32_t index = 0; index < shared.data->pages(); ++index) {
    const auto result =
        shared.codec->compress(**workspace, {shared.data->at(index), kDataPage}, room);
    const bool shrank = result.status == Errc::ok && result.size < kDataPage;
    shared.objects.push_back(
        {shared.bytes.size(), shrank ? result.size : static_cast<std::uint32_t>(kDataPage)});
    if (shrank) {
      shared.bytes.insert(shared.bytes.end(), room.begin(),
                          room.begin() + static_cast<std::ptrdiff_t>(result.size));
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Target>> open_codec_target(const TargetConfig& config,
                                                  const TargetNeeds& needs) {
  auto codec = codec::make(config.device.options.algorithm, config.device.options.level, kDataPage);
  if (!codec) {
    return std::move(codec).error();
  }
  auto shared = std::make_unique<Shared>();
  shared->codec = *std::move(codec);
  shared->data = needs.data;
  if (auto compressed = compress_bank(*shared); !compressed) {
    return std::move(compressed).error();
  }
  shared->contents = std::vector<std::atomic<std::uint32_t>>(
      static_cast<std::size_t>(needs.size_bytes / kDataPage));
  for (auto& content : shared->contents) {
    content.store(kNothing, std::memory_order_relaxed);
  }
  return std::unique_ptr<Target>(std::make_unique<CodecTarget>(std::move(shared)));
}

}  // namespace uzram::bench
