// Outputs: results as people and scripts read them.
//
// Role: pure text from results; only the report runs another program (gnuplot).
// Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "uzram/error.hpp"

#include "bench/results.hpp"

namespace uzram::bench {

// Tables for people: a heading that says machine, suite and rounds, one table for each data set and
// block size, notes at the end. A ratio whose range over the rounds contains 1 is marked "=".
[[nodiscard]] std::string format_tables(const ResultFile& results);

enum class FioStyle { fio3, fio2 };
// The summary lines of fio ("   READ: bw=…" of fio 3, "   READ: io=…, aggrb=…" of fio 2), for each
// target a block, in it for each number of jobs a line "#jobsN" and the lines of its operations.
[[nodiscard]] std::string format_fio(const ResultFile& results, FioStyle style);

struct CompareOptions {
  // Only rows of these targets (as given, or label); empty: all, matched by label.
  std::string old_target;
  std::string new_target;
};
// The cells of two files side by side, number of jobs by number of jobs. Of one run (the same file
// twice, or the same machine, date, suite and parameters) the speeds of the same round are divided,
// and a cell is "within noise" when the range of these ratios contains 1. Of separate runs it is when
// some round of the new is at most as fast as some round of the old and the other way round (the
// ranges of the rounds overlap). Errors: not_found (no common cell, no such target), naming what
// there is.
[[nodiscard]] Result<std::string> format_comparison(const ResultFile& older,
                                                    const ResultFile& newer,
                                                    const CompareOptions& options);

// One self-contained HTML page for all files, with SVG plots by gnuplot: bandwidth against jobs,
// ratio against time per page with a point for each codec, latency distributions; each where the
// rows have it. Errors: unsupported when gnuplot is not there (names the package), system.
[[nodiscard]] Result<std::string> format_report(const std::vector<ResultFile>& files,
                                                const std::vector<std::string>& names);

}  // namespace uzram::bench
