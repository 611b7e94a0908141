#include "bench/target.hpp"

#include <utility>

#include "bench/slow_port.hpp"

namespace uzram::bench {
namespace {

Result<std::unique_ptr<Target>> open_kind(const TargetConfig& config, const TargetNeeds& needs) {
  switch (config.kind) {
    case TargetKind::engine:
      return open_engine_target(config, needs);
    case TargetKind::codec:
      return open_codec_target(config, needs);
    case TargetKind::zram:
      return open_zram_target(config, needs);
    case TargetKind::block_device:
      return open_block_target(config, needs);
    case TargetKind::nbd:
      break;
  }
  return open_nbd_target(config, needs);
}

Error name_target(const TargetConfig& config, Error error) {
  error.message.insert(0, "target " + config.label + ": ");
  return error;
}

}  // namespace

Result<std::unique_ptr<Target>> open_target(const TargetConfig& config, const TargetNeeds& needs) {
  auto target = open_kind(config, needs);
  if (!target) {
    return name_target(config, std::move(target).error());
  }
  if (config.slowdown_percent > 0) {
    return make_slow_target(*std::move(target), config.slowdown_percent);
  }
  return target;
}

Result<void> check_target(const TargetConfig& config, std::uint64_t size_bytes, bool consent) {
  switch (config.kind) {
    case TargetKind::block_device:
      // Names the device itself.
      return check_block_target(config, size_bytes, consent);
    case TargetKind::nbd:
      if (auto allowed = check_nbd_target(config, size_bytes, consent); !allowed) {
        return name_target(config, std::move(allowed).error());
      }
      break;
    case TargetKind::engine:
    case TargetKind::codec:
    case TargetKind::zram:
      break;
  }
  return {};
}

}  // namespace uzram::bench
