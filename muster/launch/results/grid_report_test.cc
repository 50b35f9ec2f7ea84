#include "muster/launch/results/grid_report.h"

#include <gmock/gmock.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace muster::grid_report_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::Not;

GridRow Row(int run, const ParameterValues& parameters, const std::map<std::string, ResultMetric>& metrics) {
  GridRow row;
  row.run.id = {.number = 4, .run = run};
  row.run.state = metrics.empty() ? RunState::kFailed : RunState::kFinished;
  row.run.parameters = parameters;
  row.metrics = metrics;
  return row;
}

std::vector<GridRow> Rows() {
  return {
      Row(1, {{"optimizer", "adam"}, {"rate", "0.1"}}, {{"eval/accuracy", {0.5, 10}}, {"loss", {2, 10}}}),
      Row(2, {{"optimizer", "adam"}, {"rate", "0.001"}}, {}),
      Row(3, {{"optimizer", "sgd"}, {"rate", "0.1"}}, {{"eval/accuracy", {0.75, 10}}, {"loss", {1, -1}}}),
      Row(4, {{"optimizer", "sgd"}, {"rate", "0.001"}},
          {{"eval/accuracy", {std::numeric_limits<double>::quiet_NaN(), 10}}, {"loss", {3, 10}}}),
  };
}

std::vector<int> Order(const GridReportOptions& options) {
  std::vector<int> order;
  for (const GridRow& row : Sorted(Rows(), options)) order.push_back(row.run.id.run);
  return order;
}

TEST(ResolveMetric, ANameThatIsUniqueByItsEnd) {
  const auto resolved = ResolveMetric(Rows(), "accuracy", {}).value();
  EXPECT_EQ(resolved.metric, "eval/accuracy");
  EXPECT_EQ(ResolveMetric(Rows(), "loss", {})->lowest_first, true) << "as without a name";
  EXPECT_EQ(ResolveMetric(Rows(), "loss", false)->lowest_first, false);
  EXPECT_EQ(ResolveMetric(Rows(), "accuracy", true)->lowest_first, true);
}

TEST(ResolveMetric, OtherNamesAreErrorsThatNameWhatThereIs) {
  const absl::Status unknown = ResolveMetric(Rows(), "curacy", {}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(unknown));
  EXPECT_THAT(std::string(unknown.message()), AllOf(HasSubstr("curacy"), HasSubstr("accepted: eval/accuracy, loss")));
  std::vector<GridRow> rows = {Row(1, {}, {{"a/loss", {}}, {"b/loss", {}}})};
  EXPECT_THAT(std::string(ResolveMetric(rows, "loss", {}).status().message()), HasSubstr("which of a/loss, b/loss?"));
  EXPECT_THAT(std::string(ResolveMetric(rows, "", {}).status().message()), HasSubstr("accepted: a/loss, b/loss"));
  EXPECT_THAT(std::string(ResolveMetric({}, "loss", {}).status().message()), HasSubstr("none yet"));
}

TEST(ResolveMetric, WithoutANameTheUsualOnes) {
  EXPECT_EQ(ResolveMetric(Rows(), "", {})->metric, "eval/accuracy");
  EXPECT_FALSE(ResolveMetric(Rows(), "", {})->lowest_first);
  const std::vector<GridRow> losses = {Row(1, {}, {{"loss", {}}, {"rate", {}}})};
  EXPECT_EQ(ResolveMetric(losses, "", {})->metric, "loss");
  EXPECT_TRUE(ResolveMetric(losses, "", {})->lowest_first);
  EXPECT_EQ(ResolveMetric({Row(1, {}, {{"perplexity", {}}})}, "", {})->metric, "perplexity");
  EXPECT_EQ(ResolveMetric({Row(1, {}, {})}, "", {})->metric, "") << "nobody has any yet";
}

TEST(GridReport, SortsWithWhatIsMissingLast) {
  EXPECT_THAT(Order({.metric = "eval/accuracy"}), ElementsAre(3, 1, 4, 2));
  EXPECT_THAT(Order({.metric = "eval/accuracy", .lowest_first = true}), ElementsAre(1, 3, 4, 2));
  EXPECT_THAT(Order({.metric = "loss"}), ElementsAre(4, 1, 3, 2));
  EXPECT_THAT(Order({}), ElementsAre(1, 2, 3, 4));
}

