#include "muster/observe/prometheus_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace muster::prometheus_text_test {
namespace {

TEST(PrometheusTextTest, EachNameHasItsHelpAndTypeOnce) {
  PrometheusText text(PrometheusText::Labels{{"task", "worker:0"}});
  text.Counter("muster_steps_total", "Steps.", 12);
  text.Gauge("muster_clients", "Clients\nby state.", 1, {{"state", "alive"}});
  text.Gauge("muster_clients", "Clients\nby state.", 0, {{"state", "a \"b\" \\ c"}});
  EXPECT_EQ(text.text(),
            "# HELP muster_steps_total Steps.\n# TYPE muster_steps_total counter\n"
            "muster_steps_total{task=\"worker:0\"} 12\n"
            "# HELP muster_clients Clients\\nby state.\n# TYPE muster_clients gauge\n"
            "muster_clients{task=\"worker:0\",state=\"alive\"} 1\n"
            "muster_clients{task=\"worker:0\",state=\"a \\\"b\\\" \\\\ c\"} 0\n");
}

TEST(PrometheusTextTest, AHistogramsBucketsAreCumulative) {
  Histogram histogram({0.5, 1});
  for (const double value : {0.1, 0.2, 0.7, 3.0}) histogram.Add(value);
  PrometheusText text;
  text.Histogram("muster_push_seconds", "Pushes.", histogram.Snapshot());
  EXPECT_EQ(text.text(),
            "# HELP muster_push_seconds Pushes.\n# TYPE muster_push_seconds histogram\n"
            "muster_push_seconds_bucket{le=\"0.5\"} 2\nmuster_push_seconds_bucket{le=\"1\"} 3\n"
            "muster_push_seconds_bucket{le=\"+Inf\"} 4\nmuster_push_seconds_sum 4\nmuster_push_seconds_count 4\n");
}

TEST(PrometheusTextTest, NumbersThatAreNoneAreWrittenAsPrometheusDoes) {
  PrometheusText text;
  text.Gauge("a", "A.", std::numeric_limits<double>::quiet_NaN());
  text.Gauge("b", "B.", std::numeric_limits<double>::infinity());
  EXPECT_EQ(text.text(), "# HELP a A.\n# TYPE a gauge\na NaN\n# HELP b B.\n# TYPE b gauge\nb +Inf\n");
}

}  // namespace
}  // namespace muster::prometheus_text_test
