// An evaluator's loop in simulated time: the test trains at the moments it chooses, while the evaluator waits.
#include "muster/estimator/distributed/evaluator.h"

#include <gmock/gmock.h>

#include <map>
#include <utility>
#include <vector>

#include "muster/estimator/testing/straight_line.h"
#include "muster/estimator/training_end.h"
#include "muster/train/testing/hook_driver.h"
#include "muster/train/threads/error.h"

namespace muster::evaluator_test {
namespace {

using ::testing::AllOf, ::testing::Contains, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty,
    ::testing::Pair;

// Records which checkpoints came as the last.
class FinalOnes final : public Exporter {
 public:
  const std::string& name() const override { return name_; }
  std::string Export(Estimator&, const std::string& export_path, const std::string& checkpoint_path, const EvalResults&,
                     bool is_final) override {
    if (!is_final) return "";
    steps.push_back(StepOfCheckpointPath(checkpoint_path));
    return export_path;
  }
  std::vector<int64_t> steps;

 private:
  const std::string name_ = "final_ones";
};

class EvaluatorTest : public ::testing::Test {
 protected:
  // Calls `action` at that second of the evaluator's life.
  void At(int second, std::function<void()> action) { events_.emplace(second, std::move(action)); }
  void TrainTo(int64_t step) { trainer_.Train(LineForEver, {.max_steps = step}); }
  void End(int64_t step, std::optional<int64_t> max_steps, double wall_time = 1) {
    ASSERT_EQ(WriteTrainingEnd(
                  PosixFileSystem(), model_.path(),
                  {.global_step = step, .max_steps = max_steps, .why = "a hook stopped it", .wall_time = wall_time}),
              absl::OkStatus());
  }
  // Runs until the evaluator ends, at the latest after an hour.
  TrainAndEvaluateResults Run(EvaluatorOptions options) {
    options.clock = &clock_;
    options.wait = [this](absl::Duration time) {
      clock_.Advance(time);
      for (auto next = events_.begin(); next != events_.end() && next->first <= Second(); next = events_.begin()) {
        const auto action = std::move(next->second);
        events_.erase(next);
        action();
      }
      return Second() < 3600;
    };
    if (!options.go_on) {
      options.go_on = [this](const EvalResults& results) {
        evaluated_.emplace_back(Second(), static_cast<int64_t>(results.at("global_step")));
        return true;
      };
    }
    return EvaluateContinuously(evaluator_, spec_, options);
  }
  int Second() const { return static_cast<int>(absl::ToInt64Seconds(clock_.Now() - start_)); }

