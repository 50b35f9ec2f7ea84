#include "muster/train/hooks/learning_rate_logger.h"

#include <gmock/gmock.h>

#include "muster/base/files/memory_file_system.h"
#include "muster/optim/rule_options.h"
#include "muster/summary/event_file_reader.h"
#include "muster/train/testing/hook_driver.h"
#include "muster/train/testing/training_process.h"

namespace muster::learning_rate_logger_test {
namespace {

using ::testing::ElementsAre, ::testing::IsEmpty;

class LearningRateLoggerTest : public ::testing::Test {
 protected:
  AsynchronousAlgorithm Training(const OptimizerSpec& optimizer) {
    return AsynchronousAlgorithm(source_, *PlaceVariables(source_.variables(), 1, Placement::kRoundRobin, {}),
                                 optimizer);
  }

  QuadraticSource source_{{{.name = "w", .shape = {3}}, {.name = "b", .shape = {1}}}};
};

TEST_F(LearningRateLoggerTest, TheScheduleAtTheGlobalStepInTheLogAndTheSummaries) {
  const ScheduleSpec halves = {.kind = ScheduleKind::kStep, .decay_steps = 10, .decay_rate = 0.5};
  AsynchronousAlgorithm algorithm = Training(OptimizerSpec(
      RuleSpec{.learning_rate = 0.8, .schedule = halves},
      {{.variables = {"b"}, .rule = {.learning_rate = 0.25}}, {.variables = {"w"}, .rule = {.kind = RuleKind::kAdd}}}));
  SimulatedClock clock;
  MemoryFileSystem files;
  auto writer = *EventFileWriter::Open(files, clock, "logs", {});
  Driver driver(LearningRateLogger({.every_n_steps = 10}));
  driver.algorithm = &algorithm;
  driver.summaries = writer.get();
  ASSERT_EQ(driver.Begin(), absl::OkStatus());
  EXPECT_THAT(Logged([&] {
                for (int64_t step = 1; step <= 21; ++step) driver.Run(step);
              }),
              ElementsAre("learning_rate = 0.8, learning_rate/b = 0.25, step = 1",
                          "learning_rate = 0.4, learning_rate/b = 0.25, step = 11",
                          "learning_rate = 0.2, learning_rate/b = 0.25, step = 21"));
  ASSERT_EQ(writer->Flush(), absl::OkStatus());
  std::vector<std::string> story;
  for (const SummaryEvent& event : ReadEventFile(*files.ReadFile(writer->path()))) story.push_back(event.ToString());
  EXPECT_THAT(story,
              ElementsAre("1: learning_rate=0.8 learning_rate/b=0.25", "11: learning_rate=0.4 learning_rate/b=0.25",
                          "21: learning_rate=0.2 learning_rate/b=0.25"));
}

TEST_F(LearningRateLoggerTest, AWorkerOnlyLogsAndARuleWithoutARateSaysNothing) {
  AsynchronousAlgorithm algorithm = Training(RuleSpec{.learning_rate = 0.5});
  Driver driver(LearningRateLogger({.every = absl::Seconds(10)}));
  driver.algorithm = &algorithm;
  EXPECT_THAT(Logged([&] {
                driver.Run(1);
                driver.Run(200);
                driver.now += absl::Seconds(10);
                driver.Run(300);
              }),
              ElementsAre("learning_rate = 0.5, step = 1", "learning_rate = 0.5, step = 300"));
  AsynchronousAlgorithm adding = Training(PlainAdd());
  Driver silent(LearningRateLogger());
  silent.algorithm = &adding;
  EXPECT_THAT(Logged([&] { silent.Run(1); }), IsEmpty());
  EXPECT_EQ(silent.status, absl::OkStatus());
  EXPECT_TRUE(absl::IsInvalidArgument(LearningRateLogger({.every_n_steps = 0})->Begin()));
}

}  // namespace
}  // namespace muster::learning_rate_logger_test
