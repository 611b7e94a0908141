#include "cli/bench.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <string_view>
#include <utility>

#include <unistd.h>

#include "base/log.hpp"
#include "bench/plan.hpp"
#include "bench/runner.hpp"
#include "cli/output.hpp"
#include "os/descriptor_limit.hpp"

namespace uzram::cli {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kSignalled = 128;

std::atomic<bool> stop_asked{false};
volatile std::sig_atomic_t stop_signal = 0;
static_assert(std::atomic<bool>::is_always_lock_free);

// The second signal ends the process, whatever it is doing.
extern "C" void on_stop_signal(int signal) {
  if (stop_asked.exchange(true)) {
    ::_exit(kSignalled + signal);
  }
  stop_signal = signal;
  constexpr std::string_view kSays =
      "\nuzram: stopping when the requests in flight have been answered; once more stops at once\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kSays.data(), kSays.size());
}

// Catches what stops a run, unless it was ignored at start (nohup).
void catch_stop_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) {
      action = {};
      action.sa_handler = on_stop_signal;
      ::sigaction(signal, &action, nullptr);
    }
  }
  ::signal(SIGPIPE, SIG_IGN);
}

int fail(const Error& error) {
  log(LogLevel::error, error.message);
  return error.code == Errc::invalid_argument ? kUsage : kFailed;
}

int print(const std::string& text) {
  if (!write_output(text)) {
    return fail(system_error("standard output", errno));
  }
  return 0;
}

std::string formatted(const BenchArguments& arguments, const bench::ResultFile& results) {
  if (arguments.format == "fio") {
    return bench::format_fio(results, bench::FioStyle::fio3);
  }
  if (arguments.format == "fio2") {
    return bench::format_fio(results, bench::FioStyle::fio2);
  }
  return bench::format_tables(results);
}

// Each of the two is tried whatever becomes of the other: a run may have taken hours.
int show(const BenchArguments& arguments, const bench::ResultFile& results) {
  const int printed = print(formatted(arguments, results));
  if (!arguments.json.empty()) {
    if (auto written = bench::write_results(arguments.json, results); !written) {
      return fail(written.error());
    }
  }
  return printed;
}

int run_suite(const std::string& name, const BenchArguments& arguments) {
  // Found out before the run, not after it.
  if (!arguments.json.empty()) {
    if (auto writable = bench::check_results_file(arguments.json); !writable) {
      return fail(writable.error());
    }
  }
  catch_stop_signals();
  os::raise_descriptor_limit();
  const auto plan = bench::make_plan(name, arguments.suite);
  if (!plan) {
    return fail(plan.error());
  }
  bench::ResultFile finished;
  const auto results = bench::run_plan(*plan, stop_asked, STDERR_FILENO, &finished);
  if (!results) {
    if (!finished.rows.empty()) {
      show(arguments, finished);
    }
    return fail(results.error());
  }
  if (results->rows.empty() && results->interrupted) {
    log(LogLevel::warning, "interrupted before anything was measured");
    return kSignalled + stop_signal;
  }
  const int shown = show(arguments, *results);
  if (results->interrupted) {
    log(LogLevel::warning, "interrupted; the results are those of the rounds that were done");
    return kSignalled + stop_signal;
  }
  return shown;
}

int run_report(const BenchArguments& arguments) {
  std::vector<bench::ResultFile> files;
  for (const std::string& path : arguments.files) {
    auto file = bench::read_results(path);
    if (!file) {
      return fail(file.error());
    }
    files.push_back(*std::move(file));
  }
  const auto page = bench::format_report(files, arguments.files);
  if (!page) {
    return fail(page.error());
  }
  std::ofstream out(arguments.html, std::ios::binary | std::ios::trunc);
  out << *page;
  out.close();
  if (!out) {
    return fail(system_error("cannot write \"" + arguments.html + "\"", errno));
  }
  return 0;
}

int run_compare(const BenchArguments& arguments) {
  const auto older = bench::read_results(arguments.older);
  const auto newer = bench::read_results(arguments.newer);
  if (!older || !newer) {
    return fail(older ? newer.error() : older.error());
  }
  const auto text = bench::format_comparison(*older, *newer, arguments.compare);
  return text ? print(*text) : fail(text.error());
}

}  // namespace

int run_bench(const std::string& name, const BenchArguments& arguments) {
  if (name == "report") {
    return run_report(arguments);
  }
  return name == "compare" ? run_compare(arguments) : run_suite(name, arguments);
}

}  // namespace uzram::cli
