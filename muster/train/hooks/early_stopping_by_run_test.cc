#include "muster/train/hooks/early_stopping_by_run.h"

#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <vector>

#include "muster/train/testing/hook_driver.h"
#include "muster/train/testing/training_process.h"

namespace muster::early_stopping_by_run_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr;

const StopCheck kEachStep = {.run_every_steps = 1};

// Returns the step at which the hook stops a training with these losses at steps 1, 2, …; 0: it doesn't.
int64_t StopsAt(std::shared_ptr<SessionHook> hook, const std::vector<double>& losses) {
  Driver driver(std::move(hook));
  EXPECT_EQ(driver.Begin(), absl::OkStatus());
  EXPECT_EQ(driver.Create(0), absl::OkStatus());
  for (size_t i = 0; i < losses.size(); ++i)
    if (driver.Run(static_cast<int64_t>(i + 1), losses[i])) return static_cast<int64_t>(i + 1);
  return 0;
}

TEST(EarlyStoppingTest, NoDecreaseForSoManySteps) {
  const NoImprovementOptions options{.max_steps_without_improvement = 3, .check = kEachStep};
  EXPECT_EQ(StopsAt(StopIfNoDecrease(options), {5, 4, 3, 3, 3, 3, 3}), 6) << "equal is no decrease";
  EXPECT_EQ(StopsAt(StopIfNoDecrease(options), {5, 6, 7, 4, 5, 6, 3}), 0);
  EXPECT_EQ(StopsAt(StopIfNoDecrease(options), {5, 6, 7, 8}), 4);
  EXPECT_EQ(StopsAt(StopIfNoIncrease(options), {5, 6, 7, 7, 7, 7}), 6);
  EXPECT_EQ(StopsAt(StopIfNoIncrease(options), {5, 6, 7, 8, 9, 10}), 0);
}

TEST(EarlyStoppingTest, EarlierStepsDontCountAndNanIsNeverTheBest) {
  const NoImprovementOptions late{.max_steps_without_improvement = 2, .min_steps = 4, .check = kEachStep};
  EXPECT_EQ(StopsAt(StopIfNoDecrease(late), {1, 1, 1, 9, 8, 8, 8}), 7) << "the best is 8, of step 5";
  const NoImprovementOptions options{.max_steps_without_improvement = 2, .check = kEachStep};
  EXPECT_EQ(StopsAt(StopIfNoDecrease(options), {std::nan(""), 5, 4, 3, 2}), 0);
  EXPECT_EQ(StopsAt(StopIfNoDecrease(options), {std::nan(""), std::nan(""), std::nan("")}), 3);
}

TEST(EarlyStoppingTest, AThreshold) {
  const ThresholdOptions options{.threshold = 4, .min_steps = 2, .check = kEachStep};
  EXPECT_EQ(StopsAt(StopIfHigher(options), {9, 4, 4.5}), 3);
  EXPECT_EQ(StopsAt(StopIfLower(options), {1, 4, 5, 3}), 4);
}

TEST(EarlyStoppingTest, IsAskedEverySoOftenAboutAllThatWas) {
  const NoImprovementOptions options{.max_steps_without_improvement = 3, .check = {.run_every_steps = 10}};
  // Checked at steps 1 and 11. The decreases after the three steps without one make no difference, as in TensorFlow.
  EXPECT_EQ(StopsAt(StopIfNoDecrease(options), {5, 6, 6, 6, 6, 6, 4, 3, 2, 1, 0, 0}), 11);

  int asked = 0;
  Driver driver(StopIf([&asked](const RunValues&) { return ++asked == 3; }));
  EXPECT_FALSE(driver.Run(1));
  driver.now += absl::Seconds(59);
  EXPECT_FALSE(driver.Run(2));
  driver.now += absl::Seconds(1);
  EXPECT_FALSE(driver.Run(3));
  EXPECT_EQ(asked, 2) << "every 60 seconds by default";
  driver.now += absl::Seconds(60);
  EXPECT_THAT(Logged([&] { EXPECT_TRUE(driver.Run(4)); }),
              ElementsAre("Requesting early stopping at global step 4: the program's condition holds."));
}

