#include "muster/train/hooks/hooks.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/algo/algorithms/commit_pipeline.h"
#include "muster/algo/sources/quadratic_source.h"
#include "muster/base/clock.h"
#include "muster/base/files/memory_file_system.h"
#include "muster/base/testing/built_at.h"
#include "muster/base/wrong_configuration.h"
#include "muster/optim/rule_options.h"
#include "muster/summary/event_file_reader.h"
#include "muster/train/testing/hook_driver.h"

namespace muster::hooks_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

const absl::Time kStart = Driver::StartTime();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Which hooks there are is what hooks.h includes.
TEST(HooksTest, EveryHookIsInHooksH) {
  std::ifstream stream(SourceFolder() + "/muster/train/hooks/hooks.h");
  const std::string included{std::istreambuf_iterator<char>(stream), {}};
  int hooks = 0;
  for (const auto& file : std::filesystem::directory_iterator(SourceFolder() + "/muster/train/hooks")) {
    const std::string name = file.path().filename();
    if (!name.ends_with(".h") || name == "hooks.h" || name == "run_summary.h" || name == "timer_options.h") continue;
    EXPECT_THAT(included, HasSubstr("\"muster/train/hooks/" + name + "\""));
    ++hooks;
  }
  EXPECT_GT(hooks, 15);
}

TEST(SecondOrStepTimerTest, ByStepsAsInTensorFlow) {
  SecondOrStepTimer timer = SecondOrStepTimer::EverySteps(3);
  EXPECT_FALSE(timer.last_triggered_step().has_value());
  EXPECT_TRUE(timer.ShouldTriggerForStep(1, kStart)) << "the first question";
  EXPECT_FALSE(timer.UpdateLastTriggered(1, kStart).has_value());
  EXPECT_FALSE(timer.ShouldTriggerForStep(1, kStart + absl::Hours(1))) << "never twice for one step";
  EXPECT_FALSE(timer.ShouldTriggerForStep(2, kStart));
  EXPECT_FALSE(timer.ShouldTriggerForStep(3, kStart));
  EXPECT_TRUE(timer.ShouldTriggerForStep(4, kStart));
  EXPECT_TRUE(timer.ShouldTriggerForStep(50, kStart)) << "others moved the step, too";
  const auto elapsed = timer.UpdateLastTriggered(50, kStart + absl::Seconds(7));
  ASSERT_TRUE(elapsed.has_value());
  EXPECT_EQ(elapsed->steps, 49);
  EXPECT_EQ(elapsed->time, absl::Seconds(7));
  EXPECT_EQ(timer.last_triggered_step(), 50);
  EXPECT_FALSE(timer.ShouldTriggerForStep(52, kStart));
  EXPECT_TRUE(timer.ShouldTriggerForStep(53, kStart));
}

TEST(SecondOrStepTimerTest, AnEarlierStepIsAFirstOne) {
  for (SecondOrStepTimer timer : {SecondOrStepTimer::EverySteps(3), SecondOrStepTimer::Every(absl::Seconds(2))}) {
    timer.UpdateLastTriggered(1000, kStart);
    EXPECT_TRUE(timer.ShouldTriggerForStep(101, kStart));
    EXPECT_FALSE(timer.UpdateLastTriggered(101, kStart + absl::Seconds(1)).has_value()) << "no rate of steps back";
    EXPECT_FALSE(timer.ShouldTriggerForStep(102, kStart + absl::Seconds(2)));
    EXPECT_TRUE(timer.ShouldTriggerForStep(104, kStart + absl::Seconds(3)));
  }
}

TEST(SecondOrStepTimerTest, ByTimeAsInTensorFlow) {
  SecondOrStepTimer timer = SecondOrStepTimer::Every(absl::Seconds(2));
  EXPECT_TRUE(timer.ShouldTriggerForStep(1, kStart));
  timer.UpdateLastTriggered(1, kStart);
  EXPECT_FALSE(timer.ShouldTriggerForStep(1, kStart + absl::Seconds(9))) << "never twice for one step";
  EXPECT_FALSE(timer.ShouldTriggerForStep(2, kStart + absl::Milliseconds(1999)));
  EXPECT_TRUE(timer.ShouldTriggerForStep(2, kStart + absl::Seconds(2)));
}

