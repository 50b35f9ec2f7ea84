#include "muster/estimator/distributed/train_and_evaluate.h"

#include <gmock/gmock.h>

#include <limits>
#include <utility>
#include <vector>

#include "muster/estimator/distributed/early_stopping_by_evaluation.h"
#include "muster/estimator/testing/straight_line.h"
#include "muster/estimator/testing/what_keeps_it.h"
#include "muster/estimator/training_end.h"
#include "muster/train/hooks/hooks.h"
#include "muster/train/testing/hook_driver.h"
#include "muster/train/threads/error.h"

namespace muster::train_and_evaluate_test {
namespace {

using ::testing::Contains, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Pair;

// Records its calls: {global step, whether it is the last}.
class Recorder final : public Exporter {
 public:
  explicit Recorder(std::string name = "recorder") : name_(std::move(name)) {}
  const std::string& name() const override { return name_; }
  std::string Export(Estimator&, const std::string& export_path, const std::string& checkpoint_path,
                     const EvalResults& results, bool is_final) override {
    EXPECT_EQ(StepOfCheckpointPath(checkpoint_path), results.at("global_step"));
    seen.emplace_back(StepOfCheckpointPath(checkpoint_path), is_final);
    return is_final ? export_path : "";
  }
  std::vector<std::pair<int64_t, bool>> seen;

 private:
  const std::string name_;
};

class TrainAndEvaluateTest : public ::testing::Test {
 protected:
  // With a checkpoint every 5 steps.
  TrainAndEvaluateResults Run(const TrainSpec& train_spec, std::optional<TaskConfig> task = TaskConfig()) {
    RunConfig config = model_.Config(/*save_steps=*/5);
    config.task = std::move(task);
    Estimator estimator(LineModel, config);
    return TrainAndEvaluate(estimator, train_spec, eval_spec_);
  }
  std::vector<int64_t> Evaluated() const {
    std::vector<int64_t> steps;
    const auto metrics = ReadEvalMetrics(PosixFileSystem(), model_.path() + "/eval").value();
    for (const auto& [step, results] : metrics) steps.push_back(step);
    return steps;
  }

