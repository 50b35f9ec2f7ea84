#include "muster/launch/results/metric_plot.h"

#include <gmock/gmock.h>

namespace muster::metric_plot_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr, ::testing::Not;

TEST(MetricPlot, HigherValuesAreHigherAndTheBestIsDrawnLast) {
  const std::string svg = MetricPlot(
      "layers", "loss", {{.x = "1", .y = 0, .title = "4.1", .best = true}, {.x = "3", .y = 10, .title = "4.2"}});
  // The values lie 1/22 of the axis away from its ends: 64 to 424 across, 226 to 14 upwards.
  const size_t other = svg.find("<circle class=\"run\" cx=\"407.6\" cy=\"23.6\" r=\"5\"><title>4.2</title></circle>");
  const size_t best =
      svg.find("<circle class=\"run best\" cx=\"80.4\" cy=\"216.4\" r=\"6\"><title>4.1</title></circle>");
  ASSERT_NE(other, std::string::npos) << svg;
  ASSERT_NE(best, std::string::npos) << svg;
  EXPECT_LT(other, best);
  EXPECT_THAT(svg, HasSubstr("<polyline class=\"mean\" points=\"80.4,216.4 407.6,23.6 \"/>"));
}

TEST(MetricPlot, TheLineGoesThroughMeans) {
  const std::string svg = MetricPlot("layers", "loss", {{.x = "1", .y = 0}, {.x = "1.0", .y = 10}, {.x = "3", .y = 5}});
  EXPECT_THAT(svg, HasSubstr("points=\"80.4,120.0 407.6,120.0 \""));
}

TEST(MetricPlot, WordsHaveNoLine) {
  EXPECT_THAT(MetricPlot("optimizer", "loss", {{.x = "adam", .y = 1}, {.x = "sgd", .y = 2}}),
              AllOf(Not(HasSubstr("polyline")), HasSubstr(">adam</text>"), HasSubstr(">sgd</text>")));
}

TEST(MetricPlot, SaysThatAnAxisIsLogarithmic) {
  EXPECT_THAT(MetricPlot("rate", "loss", {{.x = "0.001", .y = 1}, {.x = "0.1", .y = 2}}),
              HasSubstr(">rate (logarithmic)</text>"));
}

TEST(MetricPlot, LongWordsAreCutBetweenCharacters) {
  EXPECT_THAT(MetricPlot("a", "b", {{.x = "twelve bytesüü", .y = 1}, {.x = "other", .y = 2}}),
              HasSubstr(">twelve bytes…</text>"));
}

TEST(EscapedHtml, WhatMeansSomething) { EXPECT_EQ(EscapedHtml("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;"); }

}  // namespace
}  // namespace muster::metric_plot_test