TEST(EarlyStoppingTest, AScalarThatNotEveryRunHas) {
  Driver driver(StopIfNoIncrease({.metric = "accuracy", .max_steps_without_improvement = 5, .check = kEachStep}));
  EXPECT_FALSE(driver.Run(1, 1, {{"accuracy", 0.5}}));
  EXPECT_FALSE(driver.Run(3));
  EXPECT_FALSE(driver.Run(9)) << "nothing new is known";
  EXPECT_THAT(Logged([&] {
                EXPECT_TRUE(driver.Run(10, 1, {{"accuracy", 0.5}}));
              }),
              ElementsAre(HasSubstr("no increase in metric \"accuracy\" for 9 steps, which is greater than or equal to "
                                    "max steps (5)")));
}

TEST(EarlyStoppingTest, AMetricThatNoRunHasIsSaidAtTheFirstQuestionAndAtTheEnd) {
  Driver driver(StopIfHigher({.metric = "acuracy", .check = {.run_every_steps = 10}}));
  ASSERT_EQ(driver.Begin(), absl::OkStatus());
  const auto warning = HasSubstr("no run so far had 'acuracy'; there were: ");
  EXPECT_THAT(Logged([&] { driver.Run(1, 1, {{"accuracy", 0.5}}); }), ElementsAre(warning));
  EXPECT_TRUE(Logged([&] {
                driver.Run(2, 1, {{"accuracy", 0.5}});
                driver.Run(20, 1, {{"accuracy", 0.5}});
              }).empty());
  EXPECT_THAT(Logged([&] { EXPECT_EQ(driver.End(20), absl::OkStatus()); }),
              ElementsAre(HasSubstr("accuracy, global_step, loss, staleness")));
  Driver known(StopIfHigher({.metric = "accuracy", .threshold = 1, .check = kEachStep}));
  EXPECT_TRUE(Logged([&] {
                known.Run(1, 1, {{"accuracy", 0.5}});
                EXPECT_EQ(known.End(1), absl::OkStatus());
              }).empty());
}

TEST(EarlyStoppingTest, OnlyTheChiefDecides) {
  Driver driver(StopIf([](const RunValues&) { return true; }, kEachStep));
  driver.is_chief = false;
  EXPECT_FALSE(driver.Run(1));
}

TEST(EarlyStoppingTest, BadOptionsAreNamed) {
  const auto both = StopIf({}, {.run_every_steps = 1, .run_every = absl::Seconds(1)})->Begin();
  EXPECT_TRUE(absl::IsInvalidArgument(both));
  EXPECT_THAT(std::string(both.message()), HasSubstr("run_every_steps and run_every"));
  const auto none = StopIfNoDecrease({})->Begin();
  EXPECT_TRUE(absl::IsInvalidArgument(none));
  EXPECT_THAT(std::string(none.message()), HasSubstr("max_steps_without_improvement is 0"));
}

TEST(EarlyStoppingTest, TheWholeClusterEndsWithALastCheckpoint) {
  SimulatedStore store(2, {"chief:0", "worker:0"});
  TrainingProcess chief_process(store, "chief:0", {.files = &store.files});
  TrainingProcess worker_process(store, "worker:0");
  Session chief =
      chief_process.MakeSession({.checkpoint_dir = "model", .save_checkpoint_steps = 1000},
                                {StopIf([](const RunValues& values) { return values.global_step >= 4; }, kEachStep)});
  Session worker = worker_process.MakeSession();
  ASSERT_EQ(chief.Start(), absl::OkStatus());
  ASSERT_EQ(worker.Start(), absl::OkStatus());
  while (!chief.ShouldStop()) {
    ASSERT_EQ(worker.Run(), absl::OkStatus());
    ASSERT_EQ(chief.Run(), absl::OkStatus());
  }
  EXPECT_EQ(chief.Close(), absl::OkStatus());
  EXPECT_EQ(chief.last_checkpoint(), "model/model.ckpt-4");
  EXPECT_FALSE(worker.ShouldStop());
  EXPECT_EQ(worker.Run(), absl::OkStatus());
  EXPECT_TRUE(worker.ShouldStop());
  EXPECT_EQ(worker.Close(), absl::OkStatus());
  store.Pass(absl::Seconds(1));
  EXPECT_TRUE(store.service(0).finished());
  EXPECT_TRUE(store.service(1).finished());
}

}  // namespace
}  // namespace muster::early_stopping_by_run_test
