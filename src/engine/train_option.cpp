#include "engine/train_option.hpp"

#include <string>

#include "codec/codec.hpp"

namespace uzram::engine {

Result<void> check_train(const DeviceOptions& options) {
  if (!options.train) {
    return {};
  }
  const auto refuse = [](const std::string& what) {
    return Error{Errc::invalid_argument, 0, "train on: " + what};
  };
  // An unknown algorithm is refused by whoever makes the codec, in its own words.
  const codec::CodecInfo* const info = codec::find(options.algorithm);
  if (info != nullptr && !info->trainable) {
    return refuse("algorithm \"" + options.algorithm + "\" cannot be trained; expected " +
                  codec::trainable_names() + ", or train off");
  }
  if (!options.background) {
    return refuse(
        "expected background on, for that is where tables are trained; leave out the one or the "
        "other");
  }
  return {};
}

}  // namespace uzram::engine
