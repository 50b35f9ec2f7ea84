#include "muster/estimator/tensorflow/experiment.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/estimator/distributed/early_stopping_by_evaluation.h"
#include "muster/estimator/model/metrics.h"
#include "muster/estimator/testing/what_keeps_it.h"
#include "muster/optim/rule_options.h"
#include "muster/train/threads/error.h"

namespace muster::experiment_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

TaskConfig TaskOf(const std::string& type, int index) {
  return *ResolveTaskConfig(
      {.tf_config = absl::StrCat(R"({"cluster": {"chief": ["h:1"], "ps": ["h:2"], "worker": ["h:3", "h:4", "h:5"]},)",
                                 R"( "task": {"type": ")", type, R"(", "index": )", index, "}}"),
       .flags = {}});
}

// y = 2x, learned by one weight.
EstimatorSpec LineModel(const ModelContext&) {
  torch::nn::Linear layer(torch::nn::LinearOptions(1, 1).bias(false));
  return {.module = layer.ptr(),
          .forward =
              [layer](const Minibatch& batch) mutable {
                const torch::Tensor y = layer(FeatureOf(batch, "x"));
                ModelOutputs outputs{.predictions = {{"predictions", y}}, .loss = {}};
                if (batch.labels.defined()) outputs.loss = torch::mse_loss(y, batch.labels);
                return outputs;
              },
          .optimizer = Sgd({.learning_rate = 0.1}),
          .training_hooks = {},
          .training_chief_hooks = {},
          .scaffold = nullptr,
          .eval_metrics = {{"of_the_model", MeanSquaredErrorMetric()}},
          .export_outputs = {},
          .export_program = {}};
}

Dataset Line() {
  Example rows{.features = {}, .labels = Array::Of<float>({4, 1}, std::vector<float>{0, 2, 4, 6}), .has_labels = true};
  rows.features.push_back({"x", Array::Of<float>({4, 1}, std::vector<float>{0, 1, 2, 3})});
  return Dataset::FromMemory(std::move(rows)).Batch(4);
}
Dataset Endless(const InputContext&) { return Line().Repeat(); }

// Notes what it is called with.
class RecordingExporter final : public Exporter {
 public:
  const std::string& name() const override { return name_; }
  std::string Export(Estimator&, const std::string& export_path, const std::string& checkpoint_path, const EvalResults&,
                     bool is_final) override {
    calls.push_back(absl::StrCat(checkpoint_path.substr(checkpoint_path.rfind('-') + 1), is_final ? " final" : ""));
    path = export_path;
    return export_path;
  }
  std::vector<std::string> calls;
  std::string path;

 private:
  const std::string name_ = "recording";
};

class ExperimentTest : public testing::Test {
 protected:
  // A checkpoint every 10 steps. Waiting takes no time, and is noted.
  ExperimentOptions Options(TaskConfig task = {}) {
    const RunConfig config{.model_dir = model_dir_, .seed = 1, .save_checkpoints_steps = 10, .task = std::move(task)};
    return {.estimator = std::make_shared<Estimator>(LineModel, config),
            .train_input_fn = Endless,
            .eval_input_fn = Endless,
            .eval_metrics = {},
            .train_steps = 40,
            .eval_steps = 1,
            .wait =
                [this](absl::Duration time) {
                  waited_.push_back(time);
                  clock_.Advance(time);
                  return go_on_;
                },
            .clock = &clock_};
  }
  // The global steps that there are results of.
  std::vector<int64_t> Evaluated(const std::string& name = "") const {
    const std::string folder = JoinPath(model_dir_, name.empty() ? "eval" : "eval_" + name);
    const auto results = ReadEvalMetrics(PosixFileSystem(), folder);
    EXPECT_TRUE(results.ok()) << results.status();
    std::vector<int64_t> steps;
    if (results.ok()) {
      for (const auto& [step, values] : *results) steps.push_back(step);
    }
    return steps;
  }
  void TrainAlone(int64_t steps) { Options().estimator->Train(Endless, {.max_steps = steps}); }

