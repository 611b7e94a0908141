// Codec: one compressor behind the interface the engine uses.
//
// Role: step 5 of the data path. A Codec is an immutable, configured compressor (algorithm, level,
// page size); a Workspace is the working memory one thread needs to run it. Streams own workspaces.
// Units: bytes. Input of compress is one page; dst of decompress is exactly one page.
// Errors: incompressible when the result does not fit `dst`; corrupt when `src` does not decode to
// exactly `dst.size()` bytes. No other failure exists on the path; workspaces are made at set-up.
// Threads: a Codec may be used from any number of threads, each with its own Workspace. One that can
// be trained (codec/trainable.hpp) may be given further tables meanwhile.
// Invariants: 1. compress writes only inside dst, decompress only inside dst, and neither reads
// outside src, whatever the bytes of src are. 2. Neither allocates, throws or logs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "uzram/error.hpp"

namespace uzram::codec {

struct CompressResult {
  Errc status = Errc::ok;
  // Bytes written to dst; valid when status is ok, then at least 1.
  std::uint32_t size = 0;
};

// Working memory of one compressor; subclassed by each codec. All memory is taken at creation.
class Workspace {
 public:
  Workspace() = default;
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  virtual ~Workspace() = default;
};

class TrainableCodec;

class Codec {
 public:
  Codec() = default;
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;
  virtual ~Codec() = default;

  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  [[nodiscard]] virtual int level() const noexcept = 0;

  // Errors: system (ENOMEM).
  [[nodiscard]] virtual Result<std::unique_ptr<Workspace>> make_workspace() const = 0;

  // Whether decompress needs a workspace; when false it may be given nullptr.
  [[nodiscard]] virtual bool decompress_needs_workspace() const noexcept = 0;

  // REQUIRES: workspace made by this codec; src.size() is the page size; dst.size() >= 1.
  [[nodiscard]] virtual CompressResult compress(Workspace& workspace,
                                                std::span<const std::byte> src,
                                                std::span<std::byte> dst) const noexcept = 0;

  // REQUIRES: dst.size() is the page size.
  virtual Errc decompress(Workspace* workspace, std::span<const std::byte> src,
                          std::span<std::byte> dst) const noexcept = 0;

  // The codec as one that can be trained; nullptr when it cannot.
  [[nodiscard]] virtual TrainableCodec* trainable() noexcept { return nullptr; }
};

// One line of the registry.
struct CodecInfo {
  std::string_view name;
  // Levels outside [min_level, max_level] are refused; default_level is taken when none is given.
  int min_level = 0;
  int max_level = 0;
  int default_level = 0;
  // What the level means, for help texts: "acceleration, higher is faster".
  std::string_view level_meaning;
  // REQUIRES: level in range; page_size_bytes is a power of two from 4096 to 65536.
  Result<std::unique_ptr<Codec>> (*make)(int level, std::uint32_t page_size_bytes) = nullptr;
  // The names of all levels from min_level on; empty where levels have none.
  std::span<const std::string_view> level_names = {};
  // Whether its codecs are TrainableCodecs.
  bool trainable = false;
};

// All codecs of this build, in the order they are offered.
[[nodiscard]] std::span<const CodecInfo> registry() noexcept;

// nullptr when there is no such codec.
[[nodiscard]] const CodecInfo* find(std::string_view name) noexcept;

// A level as users write it: a number, or one of the codec's level_names. Not checked against the
// codec's range; nullopt when it is neither.
[[nodiscard]] std::optional<int> level_from(const CodecInfo& info, std::string_view text) noexcept;

// What level_from takes: "a whole number" or "fast, default, high or a whole number".
[[nodiscard]] std::string level_forms(const CodecInfo& info);

// The names of the registry, separated by ", ", for messages.
[[nodiscard]] std::string names();
// The same of those that can be trained.
[[nodiscard]] std::string trainable_names();

// Errors: invalid_argument with a message that names the algorithm or the level and what is
// possible.
Result<std::unique_ptr<Codec>> make(std::string_view name, std::optional<int> level,
                                    std::uint32_t page_size_bytes);

}  // namespace uzram::codec
