#include "cli/command_line.hpp"

#include <string>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "cli/stat_columns.hpp"
#include "codec/codec.hpp"
#include "control/version.hpp"

namespace uzram::cli {
namespace {

// An unset variable of a script must not mean the default.
std::string expect_path(const std::string& value) {
  return value.empty() ? "expected a path, got nothing" : "";
}

std::string level_help() {
  std::string text = "Compression level:";
  for (const codec::CodecInfo& codec : codec::registry()) {
    text += &codec == &codec::registry().front() ? " " : ", ";
    text += std::string(codec.name) + " " + std::to_string(codec.min_level) + " to " +
            std::to_string(codec.max_level);
    for (const std::string_view name : codec.level_names) {
      text += (name == codec.level_names.front() ? " (" : ", ") + std::string(name) +
              (name == codec.level_names.back() ? ")" : "");
    }
  }
  return text;
}

void add_shorthand(CLI::App& serve, ServeArguments& into, const std::string& key,
                   const std::string& type, const std::string& help) {
  serve
      .add_option_function<std::string>(
          "--" + key, [&into, key](const std::string& value) { into.shorthands[key] = value; },
          help)
      ->type_name(type);
}

// Options that repeat take one value each time; a list would swallow what follows.
void add_repeatable(CLI::App& serve, const std::string& name, std::vector<std::string>& into,
                    const std::string& type, const std::string& help) {
  serve.add_option(name, into, help)->type_name(type)->allow_extra_args(false);
}

void add_serve(CLI::App& app, ServeArguments& into) {
  CLI::App& serve = *app.add_subcommand(
      "serve",
      "Run devices in the foreground, over NBD or as block devices, until a signal ends it.");
  add_repeatable(serve, "--device", into.devices, "KEY=VALUE,...",
                 "A device, repeatable; keys: " + std::string(control::kDeviceKeys));
  add_shorthand(serve, into, "size", "SIZE", "Size of one device, such as 512M or 4G");
  add_shorthand(serve, into, "name", "NAME", "Its name [uzram0]");
  add_shorthand(serve, into, "algorithm", "NAME", "Compressor [lz4]: " + codec::names());
  add_shorthand(serve, into, "level", "LEVEL", level_help());
  add_shorthand(serve, into, "mode", "MODE", "Who does the work [auto]: nowait, async or auto");
  add_shorthand(serve, into, "workers", "NUMBER", "Threads for async and auto [0: one per CPU]");
  add_shorthand(serve, into, "background", "on|off",
                "Take room ahead and compact in a thread of its own [on]");
  add_shorthand(serve, into, "mem-limit", "SIZE", "Most memory the pool may take [0: no limit]");
  add_shorthand(serve, into, "reserve", "SIZE",
                "Pool memory taken at the start and kept free for writes [0: none]");
  // A flag, as --ublk below.
  serve
      .add_flag("--checksum", into.checksum,
                "Keep a checksum of each page and compare it at each read [off]")
      ->type_name("[=on|off]");
  add_shorthand(serve, into, "max-comp-streams", "NUMBER",
                "Compression streams shared by all threads [0: one per CPU]");
  serve.add_flag(
      "--train", into.train,
      "Train the compressor's tables with the device's own pages; for " + codec::trainable_names());
  add_shorthand(serve, into, "block-size", "BYTES", "Logical block [4096]: 512 or 4096");
  serve.add_flag("--read-only", into.read_only, "Refuse writes");
  // A flag: what follows after a blank is no ID.
  serve
      .add_flag("--ublk", into.ublk,
                "Be the block device /dev/ublkbN [first free N]; NBD then only with --nbd")
      ->type_name("[=N]");
  add_shorthand(serve, into, "queues", "NUMBER", "Queues of --ublk [0: one per CPU]");
  add_shorthand(serve, into, "depth", "NUMBER", "Requests in flight in each of them [128]");
  add_shorthand(serve, into, "max-io", "SIZE", "Largest request of --ublk [512K]");
  serve.add_flag("--swap", into.swap,
                 "Be fit for swap: memory locked and reserved, spared by the OOM killer");
  add_repeatable(serve, "--nbd", into.nbd, "ADDRESS",
                 "Listen there too, repeatable: tcp:HOST:PORT, :PORT (of 127.0.0.1) or unix:PATH");
  serve
      .add_option("--control", into.control,
                  "Control socket [DIR/control.sock]; the devices' NAME.nbd stand beside it")
      ->check(expect_path)
      ->type_name("PATH");
  serve.add_option("--max-connections", into.max_connections, "Most NBD connections [256]")
      ->type_name("NUMBER");
  serve
      .add_option("--handshake-timeout", into.handshake_timeout,
                  "Seconds in which a client must have chosen an export [10]")
      ->type_name("SECONDS");
}

void add_stat(CLI::App& app, StatArguments& into) {
  CLI::App& stat = *app.add_subcommand("stat", "List the devices of a running server.");
  stat.add_option("NAME", into.names, "Only these devices")->type_name("");
  std::string columns = "Columns, separated by commas:";
  for (const StatColumn& column : stat_columns()) {
    columns += " " + std::string(column.name);
  }
  CLI::Option* const output =
      stat.add_option("-o,--output", into.columns, columns)->type_name("COLUMNS");
  CLI::Option* const all = stat.add_flag("--output-all", into.all_columns, "All columns");
  CLI::Option* const bytes =
      stat.add_flag("-b,--bytes", into.bytes, "Sizes in bytes, not for people");
  CLI::Option* const bare = stat.add_flag("-n,--noheadings", into.no_headings, "No headings");
  CLI::Option* const raw =
      stat.add_flag("--raw", into.raw, "One blank between columns, no alignment");
  CLI::Option* const json =
      stat.add_flag("--json", into.json, "All fields as JSON, as the control socket gives them");
  all->excludes(output);
  for (CLI::Option* const other : {output, all, bytes, bare, raw}) {
    json->excludes(other);
  }
  stat.add_option("--control", into.control, "Control socket of the server [DIR/control.sock]")
      ->check(expect_path)
      ->type_name("PATH");
}

void add_ublk(CLI::App& app, UblkArguments& into) {
  CLI::App& ublk =
      *app.add_subcommand("ublk", "List or remove block devices of the kernel's ublk driver.");
  ublk.require_subcommand(0, 1);
  ublk.add_subcommand("list", "All of this machine, whoever serves them");
  CLI::App& remove =
      *ublk.add_subcommand("remove", "Stop and remove devices, also those whose server has died");
  remove.add_option("ID", into.ids, "N of /dev/ublkbN, repeatable")->type_name("")->required();
  remove.add_flag("--force", into.force, "Also what is mounted or used as swap");
}

void add_sample(CLI::App& app, SampleArguments& into) {
  CLI::App& sample = *app.add_subcommand(
      "sample", "Write pages of processes' memory to a file, as data to measure with.");
  add_repeatable(sample, "--pid", into.pids, "PID",
                 "A process, repeatable [all that this user may read]");
  CLI::Option* const pages =
      sample.add_option("--pages", into.pages, "Most pages of 4096 bytes")->type_name("NUMBER");
  sample.add_option("--size", into.size, "The same as a size [16M]")
      ->type_name("SIZE")
      ->excludes(pages);
  sample.add_option("--out", into.out, "The file, NAME.pages or NAME.pages.zst")
      ->required()
      ->type_name("FILE");
  sample.add_flag("--force", into.force, "Replace a file that exists");
}

}  // namespace

std::unique_ptr<CLI::App> make_app(CommandLine& into) {
  auto app = std::make_unique<CLI::App>(
      "zram in user space: block devices whose contents live compressed in memory.", "uzram");
  app->set_help_flag("-h,--help", "Print this and exit");
  app->set_version_flag("-V,--version", "uzram " + std::string(control::version()),
                        "Print the version and exit");
  app->footer(
      "DIR is /run/uzram for root, else $XDG_RUNTIME_DIR/uzram, else /tmp/uzram-UID.\n"
      "`uzram serve --help` and so on list the options of each; see also uzram(1).");
  // main refuses a missing one, for the library's message would hide a misspelt one.
  app->require_subcommand(0, 1);
  add_serve(*app, into.serve);
  add_stat(*app, into.stat);
  add_ublk(*app, into.ublk);
  add_sample(*app, into.sample);
  add_bench(*app, into.bench);
  return app;
}

}  // namespace uzram::cli
