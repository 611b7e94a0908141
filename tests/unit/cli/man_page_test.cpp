// The manual page and the program say the same: every option, key and column of one is in the
// other.

#include <algorithm>
#include <fstream>
#include <iterator>
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

// What --help of `app` and of all its sub-commands prints.
std::string help_of(const CLI::App& app) {
  std::string help = app.help();
  for (const CLI::App* const command : app.get_subcommands(nullptr)) {
    EXPECT_NE(help.find("  " + command->get_name() + " "), std::string::npos);
    help += help_of(*command);
  }
  return help;
}

std::set<std::string> options_of_the_program() {
  CommandLine line;
  std::set<std::string> options;
  collect_options(*make_app(line), options);
  return options;
}

bool is_word(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || letter == '-';
}

// The words that begin with dashes and a letter; with `bold`, those written *--word*.
std::set<std::string> dashed_words(const std::string& text, bool bold) {
  std::set<std::string> found;
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::size_t end = begin;
    while (end < text.size() && is_word(text[end])) {
      ++end;
    }
    const std::string word = text.substr(begin, end - begin);
    const std::size_t letter = word.find_first_not_of('-');
    const bool is_bold =
        begin > 0 && text[begin - 1] == '*' && end < text.size() && text[end] == '*';
    if (letter != std::string::npos && letter > 0 && (is_bold || !bold)) {
      found.insert(word);
    }
    begin = end + 1;
  }
  return found;
}

// Options with two dashes: one dash may just be a dash.
std::set<std::string> long_ones(const std::set<std::string>& options) {
  std::set<std::string> found;
  for (const std::string& option : options) {
    if (option.starts_with("--")) {
      found.insert(option);
    }
  }
  return found;
}

// Lines that hold nothing but one bold word in capitals.
std::set<std::string> bold_capital_lines(const std::string& text) {
  std::set<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.size() > 2 && line.front() == '*' && line.back() == '*') {
      const std::string word = line.substr(1, line.size() - 2);
      if (word.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ-") == std::string::npos) {
        found.insert(word);
      }
    }
  }
  return found;
}

TEST(ManPage, and_program_have_the_same_options) {
  // In bold, as options are wherever they are mentioned.
  EXPECT_EQ(dashed_words(manual(), true), options_of_the_program());
}

TEST(ManPage, mentions_no_option_that_is_not_bold) {
  EXPECT_EQ(long_ones(dashed_words(manual(), false)), long_ones(options_of_the_program()));
}

TEST(ManPage, help_shows_what_the_parser_has) {
  CommandLine line;
  const auto app = make_app(line);
  const std::string help = help_of(*app);
  EXPECT_EQ(long_ones(dashed_words(help, false)), long_ones(options_of_the_program()));
}

TEST(ManPage, describes_every_key_of_a_device) {
  std::istringstream keys{std::string(control::kDeviceKeys)};
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
  EXPECT_EQ(bold_capital_lines(manual()), columns);
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