TEST(HookOptionsTest, ThoseThatContradictEachOtherAreAWrongConfiguration) {
  for (const auto& hook : {StopAtStep({}), SummarySaver({}), CheckpointSaver({}), LoggingTensor({.every_n_iter = 0})})
    EXPECT_TRUE(IsWrongConfiguration(hook->Begin()));
}

TEST(StopAtStepTest, ExactlyOneOfTheTwoIsGiven) {
  EXPECT_EQ(StopAtStep({.num_steps = 1})->Begin(), absl::OkStatus());
  EXPECT_EQ(StopAtStep({.last_step = 1})->Begin(), absl::OkStatus());
  EXPECT_TRUE(absl::IsInvalidArgument(StopAtStep({})->Begin()));
  EXPECT_TRUE(absl::IsInvalidArgument(StopAtStep({.num_steps = 1, .last_step = 1})->Begin()));
}

TEST(StopAtStepTest, LastStep) {
  Driver driver(StopAtStep({.last_step = 10}));
  ASSERT_EQ(driver.Create(7), absl::OkStatus());
  EXPECT_FALSE(driver.Run(8));
  EXPECT_FALSE(driver.Run(9));
  EXPECT_TRUE(driver.Run(10));
  EXPECT_TRUE(driver.Run(15)) << "other workers may have moved the step beyond 10";
}

TEST(StopAtStepTest, WhereTheLastStepIsReachedAlreadyTheSessionStopsAtItsCreation) {
  const auto hook = StopAtStep({.last_step = 10});
  std::vector<int64_t> stopped_at;
  for (const int64_t step : {9, 10, 11}) {
    const auto stop = [&stopped_at, step] { stopped_at.push_back(step); };
    EXPECT_EQ(hook->AfterCreateSession({.global_step = step, .request_stop = stop}), absl::OkStatus());
  }
  EXPECT_THAT(stopped_at, ElementsAre(10, 11));
}

TEST(StopAtStepTest, NumStepsCountFromTheFirstCreationOnly) {
  Driver driver(StopAtStep({.num_steps = 5}));
  ASSERT_EQ(driver.Create(100), absl::OkStatus());
  EXPECT_FALSE(driver.Run(103));
  ASSERT_EQ(driver.Create(103), absl::OkStatus());  // a recovery
  EXPECT_FALSE(driver.Run(104));
  EXPECT_TRUE(driver.Run(105));
}

TEST(NanTensorTest, ANumberIsFine) {
  Driver driver(NanTensor());
  EXPECT_FALSE(driver.Run(1, -1e30));
  EXPECT_EQ(driver.status, absl::OkStatus());
  EXPECT_FALSE(driver.Run(2, std::numeric_limits<double>::infinity())) << "TensorFlow's hook asks isnan";
  EXPECT_EQ(driver.status, absl::OkStatus());
}

TEST(NanTensorTest, NanIsAnErrorOrAStop) {
  Driver failing(NanTensor());
  EXPECT_THAT(Logged([&] { failing.Run(1, kNan); }), ElementsAre("Model diverged with loss = NaN."));
  EXPECT_EQ(failing.status, absl::InternalError("NaN loss during training."));
  Driver stopping(NanTensor({.fail_on_nan_loss = false}));
  EXPECT_TRUE(stopping.Run(1, kNan));
  EXPECT_EQ(stopping.status, absl::OkStatus());
}

TEST(NanTensorTest, OfAnotherTensorThanTheLoss) {
  Driver driver(NanTensor({.tensor = "perplexity"}));
  EXPECT_FALSE(driver.Run(1, kNan, {{"perplexity", 1}}));
  EXPECT_EQ(driver.status, absl::OkStatus());
  driver.Run(2, 1, {{"perplexity", kNan}});
  EXPECT_EQ(driver.status, absl::InternalError("NaN perplexity during training."));
  driver.Run(3, 1, {{"perplexety", kNan}});
  EXPECT_TRUE(absl::IsInvalidArgument(driver.status));
  EXPECT_THAT(std::string(driver.status.message()), HasSubstr("NanTensor: the step has no 'perplexity'; it has loss"));
}

