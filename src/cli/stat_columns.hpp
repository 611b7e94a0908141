// The columns of `uzram stat`: zramctl's, and some of our own.
//
// Role: from the control socket's device objects to cells.
// Threads: pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "uzram/error.hpp"

namespace uzram::cli {

struct StatColumn {
  std::string_view name;
  bool right = false;
  std::string_view help;
  // The field of the device object that the cell is made of.
  std::string_view field;
  // Sizes are printed for people unless bytes are asked for; counts never are.
  bool is_size = false;
};

// All columns, in the order of --output-all.
[[nodiscard]] std::span<const StatColumn> stat_columns() noexcept;

// The columns of a list such as "NAME,data", in either case; those of zramctl's default when it is
// empty. Errors: invalid_argument, naming the column that does not exist and those that do.
Result<std::vector<const StatColumn*>> select_columns(std::string_view list);

// The text of one cell. Errors: invalid_argument when the object lacks the field.
Result<std::string> cell_of(const StatColumn& column, const nlohmann::ordered_json& device,
                            bool bytes);

}  // namespace uzram::cli
