#include "control/version.hpp"

namespace uzram::control {

std::string_view version() noexcept { return UZRAM_VERSION; }

}  // namespace uzram::control