TEST(LoggingTensorTest, TensorFlowsLine) {
  Driver driver(LoggingTensor());
  const auto lines = Logged([&] {
    for (int64_t step = 1; step <= 201; ++step) {
      driver.Run(step, step == 101 ? 0.5 : 0.25);
      driver.now += absl::Milliseconds(333);
    }
  });
  EXPECT_THAT(lines, ElementsAre("loss = 0.25, step = 1", "loss = 0.5, step = 101 (33.300 sec)",
                                 "loss = 0.25, step = 201 (33.300 sec)"));
}

TEST(LoggingTensorTest, CountsTheRunsOfThisProcessNotTheGlobalStep) {
  Driver driver(LoggingTensor({.tensors = {"step"}, .every_n_iter = 2}));
  EXPECT_THAT(Logged([&] {
                for (const int64_t step : {7, 107, 207, 307}) driver.Run(step);
              }),
              ElementsAre("step = 7", "step = 207 (0.000 sec)"));
}

TEST(LoggingTensorTest, ByTimeAndAtTheEndAndAnyScalarInTheGivenOrder) {
  Driver driver(LoggingTensor(
      {.tensors = {"step", "accuracy", "staleness", "loss"}, .every = absl::Seconds(10), .at_end = true}));
  const auto lines = Logged([&] {
    driver.Run(1, 3, {{"accuracy", 0.125}});
    driver.now += absl::Seconds(9);
    driver.Run(2, 2, {{"accuracy", 0.25}});
    driver.now += absl::Seconds(1);
    driver.Run(3, 1.5, {{"accuracy", 0.5}});
    driver.Run(4, 1.25, {{"accuracy", 0.75}});
    EXPECT_EQ(driver.End(4), absl::OkStatus());
  });
  EXPECT_THAT(lines, ElementsAre("step = 1, accuracy = 0.125, staleness = 0, loss = 3",
                                 "step = 3, accuracy = 0.5, staleness = 0, loss = 1.5 (10.000 sec)",
                                 "step = 4, accuracy = 0.75, staleness = 0, loss = 1.25"));
}

TEST(LoggingTensorTest, NumbersOfAllSizes) {
  const auto line = [](double loss, int64_t step) {
    Driver driver(LoggingTensor());
    return Logged([&] { driver.Run(step, loss); }).at(0);
  };
  EXPECT_EQ(line(0.1, 123456789012), "loss = 0.1, step = 123456789012") << "steps in full";
  EXPECT_EQ(line(2.3025851, 1), "loss = 2.3025851, step = 1");
  EXPECT_EQ(line(1e-12, 1), "loss = 1e-12, step = 1");
  EXPECT_EQ(line(1e30, 1), "loss = 1e+30, step = 1");
  EXPECT_EQ(line(-3, 1), "loss = -3, step = 1");
  EXPECT_THAT(line(kNan, 1), HasSubstr("nan, step = 1"));
}

TEST(LoggingTensorTest, AnUnknownTensorIsNamedWithTheKnownOnes) {
  Driver driver(LoggingTensor({.tensors = {"accurracy"}}));
  driver.Run(1);
  EXPECT_TRUE(absl::IsInvalidArgument(driver.status));
  EXPECT_THAT(std::string(driver.status.message()),
              HasSubstr("has no 'accurracy'; it has loss, step, global_step, staleness;"));
  Driver with_scalars(LoggingTensor({.tensors = {"accurracy"}}));
  with_scalars.Run(1, 0.5, {{"loss", 0.5}, {"lr", 0.1}});
  EXPECT_THAT(std::string(with_scalars.status.message()), HasSubstr("it has loss, step, global_step, staleness, lr;"))
      << "a scalar called loss isn't named twice";
  EXPECT_TRUE(absl::IsInvalidArgument(LoggingTensor({.every_n_iter = 0})->Begin()));
}

