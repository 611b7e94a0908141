// The program's command line: sub-commands, options and their help.
//
// Role: says what there is; what values mean is in the files of the sub-commands.
// Threads: one.
// Errors: parsing throws CLI::ParseError, which main catches.
#pragma once

#include <memory>

#include <CLI/App.hpp>

#include "cli/bench.hpp"
#include "cli/sample.hpp"
#include "cli/serve_options.hpp"
#include "cli/stat.hpp"
#include "cli/ublk.hpp"

namespace uzram::cli {

struct CommandLine {
  ServeArguments serve;
  StatArguments stat;
  UblkArguments ublk;
  SampleArguments sample;
  BenchArguments bench;
};

// The parser that fills `into`, which must outlive it. Sub-commands: "serve", "stat", "ublk",
// "sample", "bench".
[[nodiscard]] std::unique_ptr<CLI::App> make_app(CommandLine& into);

}  // namespace uzram::cli