TEST(GridReport, Table) {
  EXPECT_EQ(GridTable(Rows(), {.metric = "eval/accuracy"}),
            "RUN  STATE     optimizer   rate  eval/accuracy  step\n"
            "4.3  FINISHED        sgd    0.1           0.75    10\n"
            "4.1  FINISHED       adam    0.1            0.5    10\n"
            "4.4  FINISHED        sgd  0.001            nan    10\n"
            "4.2  FAILED         adam  0.001              -     -\n");
  EXPECT_EQ(GridTable({Row(0, {}, {})}, {}), "RUN  STATE\n4    FAILED\n");
  EXPECT_THAT(GridTable({Row(1, {{"a", "1"}}, {}), Row(2, {}, {})}, {}), HasSubstr("4.2  FAILED  -\n"));
}

TEST(GridReport, Json) {
  const std::string text = GridJson(Rows(), {.metric = "loss", .lowest_first = true});
  EXPECT_EQ(text.find('\n'), text.size() - 1) << "one line";
  const auto report = nlohmann::json::parse(text);
  EXPECT_EQ(report["metric"], "loss");
  EXPECT_EQ(report["lowest_first"], true);
  const auto& best = report["runs"][0];
  EXPECT_EQ(best["id"], "4.3");
  EXPECT_EQ(best["state"], "FINISHED");
  EXPECT_EQ(best["parameters"]["optimizer"], "sgd");
  EXPECT_EQ(best["value"], 1);
  EXPECT_TRUE(best["step"].is_null());
  EXPECT_EQ(best["metrics"]["eval/accuracy"], 0.75);
  EXPECT_TRUE(report["runs"][3]["value"].is_null());
  EXPECT_TRUE(report["runs"][2]["metrics"]["eval/accuracy"].is_null()) << "not finite";
}

TEST(GridReport, PageHasThePlotsAndTheTable) {
  const std::string page = GridHtml("Experiment 4 of demo", Rows(), {.metric = "eval/accuracy"});
  EXPECT_THAT(page, AllOf(HasSubstr("<title>Experiment 4 of demo</title>"),
                          HasSubstr("4 runs; the greatest eval/accuracy is 0.75, of 4.3 with optimizer=sgd, rate=0.1."),
                          HasSubstr("aria-label=\"eval/accuracy against optimizer\""),
                          HasSubstr("<title>4.3: optimizer=sgd, rate=0.1: 0.75</title>"),
                          HasSubstr("<th scope=\"col\" aria-sort=\"descending\"><button type=\"button\">eval/accuracy"),
                          HasSubstr("<tr class=\"best\">")));
}

TEST(GridReport, PageLoadsNothing) {
  const std::string page = GridHtml("Experiment 4", Rows(), {.metric = "eval/accuracy"});
  for (const char* reference : {"http:", "https:", "src=", "href=", "url(", "@import"})
    EXPECT_THAT(page, Not(HasSubstr(reference)));
}

TEST(GridReport, PageSaysWhatIsTheSameInAllRunsInsteadOfDrawingIt) {
  const std::string page = GridHtml("Experiment 4",
                                    {Row(1, {{"layers", "4"}, {"rate", "1"}}, {{"loss", {1, 1}}}),
                                     Row(2, {{"layers", "4"}, {"rate", "2"}}, {{"loss", {2, 1}}})},
                                    {.metric = "loss"});
  EXPECT_THAT(page, AllOf(HasSubstr("The same in all runs with results: layers=4."),
                          Not(HasSubstr("loss against layers")), HasSubstr("loss against rate")));
}

TEST(GridReport, PageOfStrangeNamesIsStillAPage) {
  const std::string page =
      GridHtml("<script>1</script>",
               {Row(1, {{"a<b", "\"&'"}}, {{"<i>", {1, 1}}}), Row(2, {{"a<b", "</svg>"}}, {{"<i>", {2, 1}}})},
               {.metric = "<i>"});
  EXPECT_THAT(page, AllOf(HasSubstr("&lt;script&gt;1&lt;/script&gt;"), HasSubstr("a&lt;b"), HasSubstr("&lt;/svg&gt;"),
                          Not(HasSubstr("<i>")), Not(HasSubstr("<script>1")), Not(HasSubstr("a<b"))));
}

TEST(GridReport, PageWithoutResults) {
  EXPECT_THAT(GridHtml("Experiment 4", {Row(1, {{"a", "1"}}, {})}, {}), HasSubstr("1 run; no results yet."));
  EXPECT_THAT(GridHtml("Experiment 4", {}, {}), HasSubstr("0 runs; no results yet."));
}

}  // namespace
}  // namespace muster::grid_report_test