  const ModelDirectory model_;
  SimulatedClock clock_;
  const absl::Time start_ = clock_.Now();
  std::multimap<int, std::function<void()>> events_;
  Estimator trainer_{LineModel, model_.Config()};
  Estimator evaluator_{LineModel, model_.Config()};
  const std::shared_ptr<FinalOnes> final_ones_ = std::make_shared<FinalOnes>();
  EvalSpec spec_{.input_fn = LineOnce, .exporters = {final_ones_}};
  std::vector<std::pair<int, int64_t>> evaluated_;  // {second, global step}
};

TEST_F(EvaluatorTest, TheNewestOnceThrottledUntilMaxSteps) {
  TrainTo(3);
  At(4, [&] { TrainTo(5); });
  At(6, [&] { TrainTo(6); });
  At(30, [&] { TrainTo(7); });
  At(32, [&] { TrainTo(8); });
  const auto results = Run({.throttle = absl::Seconds(10), .max_steps = 8});
  EXPECT_THAT(evaluated_, ElementsAre(Pair(0, 3), Pair(10, 6), Pair(30, 7), Pair(32, 8)))
      << "the last one needn't wait";
  EXPECT_EQ(Second(), 32);
  EXPECT_EQ(results.eval.at("global_step"), 8);
  EXPECT_THAT(results.exports, ElementsAre(model_.path() + "/export/final_ones"));
  EXPECT_THAT(final_ones_->steps, ElementsAre(8));
}

TEST_F(EvaluatorTest, BeginsAfterItsDelayUnlessItsWorkIsDoneBefore) {
  TrainTo(3);
  At(40, [&] { TrainTo(4); });
  Run({.start_delay = absl::Seconds(20), .throttle = absl::Hours(9), .max_steps = 4});
  EXPECT_THAT(evaluated_, ElementsAre(Pair(20, 3), Pair(40, 4)));
  evaluated_.clear();
  const int again = Second();
  Run({.start_delay = absl::Hours(9), .max_steps = 4});
  EXPECT_THAT(evaluated_, ElementsAre(Pair(again, 4)));
}

TEST_F(EvaluatorTest, SaysLessAndLessOftenThatThereIsNoCheckpointAndGivesUp) {
  const auto lines = Logged([&] {
    try {
      Run({.patience = absl::Seconds(120)});
      ADD_FAILURE() << "there is nothing to evaluate";
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), ExitCode::kRetry);
      EXPECT_THAT(error.what(), HasSubstr("no checkpoint in " + model_.path() + " for 2m"));
    }
  });
  EXPECT_EQ(Second(), 120);
  EXPECT_THAT(lines, ElementsAre(HasSubstr("Evaluates the checkpoints of " + model_.path() + " as they come."),
                                 AllOf(HasSubstr("not trained yet: no checkpoint"), HasSubstr(" for 10s")),
                                 HasSubstr(" for 20s"), HasSubstr(" for 40s"), HasSubstr(" for 1m20s")));
}

TEST_F(EvaluatorTest, GivesUpWhenNothingNewComes) {
  At(100, [&] { TrainTo(3); });
  try {
    Run({.patience = absl::Seconds(1000)});
    ADD_FAILURE() << "nobody trains";
  } catch (const Error& error) {
    EXPECT_TRUE(absl::IsDeadlineExceeded(error.status()));
    EXPECT_THAT(error.what(), HasSubstr("No new checkpoint in " + model_.path() + " since "));
  }
  EXPECT_EQ(Second(), 1100);
}

TEST_F(EvaluatorTest, ATrainingThatEndsEarlyEndsIt) {
  TrainTo(3);
  At(10, [&] { TrainTo(5); });
  At(12, [&] { End(5, 100); });
  const auto lines = Logged([&] { Run({.throttle = absl::Seconds(60), .max_steps = 100}); });
  EXPECT_THAT(evaluated_, ElementsAre(Pair(0, 3), Pair(12, 5)));
  EXPECT_THAT(final_ones_->steps, ElementsAre(5));
  EXPECT_THAT(lines,
              Contains(HasSubstr("Exiting evaluation: training has ended at global_step=5 (a hook stopped it).")));
}

TEST_F(EvaluatorTest, WhatWasEvaluatedBeforeTheEndIsTheLastAllTheSame) {
  TrainTo(3);
  At(10, [&] { End(3, std::nullopt); });
  Run({.throttle = absl::Seconds(60)});
  EXPECT_THAT(evaluated_, ElementsAre(Pair(0, 3)));
  EXPECT_THAT(final_ones_->steps, ElementsAre(3));
  EXPECT_EQ(Second(), 10);
}

TEST_F(EvaluatorTest, WaitsForTheCheckpointThatTheEndNames) {
  TrainTo(3);
  At(10, [&] { End(5, 100); });
  At(20, [&] { TrainTo(5); });
  Run({.max_steps = 100});
  EXPECT_THAT(evaluated_, ElementsAre(Pair(0, 3), Pair(20, 5)));
}

TEST_F(EvaluatorTest, LongAfterTheEndItEndsWhenNobodyGoesOn) {
  TrainTo(3);
  End(3, 100);
  Run({.max_steps = 100, .resume_grace = absl::Seconds(25)});
  EXPECT_THAT(evaluated_, ElementsAre(Pair(0, 3)));
  EXPECT_THAT(final_ones_->steps, ElementsAre(3));
  EXPECT_EQ(Second(), 25);
}