TEST(LoggingTensorTest, TagsOfOnesOwnAreSorted) {
  Driver driver(LoggingTensor({.tagged_tensors = {{"z", "step"}, {"a", "loss"}}}));
  EXPECT_THAT(Logged([&] { driver.Run(7, 0.5); }), ElementsAre("a = 0.5, z = 7"));
  Driver formatted(
      LoggingTensor({.formatter = [](const RunValues& values) { return absl::StrCat("at ", values.global_step); }}));
  EXPECT_THAT(Logged([&] { formatted.Run(7); }), ElementsAre("at 7"));
}

TEST(LoggingTensorTest, AtTheEndOnly) {
  Driver driver(LoggingTensor({.at_end = true}));
  EXPECT_EQ(driver.Begin(), absl::OkStatus());
  EXPECT_THAT(Logged([&] {
                for (int64_t step = 1; step <= 250; ++step) driver.Run(step);
                EXPECT_EQ(driver.End(250), absl::OkStatus());
              }),
              ElementsAre("loss = 0.5, step = 250"));
}

// Counts its own runs, not global steps.
TEST(LoggingTensorTest, CountsLocalIterations) {
  Driver driver(LoggingTensor({.tensors = {"step"}, .every_n_iter = 2}));
  EXPECT_THAT(Logged([&] {
                for (const int64_t step : {10, 500, 501, 502, 9000}) driver.Run(step);
              }),
              ElementsAre("step = 10", "step = 501 (0.000 sec)", "step = 9000 (0.000 sec)"));
}

TEST(HookOptionsTest, SecondsAndStepsTogetherAreRefusedByTheirNames) {
  const auto text = [](const std::shared_ptr<SessionHook>& hook) {
    const absl::Status status = hook->Begin();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  const absl::Duration second = absl::Seconds(1);
  const std::string save = ": exactly one of save_steps and save_interval must be given";
  EXPECT_EQ(text(CheckpointSaver({.save_steps = 1, .save_interval = second})), "CheckpointSaver" + save);
  EXPECT_EQ(text(SummarySaver({.save_steps = 1, .save_interval = second})), "SummarySaver" + save);
  EXPECT_EQ(text(GradientNorms({.save_steps = 1, .save_interval = second})), "GradientNorms" + save);
  EXPECT_EQ(text(GradientHistograms({.save_steps = 1, .save_interval = second})), "GradientHistograms" + save);
  EXPECT_EQ(text(Profiler({.save_steps = 1, .save_interval = second})), "Profiler" + save);
  const std::string every = ": give one of every_n_steps and every, not both";
  EXPECT_EQ(text(StepCounter({.every_n_steps = 1, .every = second})), "StepCounter" + every);
  EXPECT_EQ(text(LearningRateLogger({.every_n_steps = 1, .every = second})), "LearningRateLogger" + every);
  EXPECT_EQ(text(LoggingTensor({.every_n_iter = 1, .every = second})),
            "LoggingTensor: give one of every_n_iter and every, not both");
}

class SummaryHooksTest : public ::testing::Test {
 protected:
  SummaryHooksTest() { writer_ = *EventFileWriter::Open(files_, clock_, "logs", {}); }
  std::vector<SummaryEvent> Events() {
    EXPECT_EQ(writer_->Flush(), absl::OkStatus());
    return ReadEventFile(*files_.ReadFile(writer_->path()));
  }

  SimulatedClock clock_;
  MemoryFileSystem files_;
  std::unique_ptr<EventFileWriter> writer_;
};

TEST_F(SummaryHooksTest, SummarySaverSavesTheFirstRunAndThenEveryNSteps) {
  Driver driver(SummarySaver({.save_steps = 3}));
  driver.summaries = writer_.get();
  ASSERT_EQ(driver.Begin(), absl::OkStatus());
  ASSERT_EQ(driver.Create(10), absl::OkStatus());
  for (int64_t step = 11; step <= 17; ++step) driver.Run(step, 0.5 * static_cast<double>(step), {{"accuracy", 0.25}});
  ASSERT_EQ(driver.End(17), absl::OkStatus());
  std::vector<std::string> story;
  for (const SummaryEvent& event : Events()) story.push_back(event.ToString());
  EXPECT_THAT(story, ElementsAre("11: START", "11: loss=5.5 accuracy=0.25", "14: loss=7 accuracy=0.25",
                                 "17: loss=8.5 accuracy=0.25", "17: STOP"));
}

TEST_F(SummaryHooksTest, SummarySaverNeedsAPlaceToWriteTo) {
  Driver driver(SummarySaver({.save_steps = 3}));
  EXPECT_TRUE(absl::IsFailedPrecondition(driver.Create(0)));
  EXPECT_TRUE(absl::IsInvalidArgument(SummarySaver({})->Begin()));
  EXPECT_TRUE(absl::IsInvalidArgument(SummarySaver({.save_steps = 1, .save_interval = absl::Seconds(1)})->Begin()));
  EXPECT_TRUE(absl::IsInvalidArgument(SummarySaver({.save_steps = -1})->Begin()));
}

TEST_F(SummaryHooksTest, StepCounterMeasuresTheGlobalStepNotItsOwnRuns) {
  Driver driver(StepCounter({.every_n_steps = 100}));
  driver.summaries = writer_.get();
  const auto lines = Logged([&] {
    for (int64_t step = 50; step <= 350; step += 50) {  // other workers train, too
      driver.Run(step);
      driver.now += absl::Milliseconds(500);
    }
  });
  // The first run starts the clock; then 100 steps in 1 s.
  EXPECT_THAT(lines, ElementsAre("global_step/sec: 100", "global_step/sec: 100", "global_step/sec: 100"));
  std::vector<std::string> story;
  for (const SummaryEvent& event : Events()) story.push_back(event.ToString());
  EXPECT_THAT(story, ElementsAre("150: global_step/sec=100", "250: global_step/sec=100", "350: global_step/sec=100"));
}

TEST_F(SummaryHooksTest, StepCounterByTimeAndItsNumbers) {
  Driver driver(StepCounter({.every = absl::Seconds(8)}));
  EXPECT_THAT(Logged([&] {
                driver.Run(0);
                driver.now += absl::Seconds(8);
                driver.Run(99);
                driver.now += absl::Seconds(7);
                driver.Run(500);
              }),
              ElementsAre("global_step/sec: 12.375"));
}

TEST_F(SummaryHooksTest, StepCounterWarnsNowAndThenWhileTheStepStandsStill) {
  Driver driver(StepCounter());
  const auto lines = Logged([&] {
    for (int i = 0; i < 60; ++i) driver.Run(7);
  });
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("the global step has not moved"));
  EXPECT_THAT(lines[0], HasSubstr("7"));
  EXPECT_THAT(Logged([&] {
                for (int i = 60; i < 2020; ++i) driver.Run(7);
              }),
              ElementsAre(HasSubstr("for 1020 runs")))
      << "again every 1000 runs";
  Driver moving(StepCounter({.every_n_steps = 1000}));
  EXPECT_THAT(Logged([&] {
                for (int i = 0; i < 60; ++i) moving.Run(i / 3);
              }),
              IsEmpty());
}

