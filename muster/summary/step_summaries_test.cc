#include "muster/summary/step_summaries.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <thread>

#include "muster/summary/summary_values.h"

namespace muster::step_summaries_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Pair;

TEST(StepSummariesTest, OutsideAStepTheCallIsAnErrorThatTeaches) {
  const absl::Status status = StepSummaries::Current("summary::Scalar(\"loss\")").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("summary::Scalar(\"loss\") was called outside a step"), HasSubstr("session.Run")));
}

TEST(StepSummariesTest, TheInnerStepIsMetUntilItEnds) {
  StepSummaries outer, inner;
  {
    const StepSummaries::Scope outer_step(outer, true);
    EXPECT_EQ(*StepSummaries::Current(""), &outer);
    {
      const StepSummaries::Scope inner_step(inner, false);
      EXPECT_EQ(*StepSummaries::Current(""), &inner);
      EXPECT_FALSE(inner.wanted());
    }
    EXPECT_EQ(*StepSummaries::Current(""), &outer);
    EXPECT_TRUE(outer.wanted());
  }
  EXPECT_FALSE(StepSummaries::Current("").ok());
}

TEST(StepSummariesTest, AnotherThreadHasAnotherStep) {
  StepSummaries here;
  const StepSummaries::Scope step(here, true);
  bool found = true;
  std::thread([&found] { found = StepSummaries::Current("").ok(); }).join();
  EXPECT_FALSE(found);
}

TEST(StepSummariesTest, MergeAllGivesEverythingOfTheStep) {
  StepSummaries summaries;
  const StepSummaries::Scope step(summaries, true);
  const uint8_t pixel[] = {7};
  const float values[] = {1, 2};
  summaries.AddText("notes", "a");
  summaries.AddScalar("loss", 0.5);
  ASSERT_EQ(summaries.AddHistogram("weights", values), absl::OkStatus());
  ASSERT_EQ(summaries.AddImage("dot", {1, 1, 1, pixel}), absl::OkStatus());
  std::string expected;
  AppendScalar(expected, "loss", 0.5f);
  const size_t scalars = expected.size();
  AppendText(expected, "notes", "a");
  HistogramBuilder histogram;
  histogram.Add(std::span<const float>(values));
  AppendHistogram(expected, "weights", histogram.Build());
  AppendImage(expected, "dot", *EncodePng({1, 1, 1, pixel}));
  EXPECT_EQ(summaries.MergeAll(), expected);
  EXPECT_EQ(summaries.EncodedOthers(), expected.substr(scalars));
}

TEST(StepSummariesTest, OfTwoWithOneTagTheLaterCounts) {
  StepSummaries summaries;
  const StepSummaries::Scope step(summaries, true);
  for (const double loss : {1.0, 2.0}) summaries.AddScalar("loss", loss);
  for (const char* text : {"a", "b"}) summaries.AddText("notes", text);
  EXPECT_THAT(summaries.scalars(), ElementsAre(Pair("loss", 2)));
  std::string expected;
  AppendText(expected, "notes", "b");
  EXPECT_EQ(summaries.EncodedOthers(), expected);
}

TEST(StepSummariesTest, TheNextStepBeginsEmptyButForWhatIsTheRuns) {
  StepSummaries summaries;
  const HParam hparams[] = {{"rate", 0.5}};
  const GraphNode nodes[] = {{.name = "Net", .op = "Net"}};
  {
    const StepSummaries::Scope step(summaries, true);
    summaries.AddScalar("loss", 1);
    summaries.AddText("notes", "a");
    summaries.SetHParams(hparams, {});
    summaries.SetGraph(nodes);
    EXPECT_THAT(summaries.MergeAll(), ::testing::Not(HasSubstr("hparams"))) << "written once, not with each step";
  }
  const StepSummaries::Scope step(summaries, false);
  EXPECT_THAT(summaries.MergeAll(), IsEmpty());
  EXPECT_THAT(summaries.hparams(), HasSubstr("session_start_info"));
  EXPECT_EQ(summaries.graph(), EncodeGraph(nodes));
}

TEST(StepSummariesTest, HistogramsOfWhatIsNoNumberAreRefusedAsInTensorFlow) {
  StepSummaries summaries;
  const StepSummaries::Scope step(summaries, true);
  const float infinity = std::numeric_limits<float>::infinity();
  const float with_nan[] = {1, infinity, std::nanf("")}, with_infinity[] = {1, -infinity};
  EXPECT_EQ(summaries.AddHistogram("w", with_nan), absl::InvalidArgumentError("Nan in summary histogram for: w"));
  EXPECT_EQ(summaries.AddHistogram("w", with_infinity),
            absl::InvalidArgumentError("Infinity in summary histogram for: w"));
  EXPECT_THAT(summaries.MergeAll(), IsEmpty());
}

TEST(StepSummariesTest, AnImageThatIsNoneIsNamed) {
  StepSummaries summaries;
  const absl::Status status = summaries.AddImage("digits", {});
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("summary image digits: "));
}

}  // namespace
}  // namespace muster::step_summaries_test