TEST_F(EvaluatorTest, AnEarlierEndIsNotTheEndOfATrainingThatGoesOn) {
  TrainTo(3);
  End(3, 100, /*wall_time=*/1);
  At(10, [&] { ASSERT_EQ(RemoveTrainingEnd(PosixFileSystem(), model_.path()), absl::OkStatus()); });
  At(50, [&] { TrainTo(6); });
  At(60, [&] { End(6, 100, /*wall_time=*/2); });
  Run({.max_steps = 100, .resume_grace = absl::Seconds(25)});
  EXPECT_THAT(evaluated_, ElementsAre(Pair(0, 3), Pair(50, 6)));
  EXPECT_EQ(Second(), 60);
}

TEST_F(EvaluatorTest, TheEndOfATrainingToOtherStepsIsNone) {
  TrainTo(3);
  End(3, 3);
  At(100, [&] { TrainTo(6); });
  Run({.max_steps = 6});
  EXPECT_THAT(evaluated_, ElementsAre(Pair(0, 3), Pair(100, 6)));
  EXPECT_THAT(final_ones_->steps, ElementsAre(6));
}

TEST_F(EvaluatorTest, ATrainingThatLeftNoCheckpointIsAnError) {
  At(5, [&] {
    ASSERT_EQ(WriteTrainingEnd(PosixFileSystem(), model_.path(), {.why = "its input ended"}), absl::OkStatus());
  });
  try {
    Run({});
    ADD_FAILURE() << "there is nothing to evaluate";
  } catch (const Error& error) {
    EXPECT_TRUE(absl::IsFailedPrecondition(error.status()));
    EXPECT_THAT(error.what(), AllOf(HasSubstr(model_.path()), HasSubstr("left no checkpoint")));
  }
}

TEST_F(EvaluatorTest, EndsWhenItIsStopped) {
  TrainTo(3);
  EXPECT_EQ(Run({.patience = absl::Hours(2)}).eval.at("global_step"), 3) << "after an hour";
  EXPECT_THAT(final_ones_->steps, IsEmpty());
}

TEST_F(EvaluatorTest, TheProgramEndsIt) {
  TrainTo(3);
  Run({.go_on = [](const EvalResults& results) { return results.at("global_step") != 3; }});
  EXPECT_EQ(Second(), 0);
}

TEST_F(EvaluatorTest, TheSameAgainWhereThatIsWanted) {
  TrainTo(3);
  At(25, [&] { TrainTo(4); });
  Run({.throttle = absl::Seconds(10), .max_steps = 4, .same_again = true});
  EXPECT_THAT(evaluated_, ElementsAre(Pair(0, 3), Pair(10, 3), Pair(20, 3), Pair(25, 4)));
}

// Newer checkpoints were saved while it was being read.
TEST_F(EvaluatorTest, ADeletedCheckpointIsPassedOverIfThereIsANewerOne) {
  TrainTo(3);
  int calls = 0;
  spec_.input_fn = [&](const InputContext& context) {
    if (++calls == 1) {
      TrainTo(5);
      throw Error(absl::NotFoundError("it is gone"));
    }
    return LineOnce(context);
  };
  const auto lines = Logged([&] { Run({.max_steps = 5}); });
  EXPECT_THAT(evaluated_, ElementsAre(Pair(1, 5)));
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("model.ckpt-3 was deleted"), HasSubstr("it is gone"))));
}

TEST_F(EvaluatorTest, WhatCantBeReadOtherwiseIsAnError) {
  TrainTo(3);
  spec_.input_fn = [](const InputContext&) -> Dataset { throw Error(absl::NotFoundError("no such file")); };
  EXPECT_THROW(Run({}), Error);
}

}  // namespace
}  // namespace muster::evaluator_test