TEST_F(SummaryHooksTest, StepCounterKnowsThatAWindowMovesTheStepOnceOnly) {
  QuadraticSource source({{.name = "w", .shape = {1}}});
  CommitPipeline windows(source, *PlaceVariables(source.variables(), 1, Placement::kRoundRobin, {}), PlainAdd(),
                         {.kind = CommitKind::kDelta, .window = 50, .worker_rule = Sgd()});
  Driver driver(StepCounter({.every_n_steps = 1000}));
  driver.algorithm = &windows;
  EXPECT_THAT(Logged([&] {
                for (int i = 0; i < 500; ++i) driver.Run(i / 50);
              }),
              IsEmpty());
  EXPECT_THAT(Logged([&] {
                for (int i = 0; i <= 20 * 50; ++i) driver.Run(10);
              }),
              ElementsAre(HasSubstr("the global step has not moved")));
}

TEST(CheckpointSaverTest, NeedsAChiefWithADirectoryAndOneInterval) {
  Driver driver(CheckpointSaver({.save_steps = 3}));
  EXPECT_TRUE(absl::IsFailedPrecondition(driver.Create(0)));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckpointSaver({})->Begin()));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckpointSaver({.save_steps = 1, .save_interval = absl::Seconds(1)})->Begin()));
}

}  // namespace
}  // namespace muster::hooks_test
