// The program `uzram`: parses the command line and hands over to a sub-command.
//
// Exit codes: 0; 1 when the work failed; 2 when the command line cannot be.

#include <exception>
#include <new>
#include <string>

#include <CLI/Error.hpp>

#include "base/log.hpp"
#include "cli/bench.hpp"
#include "cli/command_line.hpp"
#include "cli/output.hpp"
#include "cli/sample.hpp"
#include "cli/serve.hpp"
#include "cli/stat.hpp"
#include "cli/ublk.hpp"

namespace uzram::cli {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

int usage_error(const CLI::App& app, const std::string& message) {
  std::string command = "uzram";
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    command += " " + at->get_name();
  }
  log(LogLevel::error, message + "; see `" + command + " --help`");
  return kUsage;
}

int run(int argc, char** argv) {
  CommandLine command_line;
  const auto app = make_app(command_line);
  try {
    app->parse(argc, argv);
  } catch (const CLI::Success& asked) {
    return app->exit(asked);
  } catch (const CLI::ParseError& refused) {
    return usage_error(*app, refused.what());
  }
  if (app->get_subcommands().empty()) {
    return usage_error(*app,
                       "there is no sub-command; expected serve, stat, ublk, sample or bench");
  }
  if (app->got_subcommand("stat")) {
    return run_stat(command_line.stat);
  }
  if (app->got_subcommand("bench")) {
    const auto chosen = app->get_subcommand("bench")->get_subcommands();
    return chosen.empty() ? usage_error(*app,
                                        "bench: there is no suite; expected streams, async, "
                                        "nowait, discard, pages, ageing, report or compare")
                          : run_bench(chosen.front()->get_name(), command_line.bench);
  }
  if (app->got_subcommand("ublk")) {
    const auto chosen = app->get_subcommand("ublk")->get_subcommands();
    return chosen.empty() ? usage_error(*app, "ublk: there is no command; expected list or remove")
                          : run_ublk(chosen.front()->get_name(), command_line.ublk);
  }
  if (app->got_subcommand("sample")) {
    const auto sample = parse_sample_options(command_line.sample);
    return sample ? run_sample(*sample) : usage_error(*app, sample.error().message);
  }
  const auto options = parse_serve_options(command_line.serve);
  return options ? run_serve(*options) : usage_error(*app, options.error().message);
}

}  // namespace
}  // namespace uzram::cli

int main(int argc, char** argv) {
  uzram::cli::ensure_standard_descriptors();
  try {
    return uzram::cli::run(argc, argv);
  } catch (const std::bad_alloc&) {
    uzram::log(uzram::LogLevel::error, "no memory left; free some and try again");
  } catch (const std::exception& failure) {
    uzram::log(uzram::LogLevel::error, failure.what());
  }
  return uzram::cli::kFailed;
}