  const ModelDirectory model_;
  const std::shared_ptr<Recorder> recorder_ = std::make_shared<Recorder>();
  EvalSpec eval_spec_{.input_fn = LineOnce, .exporters = {recorder_}, .throttle_secs = 0};
};

TEST_F(TrainAndEvaluateTest, AloneItEvaluatesEachCheckpointButTheFirst) {
  TrainAndEvaluateResults results;
  const auto lines = Logged([&] { results = Run({.input_fn = LineForEver, .max_steps = 17}); });
  EXPECT_THAT(Evaluated(), ElementsAre(5, 10, 15, 17));
  EXPECT_THAT(recorder_->seen, ElementsAre(Pair(5, false), Pair(10, false), Pair(15, false), Pair(17, true)));
  EXPECT_EQ(results.eval.at("global_step"), 17);
  EXPECT_LT(results.eval.at("loss"), 1);
  EXPECT_THAT(results.exports, ElementsAre(model_.path() + "/export/recorder"));
  EXPECT_THAT(lines, Contains(HasSubstr("Running training and evaluation locally (non-distributed).")));
  EXPECT_THAT(lines, Contains(HasSubstr("RunConfig arguments: save_checkpoints_steps = 5.")));
}

TEST_F(TrainAndEvaluateTest, TheLastStepIsEvaluatedOnce) {
  Run({.input_fn = LineForEver, .max_steps = 10});
  EXPECT_THAT(recorder_->seen, ElementsAre(Pair(5, false), Pair(10, true)));
}

// Else the ps would take a worker that evaluates for one that hangs.
TEST_F(TrainAndEvaluateTest, ThePsIsToldThatItEvaluates) {
  const auto keeps = std::make_shared<WhatKeepsIt>();
  eval_spec_.input_fn = keeps->Watch(LineOnce);
  Run({.input_fn = LineForEver, .max_steps = 7, .hooks = {keeps}});
  EXPECT_THAT(Evaluated(), ElementsAre(5, 7)) << "after a checkpoint, and at the end";
  EXPECT_THAT(keeps->seen, ElementsAre("evaluating", "evaluating"));
}

TEST_F(TrainAndEvaluateTest, ThrottledItEvaluatesTheFirstAndTheLast) {
  eval_spec_.throttle_secs = 36000;
  const auto lines = Logged([&] { Run({.input_fn = LineForEver, .max_steps = 20}); });
  EXPECT_THAT(Evaluated(), ElementsAre(5, 20));
  EXPECT_THAT(lines, Contains(HasSubstr("Skip the current checkpoint eval due to throttle secs (36000 secs).")));
}

TEST_F(TrainAndEvaluateTest, TheEndOfTheInputIsTheEndOfTraining) {
  const TrainSpec spec{.input_fn = [](const InputContext&) { return LinePoints().Repeat(10); }};
  EXPECT_EQ(Run(spec).eval.at("global_step"), 10);
  EXPECT_THAT(recorder_->seen, ElementsAre(Pair(5, false), Pair(10, false), Pair(10, true)))
      << "only the end of the input shows that it was the last";
}

TEST_F(TrainAndEvaluateTest, EarlyStoppingByTheEvaluations) {
  RunConfig config = model_.Config(/*save_steps=*/5);
  Estimator estimator(LineModel, config);
  const auto stop = StopIfEvalIsLower(estimator, 1e9, {.min_steps = 10, .check = {.run_every_steps = 1}});
  const auto results =
      TrainAndEvaluate(estimator, {.input_fn = LineForEver, .max_steps = 1000, .hooks = {stop}}, eval_spec_);
  const auto step = static_cast<int64_t>(results.eval.at("global_step"));
  EXPECT_GE(step, 10);
  EXPECT_LE(step, 12);
  EXPECT_EQ(recorder_->seen.back(), (std::pair<int64_t, bool>(step, true)));
  const auto end = ReadTrainingEnd(PosixFileSystem(), model_.path());
  ASSERT_TRUE(end.ok() && end->has_value()) << end.status();
  EXPECT_EQ((*end)->global_step, step);
  EXPECT_EQ((*end)->max_steps, 1000);
}

TEST_F(TrainAndEvaluateTest, WhatHasReachedItsEndBeforeIsKnown) {
  const auto first = Run({.input_fn = LineForEver, .max_steps = 10});
  recorder_->seen.clear();
  eval_spec_.input_fn = [](const InputContext&) -> Dataset { throw Error(absl::InternalError("not again")); };
  const auto again = Run({.input_fn = LineForEver, .max_steps = 10});
  EXPECT_EQ(again.eval.at("global_step"), 10);
  EXPECT_EQ(again.eval.at("loss"), first.eval.at("loss"));
  EXPECT_THAT(recorder_->seen, IsEmpty());
}

// It was killed between its last checkpoint and its last evaluation.
TEST_F(TrainAndEvaluateTest, WhatHasReachedItsEndUnevaluatedIsEvaluated) {
  Estimator(LineModel, model_.Config()).Train(LineForEver, {.max_steps = 10});
  EXPECT_EQ(Run({.input_fn = LineForEver, .max_steps = 10}).eval.at("global_step"), 10);
  EXPECT_THAT(recorder_->seen, ElementsAre(Pair(10, true)));
}

TEST_F(TrainAndEvaluateTest, AnEvaluationThatFailsEndsTheTraining) {
  eval_spec_.input_fn = [](const InputContext&) -> Dataset { throw Error(absl::InternalError("no data")); };
  try {
    Run({.input_fn = LineForEver, .max_steps = 10});
    ADD_FAILURE() << "nobody would see it";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no data"));
  }
}

TaskConfig TaskOf(const std::string& tf_config) {
  return ResolveTaskConfig({.tf_config = tf_config, .flags = {}}).value();
}

TEST_F(TrainAndEvaluateTest, AMasterTrainsAndEvaluates) {
  const auto results =
      Run({.input_fn = LineForEver, .max_steps = 10},
          TaskOf(R"({"cluster": {"master": ["127.0.0.1:1"]}, "task": {"type": "master", "index": 0}})"));
  EXPECT_EQ(results.eval.at("global_step"), 10);
  EXPECT_THAT(Evaluated(), ElementsAre(5, 10));
}

TEST_F(TrainAndEvaluateTest, AChiefTrainsAndTheEvaluatorEvaluates) {
  const std::string cluster = R"({"cluster": {"chief": ["127.0.0.1:1"]}, "task": {"type": ")";
  const TrainSpec spec{.input_fn = LineForEver, .max_steps = 10};
  EXPECT_THAT(Run(spec, TaskOf(cluster + R"(chief", "index": 0}})")).eval, IsEmpty());
  EXPECT_THAT(Evaluated(), IsEmpty());
  const auto results = Run(spec, TaskOf(cluster + R"(evaluator", "index": 0}})"));
  EXPECT_EQ(results.eval.at("global_step"), 10);
  EXPECT_THAT(recorder_->seen, ElementsAre(Pair(10, true)));
}

