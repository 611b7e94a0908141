// Results as runs would make them, for the tests of outputs.
#pragma once

#include <string>
#include <vector>

#include "bench/results.hpp"

namespace uzram::bench {

// Around `middle`: a round a little below, one a little above.
[[nodiscard]] Spread around(double middle);

// A row of five rounds at `mb_per_s` on average, with all that follows from it.
[[nodiscard]] Row sample_row(const std::string& label, const std::string& op, double mb_per_s);

// No rows.
[[nodiscard]] ResultFile sample_file(const std::string& suite);

// Three targets, 1 to 10 jobs, reads of holes and of stored data, two data sets.
[[nodiscard]] ResultFile streams_results();

// Seven corpora, five algorithms on three targets, four operations, with latencies.
[[nodiscard]] ResultFile pages_results();

}  // namespace uzram::bench
