#include <string>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "cli/bench.hpp"
#include "codec/codec.hpp"

namespace uzram::cli {
namespace {

std::string expect_path(const std::string& value) {
  return value.empty() ? "expected a path, got nothing" : "";
}

void add_text(CLI::App& suite, const std::string& name, std::string& into, const std::string& type,
              const std::string& help) {
  suite.add_option(name, into, help)->type_name(type);
}

void add_load(CLI::App& suite, bench::SuiteOptions& into, const std::string& size,
              const std::string& jobs, const std::string& block_size, const std::string& iodepth,
              const std::string& loops, const std::string& runtime) {
  add_text(suite, "--size", into.size, "SIZE", "Size of each device [" + size + "]");
  add_text(suite, "--jobs", into.jobs, "LIST",
           "Numbers of jobs, such as 1-10 or 1,2,4 [" + jobs + "]");
  add_text(suite, "--block-size", into.block_sizes, "LIST",
           "Bytes of a request [" + block_size + "]");
  add_text(suite, "--iodepth", into.iodepth, "NUMBER",
           "Requests in flight for each job [" + iodepth + "]");
  add_text(suite, "--loops", into.loops, "NUMBER",
           "Times each job goes over its range [" + loops + "]");
  add_text(suite, "--runtime", into.runtime, "SECONDS",
           "Time of each operation, instead of loops [" + runtime + "]");
  add_text(suite, "--rounds", into.rounds, "NUMBER",
           "Times everything is done, targets taking turns [5]");
}

void add_data(CLI::App& suite, bench::DataOptions& into, const std::string& fallback) {
  add_text(
      suite, "--corpus", into.corpus, "PATH",
      "Pages to write: a folder of *.pages and *.pages.zst, or one such file [" + fallback + "]");
  add_text(suite, "--buffer-pattern", into.buffer_pattern, "PATTERN",
           "Write this pattern, such as 0xbadc0ffee");
  add_text(suite, "--buffer-compress-percentage", into.buffer_compress_percentage, "PERCENT",
           "Write random bytes with that share of zeroes");
  add_text(suite, "--buffer-compress-chunk", into.buffer_compress_chunk, "BYTES",
           "In pieces of that many bytes [512]");
  add_text(suite, "--buffer-same-percentage", into.buffer_same_percentage, "PERCENT",
           "That share of the pages is same-filled");
  suite.add_flag("--buffer-random", into.buffer_random, "Write random bytes");
}

void add_common(CLI::App& suite, BenchArguments& into, const std::string& targets) {
  suite
      .add_option("--target", into.suite.targets,
                  "What to measure, separated by commas: engine, codec or zram, each with "
                  ":KEY=VALUE as wanted; a block device or a file; an NBD URI [" +
                      targets + "]")
      ->type_name("TARGET,...")
      ->allow_extra_args(false);
  add_text(suite, "--algorithm", into.suite.algorithms, "LIST",
           "Compressors, as NAME or NAME:LEVEL, of targets that name none: " + codec::names());
  add_text(suite, "--verify", into.suite.verify, "METHOD", "Check what is read: crc32c");
  suite.add_flag("--latency", into.suite.latency, "Take the time of every request");
  suite.add_flag("--yes", into.suite.yes,
                 "The first SIZE of block devices, files and exports named as targets may be "
                 "overwritten");
  suite.add_option("--json", into.json, "Write the results there")
      ->check(expect_path)
      ->type_name("FILE");
  suite
      .add_option("--format", into.format, "Print a table, or the lines of fio 3 or fio 2 [table]")
      ->check(CLI::IsMember({"table", "fio", "fio2"}))
      ->type_name("FORMAT");
}

const std::string kBuffers = "0xbadc0ffee, and half compressible";
const std::string kMachine = "a sample of this machine's memory";

void add_streams(CLI::App& suite, BenchArguments& into) {
  add_common(suite, into, "engine,zram");
  add_load(suite, into.suite, "3G", "1-10", "4K", "1", "1", "none");
  add_data(suite, into.suite.data, kBuffers);
  add_text(suite, "--streams", into.suite.streams, "LIST",
           "Compression streams of the engine [4,8,per-cpu]");
}

void add_async(CLI::App& suite, BenchArguments& into) {
  add_common(suite, into, "engine,zram");
  add_load(suite, into.suite, "2G", "1-10", "4K", "1", "2", "none");
  add_data(suite, into.suite.data, kBuffers);
  add_text(suite, "--mode", into.suite.modes, "LIST", "Modes of the engine [nowait,async,auto]");
  add_text(suite, "--tree", into.suite.tree, "FOLDER", "The tree to copy [/usr/include]");
}

void add_nowait(CLI::App& suite, BenchArguments& into) {
  add_common(suite, into, "engine,zram");
  add_load(suite, into.suite, "20G", "48", "4K", "2", "1", "60");
  add_data(suite, into.suite.data, "random bytes");
  add_text(suite, "--mode", into.suite.modes, "LIST", "Modes of the engine [nowait,async]");
}

void add_discard(CLI::App& suite, BenchArguments& into) {
  add_common(suite, into, "engine,zram");
  add_load(suite, into.suite, "1G", "64", "4K,1M", "1", "3", "none");
  add_data(suite, into.suite.data, "half compressible");
  add_text(
      suite, "--method", into.suite.methods, "LIST",
      "How they are in flight [sync,uring]: sync, a thread each; uring, all from one thread, on "
      "block devices through io_uring");
  add_text(suite, "--op", into.suite.ops, "LIST",
           "What is done [discard]: discard, or zero, which writes zeroes");
}

void add_pages(CLI::App& suite, BenchArguments& into) {
  add_common(suite, into, "codec,engine,zram");
  add_load(suite, into.suite, "512M", "1", "4K", "1", "1", "none");
  add_data(suite, into.suite.data, kMachine);
}

void add_ageing(CLI::App& suite, BenchArguments& into) {
  add_common(suite, into, "engine,zram");
  add_load(suite, into.suite, "512M", "1", "4K", "1", "20", "none");
  add_data(suite, into.suite.data, kMachine);
}

void add_report(CLI::App& bench, BenchArguments& into) {
  CLI::App& report =
      *bench.add_subcommand("report", "One HTML page with tables and plots of result files");
  report.add_option("FILE", into.files, "Result files (--json of a suite)")
      ->required()
      ->type_name("");
  report.add_option("--html", into.html, "The page to write")
      ->required()
      ->check(expect_path)
      ->type_name("OUT");
}

void add_compare(CLI::App& bench, BenchArguments& into) {
  CLI::App& compare = *bench.add_subcommand(
      "compare", "Two result files side by side, number of jobs by number of jobs");
  compare.add_option("OLD", into.older, "Result file")->required()->type_name("");
  compare.add_option("NEW", into.newer, "Result file")->required()->type_name("");
  add_text(compare, "--old-target", into.compare.old_target, "TARGET", "Only this target of OLD");
  add_text(compare, "--new-target", into.compare.new_target, "TARGET", "Only this target of NEW");
}

}  // namespace

void add_bench(CLI::App& app, BenchArguments& into) {
  CLI::App& bench = *app.add_subcommand(
      "bench", "Measure: engine, kernel's zram, block devices and NBD exports in one run.");
  // run_bench refuses a missing one.
  bench.require_subcommand(0, 1);
  bench.footer("`uzram bench SUITE --help` lists the options of a suite.");
  using AddOptions = void (*)(CLI::App&, BenchArguments&);
  constexpr AddOptions kAdd[] = {add_streams, add_async, add_nowait,
                                 add_discard, add_pages, add_ageing};
  std::size_t i = 0;
  for (const bench::SuiteInfo& suite : bench::suites()) {
    kAdd[i++](*bench.add_subcommand(std::string(suite.name), std::string(suite.help)), into);
  }
  add_report(bench, into);
  add_compare(bench, into);
}

}  // namespace uzram::cli
