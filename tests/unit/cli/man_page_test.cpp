// The manual page and the program say the same: every option, key and column of one is in the
// other.

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <gtest/gtest.h>

#include "cli/command_line.hpp"
#include "cli/stat_columns.hpp"

namespace uzram::cli {
namespace {

std::string manual() {
  std::ifstream file(UZRAM_MAN_SOURCE);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Options of `app` and its sub-commands that --help shows, with their dashes.
void collect_options(const CLI::App& app, std::set<std::string>& options) {
  for (const CLI::Option* const option : app.get_options()) {
    if (option->get_group().empty()) {
      continue;
    }
    for (const std::string& name : option->get_lnames()) {
      options.insert("--" + name);
    }
    for (const std::string& name : option->get_snames()) {
      options.insert("-" + name);
    }
  }
  for (const CLI::App* const command : app.get_subcommands(nullptr)) {
    collect_options(*command, options);
  }
}

std::set<std::string> options_of_the_program() {
  CommandLine line;
  std::set<std::string> options;
  collect_options(*make_app(line), options);
  return options;
}

std::set<std::string> matches(const std::string& text, const std::string& pattern) {
  std::set<std::string> found;
  const std::regex expression(pattern);
  for (std::sregex_iterator match(text.begin(), text.end(), expression), end; match != end;
       ++match) {
    found.insert(match->str(1));
  }
  return found;
}

TEST(ManPage, and_program_have_the_same_options) {
  // In bold, as options are wherever they are mentioned.
  EXPECT_EQ(matches(manual(), R"(\*(--?[A-Za-z][a-z-]*)\*)"), options_of_the_program());
}

TEST(ManPage, mentions_no_option_that_is_not_bold) {
  const std::set<std::string> all = matches(manual(), R"((--[a-z][a-z-]*))");
  const std::set<std::string> options = options_of_the_program();
  for (const std::string& mentioned : all) {
    EXPECT_TRUE(options.contains(mentioned)) << mentioned;
  }
}

TEST(ManPage, help_shows_what_the_parser_has) {
  CommandLine line;
  const auto app = make_app(line);
  std::string help = app->help();
  for (const CLI::App* const command : app->get_subcommands(nullptr)) {
    EXPECT_NE(help.find("  " + command->get_name() + " "), std::string::npos);
    help += command->help();
  }
  EXPECT_EQ(matches(help, R"((--[a-z][a-z-]*))"), [] {
    std::set<std::string> long_ones;
    for (const std::string& option : options_of_the_program()) {
      if (option.starts_with("--")) {
        long_ones.insert(option);
      }
    }
    return long_ones;
  }());
}

TEST(ManPage, describes_every_key_of_a_device) {
  std::istringstream keys{std::string(kDeviceKeys)};
  for (std::string key; keys >> key;) {
    key.erase(std::remove(key.begin(), key.end(), ','), key.end());
    EXPECT_NE(manual().find("*" + key + "*"), std::string::npos) << key;
  }
}

TEST(ManPage, and_program_have_the_same_columns) {
  std::set<std::string> columns;
  for (const StatColumn& column : stat_columns()) {
    columns.insert(std::string(column.name));
  }
  // A column is a bold word in capitals on a line of its own.
  EXPECT_EQ(matches(manual(), R"(\n\*([A-Z][A-Z-]+)\*\n)"), columns);
}

TEST(ManPage, describes_every_sub_command) {
  CommandLine line;
  const auto app = make_app(line);
  for (const CLI::App* const command : app->get_subcommands(nullptr)) {
    EXPECT_NE(manual().find("*uzram " + command->get_name() + "*"), std::string::npos)
        << command->get_name();
  }
}

}  // namespace
}  // namespace uzram::cli
