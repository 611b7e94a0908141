#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "bench/charts.hpp"
#include "bench/gnuplot.hpp"
#include "bench/outputs.hpp"
#include "support/temporary_folder.hpp"
#include "unit/bench/sample_results.hpp"

namespace uzram::bench {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

bool gnuplot_is_installed() {
  const Result<std::string> output = run_gnuplot("");
  return output.has_value() || output.error().code != Errc::unsupported;
}

class Report : public testing::Test {
 protected:
  void SetUp() override {
    if (!gnuplot_is_installed()) {
      GTEST_SKIP() << "needs gnuplot";
    }
  }

  static std::string report_of(const std::vector<ResultFile>& files) {
    const Result<std::string> html =
        format_report(files, std::vector<std::string>(files.size(), "file.json"));
    EXPECT_TRUE(html.has_value()) << html.error().message;
    return html ? *html : "";
  }
};

class Gnuplot : public Report {};

TEST_F(Report, bandwidth_against_jobs_has_a_chart_for_each_operation_and_data_set) {
  const std::string html = report_of({streams_results()});
  EXPECT_EQ(count(html, "<figure>"), 16U);
  EXPECT_TRUE(has(html, "<h3>Bandwidth against jobs: pattern-0xbadc0ffee, 4K blocks"));
  EXPECT_TRUE(has(html, "<text>randread (stored)</text>"));
  EXPECT_TRUE(has(html, "<text>jobs</text>"));
  EXPECT_FALSE(has(html, "<h3>Latency"));
  EXPECT_FALSE(has(html, "<h3>Speed against"));
}

TEST_F(Report, pages_have_ratios_against_time_for_each_corpus_and_for_all) {
  ResultFile file = pages_results();
  for (Row& row : file.rows) {
    row.latency.reset();
  }
  const std::string html = report_of({file});
  EXPECT_TRUE(has(html, "<text>geometric mean of 7 data sets: write</text>"));
  EXPECT_TRUE(has(html, "<text>cc1plus: read</text>"));
  EXPECT_TRUE(has(html, "<text>zstd-3</text>"));
  // A chart of bars for each corpus and operation, one of points for reads and writes of each.
  EXPECT_EQ(count(html, "<figure>"), 7U * 4 + (7 + 1) * 2);
  EXPECT_FALSE(has(html, "<h3>Bandwidth against"));
}

TEST_F(Report, bars_name_the_target_that_the_others_are_compared_with) {
  ResultFile file = pages_results();
  const std::string html = report_of({file});
  EXPECT_TRUE(has(html, "<h3>Speed against codec: cc1plus"));
  EXPECT_TRUE(has(html, "<text>speed / codec</text>"));
  // Names that are longer than the axis stand in the heading alone.
  const std::string name = "a-name-of-the-first-target-that-is-too-long-for-an-axis";
  for (Row& row : file.rows) {
    row.label = row.label == "codec" ? name : row.label;
  }
  const std::string longer = report_of({file});
  EXPECT_TRUE(has(longer, "<h3>Speed against " + name + ": cc1plus"));
  EXPECT_TRUE(has(longer, "<text>speed / first target</text>"));
  EXPECT_FALSE(has(longer, "<text>speed / " + name));
}

TEST_F(Report, parameters_without_a_value_are_left_out) {
  ResultFile file = sample_file("streams");
  file.parameters["verify"] = "";
  file.parameters["later"] = nullptr;
  const std::string html = report_of({file});
  EXPECT_FALSE(has(html, "verify"));
  EXPECT_FALSE(has(html, "later"));
  EXPECT_TRUE(has(html, "<td class=\"soft\">rounds</td><td>5</td>"));
}

TEST(Charts, bars_of_targets_at_one_number_of_jobs_stand_side_by_side) {
  const ResultFile file = streams_results();
  Palette palette;
  palette.add(file.rows);
  const std::vector<Figure> figures = bandwidth_figures(group_rows(file.rows), palette);
  ASSERT_FALSE(figures.empty());
  // The data of the first chart: a place on the x axis begins each line of four numbers.
  std::istringstream script(figures.front().scripts.front());
  std::set<double> places;
  double near = 0;
  for (std::string line; std::getline(script, line);) {
    std::istringstream numbers(line);
    double x = 0;
    double speed = 0;
    if (numbers >> x >> speed) {
      places.insert(x);
      near = std::max(near, std::fabs(x - std::round(x)));
    }
  }
  EXPECT_EQ(places.size(), 3U * 10);
  EXPECT_LT(near, 0.2);
}

TEST_F(Report, targets_of_one_algorithm_stand_together_whether_they_tell_its_level_or_not) {
  ResultFile file = pages_results();
  std::erase_if(file.rows, [](const Row& row) {
    return row.algorithm == "deflate" || row.level == 3 || row.corpus != "python";
  });
  for (Row& row : file.rows) {
    row.latency.reset();
    row.level = row.label == "zram" ? std::nullopt : std::optional<int>(1);
  }
  const std::string html = report_of({file});
  EXPECT_TRUE(has(html, "<text>lz4</text>"));
  EXPECT_FALSE(has(html, "<text>lz4-1</text>"));
  // With one algorithm there is no choice to show.
  std::erase_if(file.rows, [](const Row& row) { return row.algorithm != "lz4"; });
  EXPECT_FALSE(has(report_of({file}), "<h3>Ratio against"));
}

TEST_F(Report, latencies_have_charts) {
  ResultFile file = sample_file("nowait");
  file.rows = {sample_row("engine", "randread", 100)};
  file.rows[0].latency = Latency{0, 2000.5, 1500, 3000, 4000, 5000000};
  file.rows[0].submit_latency = Latency{100, 200, 300, 400, 500, 600};
  const std::string html = report_of({file});
  EXPECT_EQ(count(html, "<figure>"), 2U);
  EXPECT_TRUE(has(html, "<text>randread, 1 job</text>"));
  EXPECT_TRUE(has(html, "<text>randread, 1 job: submission</text>"));
  EXPECT_TRUE(has(html, "<h4>Latency of requests, us</h4>"));
}

TEST_F(Report, the_page_stands_alone) {
  const std::string html = report_of({streams_results(), pages_results()});
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(html.ends_with("</html>\n"));
  for (const char* outside : {"<script", "<link", "src=", "url(", "@import", "<?xml"}) {
    EXPECT_FALSE(has(html, outside)) << outside;
  }
  // A chart scales with the page.
  EXPECT_EQ(count(html, "<svg"), count(html, "viewBox="));
  EXPECT_TRUE(has(html, "<td class=\"soft\">kernel</td><td>6.1.0</td>"));
  EXPECT_TRUE(has(html, "<li>zram has no lz4-9: its rows are left out</li>"));
}

TEST_F(Report, text_of_results_is_escaped) {
  ResultFile file = streams_results();
  const std::string bad = "<script>alert('x')</script>&\"";
  for (Row& row : file.rows) {
    row.label = bad + row.label;
    row.op = bad + row.op;
    row.corpus = bad;
    row.state = bad;
    row.algorithm = bad;
    row.path = bad;
    row.counters = {{bad, 1}};
  }
  file.suite = bad;
  file.notes = {bad};
  file.machine[bad] = bad;
  file.parameters[bad] = {bad, {{bad, bad}}};
  const Result<std::string> html = format_report({file}, {bad});
  ASSERT_TRUE(html.has_value()) << html.error().message;
  EXPECT_FALSE(has(*html, "<script"));
  EXPECT_FALSE(has(*html, "&\""));
  EXPECT_TRUE(has(*html, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot;"));
}

TEST_F(Report, names_are_no_gnuplot_commands) {
  const test::TemporaryFolder folder;
  const std::string mark = folder / "mark";
  ResultFile streams = streams_results();
  ResultFile pages = pages_results();
  for (ResultFile* file : {&streams, &pages}) {
    for (Row& row : file->rows) {
      for (const std::string& attack :
           {"`touch " + mark + "`", "'; system('touch " + mark + "'); x='",
            "\"; system(\"touch " + mark + "\"); \"", "''; system('touch " + mark + "') #",
            "\n!touch " + mark + "\n", "EOD\nsystem('touch " + mark + "')\n",
            std::string("@x $d0 {/*2 y}_z \\ '' (")}) {
        row.label += attack;
        row.op += attack;
        row.corpus += attack;
        row.algorithm += attack;
      }
    }
  }
  const std::string html = report_of({streams, pages});
  EXPECT_TRUE(has(html, "{/*2 y}_z")) << "enhanced text";
  EXPECT_FALSE(std::filesystem::exists(mark));
}

TEST_F(Report, extreme_numbers_are_drawn) {
  ResultFile streams = streams_results();
  ResultFile pages = pages_results();
  std::size_t i = 0;
  for (ResultFile* file : {&streams, &pages}) {
    for (Row& row : file->rows) {
      const double number = std::vector<double>{0, 1e-300, 1e300, 1.7e308}[++i % 4];
      row.mb_per_s = Spread({number, number});
      row.us_per_page = row.mb_per_s;
      row.ratio_to_first = Spread({1, number});
      row.compr_ratio = number;
      row.latency = Latency{0, number, 0, 0, 0, i % 2 == 0 ? ~std::uint64_t{0} : 0};
    }
  }
  EXPECT_GT(count(report_of({streams, pages}), "<figure>"), 100U);
}

TEST_F(Report, files_without_rows_have_a_section) {
  const std::string html = report_of({ResultFile(), sample_file("streams")});
  EXPECT_EQ(count(html, "<p>No results.</p>"), 2U);
  EXPECT_EQ(count(html, "<figure>"), 0U);
  ResultFile empty_row;
  empty_row.rows.emplace_back();
  EXPECT_EQ(count(report_of({empty_row}), "<figure>"), 0U);
}

TEST_F(Report, more_plots_than_a_page_can_hold_are_counted) {
  ResultFile file = sample_file("streams");
  for (int i = 0; i < 300; ++i) {
    for (const std::uint32_t jobs : {1U, 2U}) {
      file.rows.push_back(sample_row("engine", "op" + std::to_string(i), 100));
      file.rows.back().threads = jobs;
    }
  }
  const std::string html = report_of({file});
  EXPECT_EQ(count(html, "<figure>"), 250U);
  EXPECT_TRUE(has(html, "<p>50 more plots are left out.</p>"));
}

TEST_F(Gnuplot, says_what_it_does_not_understand) {
  const Result<std::string> output = run_gnuplot("no such command\n");
  ASSERT_FALSE(output.has_value());
  EXPECT_EQ(output.error().code, Errc::system);
  EXPECT_TRUE(has(output.error().message, "invalid command")) << output.error().message;
}

TEST_F(Gnuplot, quoted_text_comes_out_as_it_is) {
  const std::string text = R"(it's `id` "q" \n $x @y 'z' '' ' \' \\ {a} %s #)";
  const Result<std::string> output =
      run_gnuplot("set print '-'\nprint " + gnuplot_quote(text) + "\n");
  ASSERT_TRUE(output.has_value()) << output.error().message;
  EXPECT_EQ(*output, text + "\n");
  EXPECT_EQ(gnuplot_quote("a\nb"), "\"a\\077b\"");
}

TEST(GnuplotMissing, is_an_error_that_names_the_package) {
  const test::TemporaryFolder folder;
  // NOLINTBEGIN(concurrency-mt-unsafe): no other thread runs
  const char* path = std::getenv("PATH");
  const std::string before = path == nullptr ? "" : path;
  ::setenv("PATH", (folder / "").c_str(), 1);
  const Result<std::string> html = format_report({streams_results()}, {"x"});
  // What needs no plot needs no gnuplot.
  const Result<std::string> plain = format_report({sample_file("streams")}, {"x"});
  ::setenv("PATH", before.c_str(), 1);
  // NOLINTEND(concurrency-mt-unsafe)
  ASSERT_FALSE(html.has_value());
  EXPECT_EQ(html.error().code, Errc::unsupported);
  EXPECT_EQ(html.error().message, "gnuplot: not found; install the package gnuplot-nox");
  EXPECT_TRUE(plain.has_value());
}

}  // namespace
}  // namespace uzram::bench
