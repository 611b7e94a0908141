#include "engine/span.hpp"

#include <memory>

#include <gtest/gtest.h>

namespace uzram::engine {
namespace {

std::unique_ptr<Span> used_span() { return std::make_unique<Span>(); }

TEST(Span, a_run_is_found_across_words_and_cut_at_the_limit) {
  const auto span = used_span();
  span->set_free(60, 200);
  EXPECT_EQ(span->free_units, 200U);
  Span::Run run = span->next_free_run(0, kSpanUnits);
  EXPECT_EQ(run.first, 60U);
  EXPECT_EQ(run.count, 200U);
  run = span->next_free_run(100, 10);
  EXPECT_EQ(run.first, 100U);
  EXPECT_EQ(run.count, 10U);
  EXPECT_EQ(span->next_free_run(260, kSpanUnits).count, 0U);
}

TEST(Span, neighbouring_holes_join) {
  const auto span = used_span();
  span->set_free(64, 64);
  span->set_free(192, 64);
  span->set_free(128, 64);
  const Span::Run run = span->next_free_run(0, kSpanUnits);
  EXPECT_EQ(run.first, 64U);
  EXPECT_EQ(run.count, 192U);
}

TEST(Span, a_wholly_free_span_is_one_run) {
  const auto span = used_span();
  span->set_free(0, kSpanUnits);
  EXPECT_EQ(span->next_free_run(0, kSpanUnits).count, kSpanUnits);
  span->set_used(0, 1);
  span->set_used(kSpanUnits - 1, 1);
  const Span::Run run = span->next_free_run(0, kSpanUnits);
  EXPECT_EQ(run.first, 1U);
  EXPECT_EQ(run.count, kSpanUnits - 2);
  EXPECT_EQ(span->free_units, kSpanUnits - 2);
}

}  // namespace
}  // namespace uzram::engine