  const ScratchFolder scratch_;
  const std::string model_dir_ = scratch_.path();
  SimulatedClock clock_;
  std::vector<absl::Duration> waited_;
  bool go_on_ = true;
};

// `run` throws an error of exit code 2 that has the texts.
template <typename Run>
void ExpectRefused(Run run, const std::vector<std::string>& texts) {
  try {
    run();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::kUsage) << error.what();
    for (const std::string& text : texts) EXPECT_THAT(error.what(), HasSubstr(text));
  }
}

TEST_F(ExperimentTest, RefusesOptionsThatMakeNoSense) {
  using Change = void (*)(ExperimentOptions&);
  const std::vector<std::pair<Change, std::vector<std::string>>> cases = {
      {[](ExperimentOptions& o) { o.estimator = nullptr; }, {"no estimator"}},
      {[](ExperimentOptions& o) { o.train_input_fn = nullptr; }, {"no train_input_fn"}},
      {[](ExperimentOptions& o) { o.eval_input_fn = nullptr; }, {"no eval_input_fn"}},
      {[](ExperimentOptions& o) { o.eval_metrics["mine"] = nullptr; }, {"eval_metrics \"mine\" is null"}},
      {[](ExperimentOptions& o) { o.train_monitors.push_back(nullptr); }, {"train_monitors[0] is null"}},
      {[](ExperimentOptions& o) { o.eval_hooks.push_back(nullptr); }, {"eval_hooks[0] is null"}},
      {[](ExperimentOptions& o) { o.export_strategies.push_back(nullptr); }, {"export_strategies[0] is null"}},
      {[](ExperimentOptions& o) { o.saving_listeners.push_back(nullptr); }, {"saving_listeners[0] is null"}},
      {[](ExperimentOptions& o) { o.train_steps = 0; }, {"train_steps is 0; accepted: a whole number from 1"}},
      {[](ExperimentOptions& o) { o.eval_steps = -1; }, {"eval_steps is -1; accepted: a whole number from 1"}},
      {[](ExperimentOptions& o) { o.min_eval_frequency = -1; }, {"min_eval_frequency is -1", "from 0"}},
      {[](ExperimentOptions& o) { o.train_steps_per_iteration = 0; }, {"train_steps_per_iteration is 0", "from 1"}},
      {[](ExperimentOptions& o) { o.eval_delay_secs = -1; }, {"eval_delay_secs is -1"}},
      {[](ExperimentOptions& o) { o.continuous_eval_throttle_secs = std::nan(""); }, {"throttle_secs is nan"}},
      {[](ExperimentOptions& o) { o.continuous_eval_patience_secs = -1; }, {"patience_secs is -1"}},
      {[](ExperimentOptions& o) { o.worker_delay_secs = std::numeric_limits<double>::infinity(); },
       {"worker_delay_secs is inf"}},
  };
  for (const auto& [change, texts] : cases) {
    SCOPED_TRACE(texts[0]);
    ExperimentOptions options = Options();
    change(options);
    ExpectRefused([&] { const Experiment experiment(options); }, texts);
  }
}

TEST(ExperimentDefaultsTest, AreContribLearns) {
  const ExperimentOptions options;
  EXPECT_EQ(options.train_steps, std::nullopt);
  EXPECT_EQ(options.eval_steps, 100);
  EXPECT_EQ(options.eval_delay_secs, 120);
  EXPECT_EQ(options.continuous_eval_throttle_secs, 60);
  EXPECT_FALSE(options.delay_workers_by_global_step);
  EXPECT_EQ(options.worker_delay_secs, 0) << "differs from contrib.learn's on purpose";
}

