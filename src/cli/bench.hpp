// `uzram bench`: runs an experiment, or reads the results of some.
//
// Role: options to a plan, a run, and its outputs.
// Signals: the first SIGINT, SIGTERM or SIGHUP (unless it was ignored at start) ends a run at the
// next request; what was measured is printed. The second one ends the process at once; devices of the
// kernel made for the run are removed even then (os/zram_keeper.hpp).
// Threads: called by the main thread, before there are others.
#pragma once

#include <string>
#include <vector>

#include <CLI/App.hpp>

#include "bench/outputs.hpp"
#include "bench/suite.hpp"

namespace uzram::cli {

// As given.
struct BenchArguments {
  bench::SuiteOptions suite;
  // Where the results go.
  std::string json;
  std::string format = "table";

  // report
  std::vector<std::string> files;
  std::string html;

  // compare
  std::string older;
  std::string newer;
  bench::CompareOptions compare;
};

// Adds `bench` and its sub-commands, one for each suite, "report" and "compare", which fill `into`.
void add_bench(CLI::App& app, BenchArguments& into);

// `name`: the sub-command of bench. Returns the exit code: 0; 1 when the work failed; 2 when the
// options cannot be; 128 and the signal's number when a signal ended the run.
int run_bench(const std::string& name, const BenchArguments& arguments);

}  // namespace uzram::cli