TEST_F(TrainAndEvaluateTest, WrongSpecsAreNamedAndNothingIsTrained) {
  const TrainSpec good_train{.input_fn = LineForEver, .max_steps = 10};
  const EvalSpec good_eval = eval_spec_;
  const auto expect_refused = [&](const TrainSpec& train_spec, const EvalSpec& eval_spec, const std::string& text) {
    eval_spec_ = eval_spec;
    try {
      Run(train_spec);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), ExitCode::kUsage) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(text));
    }
  };
  const auto with_eval = [&](const auto& change) {
    EvalSpec spec = good_eval;
    change(spec);
    return spec;
  };
  expect_refused({}, good_eval, "TrainSpec.input_fn");
  expect_refused({.input_fn = LineForEver, .max_steps = 0}, good_eval, "TrainSpec.max_steps: 0");
  expect_refused({.input_fn = LineForEver, .hooks = {nullptr}}, good_eval, "TrainSpec.hooks[0]");
  expect_refused({.input_fn = LineForEver, .saving_listeners = {nullptr}}, good_eval, "TrainSpec.saving_listeners[0]");
  expect_refused(good_train, {}, "EvalSpec.input_fn");
  expect_refused(good_train, with_eval([](EvalSpec& spec) { spec.steps = -1; }), "EvalSpec.steps: -1");
  expect_refused(good_train, with_eval([](EvalSpec& spec) { spec.start_delay_secs = -2; }),
                 "EvalSpec.start_delay_secs: -2");
  expect_refused(good_train,
                 with_eval([](EvalSpec& spec) { spec.throttle_secs = std::numeric_limits<double>::infinity(); }),
                 "EvalSpec.throttle_secs: inf");
  expect_refused(good_train, with_eval([](EvalSpec& spec) { spec.patience_secs = -1; }), "EvalSpec.patience_secs: -1");
  expect_refused(good_train, with_eval([](EvalSpec& spec) { spec.hooks = {nullptr}; }), "EvalSpec.hooks[0]");
  expect_refused(good_train, with_eval([](EvalSpec& spec) { spec.exporters = {nullptr}; }), "EvalSpec.exporters[0]");
  expect_refused(good_train, with_eval([](EvalSpec& spec) {
                   spec.exporters = {std::make_shared<Recorder>("twin"), std::make_shared<Recorder>("twin")};
                 }),
                 "two are called \"twin\"");
  EXPECT_FALSE(PosixFileSystem().Exists(model_.path() + "/checkpoint"));
}

}  // namespace
}  // namespace muster::train_and_evaluate_test