TEST(StartStepOfWorkerTest, GrowsWithTheLogarithm) {
  EXPECT_EQ(StartStepOfWorker(0), 0);
  EXPECT_EQ(StartStepOfWorker(1), 5545);
  EXPECT_EQ(StartStepOfWorker(2), 8788);
  EXPECT_EQ(StartStepOfWorker(9), 18420);
}

TEST_F(ExperimentTest, TrainAndEvaluateEvaluatesEveryCheckpoint) {
  Experiment experiment(Options());
  const TrainAndEvaluateResults results = experiment.TrainAndEvaluate();
  EXPECT_EQ(results.eval.at("global_step"), 40);
  EXPECT_LT(results.eval.at("loss"), 1e-3) << "it has learned";
  EXPECT_TRUE(results.eval.contains("of_the_model"));
  EXPECT_THAT(Evaluated(), ElementsAre(10, 20, 30, 40)) << "not the checkpoint that a session saves before it trains";
  EXPECT_THAT(waited_, IsEmpty());
}

// Else the ps would take a worker that evaluates for one that hangs.
TEST_F(ExperimentTest, ThePsIsToldThatItEvaluates) {
  const auto keeps = std::make_shared<WhatKeepsIt>();
  ExperimentOptions options = Options();
  options.train_monitors = {keeps};
  options.eval_input_fn = keeps->Watch(Endless);
  Experiment(std::move(options)).TrainAndEvaluate();
  EXPECT_THAT(keeps->seen, ElementsAre("evaluating", "evaluating", "evaluating", "evaluating"));
}

TEST_F(ExperimentTest, MinEvalFrequencyIsInSteps) {
  ExperimentOptions options = Options();
  options.min_eval_frequency = 20;
  Experiment(options).TrainAndEvaluate();
  EXPECT_THAT(Evaluated(), ElementsAre(20, 40));
}

TEST_F(ExperimentTest, TheLastCheckpointIsEvaluatedWhateverTheFrequency) {
  ExperimentOptions options = Options();
  options.min_eval_frequency = 30;
  Experiment(options).TrainAndEvaluate();
  EXPECT_THAT(Evaluated(), ElementsAre(30, 40));
}

TEST_F(ExperimentTest, WithoutAFrequencyTheLastCheckpointOnly) {
  ExperimentOptions options = Options();
  options.min_eval_frequency = 0;
  Experiment(options).TrainAndEvaluate();
  EXPECT_THAT(Evaluated(), ElementsAre(40));
}

TEST_F(ExperimentTest, LocalRunEvaluatesAtTheEnd) {
  EXPECT_EQ(Experiment(Options()).LocalRun().eval.at("global_step"), 40);
  EXPECT_THAT(Evaluated(), ElementsAre(40));
}

TEST_F(ExperimentTest, AgainItGoesOnWhereItWas) {
  ExperimentOptions options = Options();
  options.train_steps = 20;
  Experiment(options).TrainAndEvaluate();
  EXPECT_EQ(Experiment(options).TrainAndEvaluate().eval.at("global_step"), 20) << "nothing is left to train";
  options.train_steps = 30;
  EXPECT_EQ(Experiment(options).TrainAndEvaluate().eval.at("global_step"), 30);
}

TEST_F(ExperimentTest, EvalMetricsAreInsteadOfTheModels) {
  ExperimentOptions options = Options();
  options.eval_metrics = {{"mine", MeanAbsoluteErrorMetric()}};
  const EvalResults eval = Experiment(options).TrainAndEvaluate().eval;
  EXPECT_TRUE(eval.contains("mine"));
  EXPECT_TRUE(eval.contains("loss"));
  EXPECT_FALSE(eval.contains("of_the_model"));
}

TEST_F(ExperimentTest, ExportsAtTheEnd) {
  const auto exporter = std::make_shared<RecordingExporter>();
  ExperimentOptions options = Options();
  options.export_strategies = {exporter};
  const TrainAndEvaluateResults results = Experiment(options).TrainAndEvaluate();
  EXPECT_THAT(exporter->calls, ElementsAre("40 final"));
  EXPECT_EQ(exporter->path, JoinPath(model_dir_, "export/recording"));
  EXPECT_THAT(results.exports, ElementsAre(exporter->path));
}

