#include "base/table.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace uzram {
namespace {

const std::vector<TableColumn> kColumns = {{"NAME", false}, {"SIZE", true}, {"MOUNTPOINT", false}};
const std::vector<std::vector<std::string>> kRows = {{"a", "1G", ""}, {"longer", "12345M", "/mnt"}};

TEST(Table, aligns_each_column_to_its_side_and_ends_lines_without_blanks) {
  EXPECT_EQ(format_table(kColumns, kRows, {}),
            "NAME     SIZE MOUNTPOINT\n"
            "a          1G\n"
            "longer 12345M /mnt\n");
}

TEST(Table, without_headings_is_as_wide_as_its_cells) {
  EXPECT_EQ(
      format_table({{"NAME", false}, {"SIZE", true}}, {{"a", "1"}, {"b", "22"}}, {false, false}),
      "a  1\nb 22\n");
}

TEST(Table, raw_separates_by_one_blank) {
  EXPECT_EQ(format_table(kColumns, kRows, {true, true}),
            "NAME SIZE MOUNTPOINT\na 1G \nlonger 12345M /mnt\n");
}

TEST(Table, raw_escapes_what_would_break_fields_and_lines) {
  EXPECT_EQ(format_table({{"NAME", false}}, {{"a b\\c\nd\x7f"}}, {false, true}),
            "a\\x20b\\x5cc\\x0ad\\x7f\n");
}

TEST(Table, counts_a_letter_of_several_bytes_as_one) {
  EXPECT_EQ(format_table({{"N", false}, {"S", true}}, {{"é", "1"}, {"ab", "2"}}, {}),
            "N  S\né  1\nab 2\n");
}

TEST(Table, without_rows_is_empty) { EXPECT_EQ(format_table(kColumns, {}, {}), ""); }

}  // namespace
}  // namespace uzram