TEST_F(ExperimentTest, ExportsAfterEachEvaluationWhenAsked) {
  const auto exporter = std::make_shared<RecordingExporter>();
  ExperimentOptions options = Options();
  options.export_strategies = {exporter};
  options.checkpoint_and_export = true;
  Experiment(options).TrainAndEvaluate();
  EXPECT_THAT(exporter->calls, ElementsAre("10", "20", "30", "40 final"));
}

TEST_F(ExperimentTest, TheChiefDoesNotWait) {
  ExperimentOptions options = Options();
  options.worker_delay_secs = 5;
  Experiment(options).Train();
  EXPECT_THAT(waited_, IsEmpty());
  EXPECT_NEAR(Options().estimator->VariableValue("weight").item<float>(), 2, 1e-3);
  EXPECT_FALSE(PosixFileSystem().Exists(JoinPath(model_dir_, "eval"))) << "train only trains";
}

TEST_F(ExperimentTest, AWorkerWaitsByItsNumberAndAtMostAMinute) {
  go_on_ = false;  // a stop comes while it waits
  ExperimentOptions options = Options(TaskOf("worker", 2));
  options.worker_delay_secs = 5;
  Experiment(options).Train();
  Experiment(options).Train(3);
  options.worker_delay_secs = 40;
  Experiment(options).Train();
  EXPECT_THAT(waited_, ElementsAre(absl::Seconds(10), absl::Seconds(3), absl::Seconds(60)));
  EXPECT_EQ(Options().estimator->LatestCheckpoint(), "");
}

TEST_F(ExperimentTest, EvaluateWaitsAndEvaluatesOnce) {
  TrainAlone(20);
  Experiment experiment(Options());
  EXPECT_EQ(experiment.Evaluate().eval.at("global_step"), 20);
  EXPECT_THAT(waited_, ElementsAre(absl::Seconds(120)));
  EXPECT_THAT(Evaluated("one_pass"), ElementsAre(20));
  EXPECT_EQ(experiment.Evaluate(0, "other").eval.at("global_step"), 20);
  EXPECT_THAT(Evaluated("other"), ElementsAre(20));
  EXPECT_EQ(waited_.size(), 1);
  go_on_ = false;
  EXPECT_THAT(experiment.Evaluate().eval, IsEmpty()) << "a stop came while it waited";
}

TEST_F(ExperimentTest, ContinuousEvalEndsAtTrainSteps) {
  TrainAlone(40);
  const absl::Time begin = clock_.Now();
  EXPECT_EQ(Experiment(Options()).ContinuousEval().eval.at("global_step"), 40);
  EXPECT_THAT(Evaluated("continuous"), ElementsAre(40));
  EXPECT_LE(clock_.Now() - begin, absl::Seconds(121));
}

TEST_F(ExperimentTest, ContinuousEvalGivesUpWhereNobodyTrains) {
  const absl::Time begin = clock_.Now();
  ExperimentOptions options = Options();
  options.continuous_eval_patience_secs = 900;
  try {
    Experiment(options).ContinuousEval();
    ADD_FAILURE() << "there is nothing to evaluate";
  } catch (const Error& error) {
    EXPECT_TRUE(absl::IsDeadlineExceeded(error.status())) << error.what();
  }
  EXPECT_EQ(clock_.Now() - begin, absl::Seconds(900));
}

TEST_F(ExperimentTest, ContinuousEvalEndsWhenThePredicateSaysSo) {
  TrainAlone(20);
  ExperimentOptions options = Options();
  int asked = 0;
  options.continuous_eval_predicate_fn = [&](const EvalResults& results) {
    EXPECT_EQ(results.at("global_step"), 20);
    return ++asked < 3;
  };
  Experiment(options).ContinuousEval(/*delay_secs=*/0, /*throttle_delay_secs=*/7,
                                     /*evaluate_checkpoint_only_once=*/false);
  EXPECT_EQ(asked, 3) << "the same checkpoint again and again";
}

TEST_F(ExperimentTest, ContinuousEvalOnTrainDataDrawsFromTheTrainingInputAndExportsNothing) {
  TrainAlone(40);
  const auto exporter = std::make_shared<RecordingExporter>();
  ExperimentOptions options = Options();
  options.export_strategies = {exporter};
  int drawn = 0;
  options.train_input_fn = [&](const InputContext& context) {
    ++drawn;
    return Endless(context);
  };
  Experiment(options).ContinuousEvalOnTrainData(0, 0);
  EXPECT_EQ(drawn, 1);
  EXPECT_THAT(Evaluated("continuous_on_train_data"), ElementsAre(40));
  EXPECT_THAT(exporter->calls, IsEmpty());
}

TEST_F(ExperimentTest, ContinuousTrainAndEvalTakesTurns) {
  const auto exporter = std::make_shared<RecordingExporter>();
  ExperimentOptions options = Options();
  options.train_steps_per_iteration = 15;
  options.export_strategies = {exporter};
  EXPECT_EQ(Experiment(options).ContinuousTrainAndEval().eval.at("global_step"), 40);
  EXPECT_THAT(Evaluated("one_pass"), ElementsAre(15, 30, 40));
  EXPECT_THAT(exporter->calls, ElementsAre("15", "30", "40 final"));
}

TEST_F(ExperimentTest, AnIterationIsATenthOfTheTraining) {
  ExperimentOptions options = Options();
  options.continuous_eval_predicate_fn = [](const EvalResults&) { return false; };
  EXPECT_EQ(Experiment(options).ContinuousTrainAndEval().eval.at("global_step"), 4);
}

TEST_F(ExperimentTest, ContinuousTrainAndEvalEndsWithTheInput) {
  ExperimentOptions options = Options();
  options.train_input_fn = [](const InputContext&) { return Line().Repeat(25); };
  options.train_steps.reset();
  options.train_steps_per_iteration = 20;
  EXPECT_EQ(Experiment(options).ContinuousTrainAndEval().eval.at("global_step"), 25);
  EXPECT_THAT(Evaluated("one_pass"), ElementsAre(20, 25));
}

TEST_F(ExperimentTest, TestIsOneStep) {
  const auto exporter = std::make_shared<RecordingExporter>();
  ExperimentOptions options = Options();
  options.eval_steps.reset();  // the input has no end: but one batch is evaluated
  options.export_strategies = {exporter};
  EXPECT_EQ(Experiment(options).Test().eval.at("global_step"), 1);
  EXPECT_THAT(exporter->calls, ElementsAre("1 final"));
}

TEST_F(ExperimentTest, RefusesWhatATaskCanNotDo) {
  ExpectRefused([&] { Experiment(Options()).RunStdServer(); }, {"run_std_server", "worker:0 isn't a ps"});
  ExpectRefused([&] { Experiment(Options(TaskOf("ps", 0))).Train(); }, {"ps:0 doesn't train", "run_std_server"});
  ExpectRefused([&] { Experiment(Options(TaskOf("evaluator", 0))).Train(); },
                {"evaluator:0 doesn't train", "continuous_eval"});
  for (const std::string type : {"chief", "evaluator"}) {
    SCOPED_TRACE(type);
    Experiment experiment(Options(TaskOf(type, 0)));
    ExpectRefused([&] { experiment.LocalRun(); }, {"local_run is for a process alone", type, "train_and_evaluate"});
    ExpectRefused([&] { experiment.ContinuousTrainAndEval(); }, {"continuous_train_and_eval is for a process alone"});
    ExpectRefused([&] { experiment.Test(); }, {"schedule test is for a process alone"});
  }
}

}  // namespace
}  // namespace muster::experiment_test
