#include "muster/estimator/estimator.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/estimator/testing/estimator_test_model.h"
#include "muster/torch_bridge/module/random_state.h"

namespace muster::estimator_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::Not, ::testing::UnorderedElementsAre;

torch::Tensor Features() { return TensorOf(LinearRows().features[0].value); }
torch::Tensor Labels() { return TensorOf(LinearRows().labels); }

double Loss(const std::vector<torch::Tensor>& values, int64_t first, int64_t rows) {
  const torch::Tensor predicted = torch::matmul(Features().narrow(0, first, rows), values[0].t()) + values[1];
  return torch::mse_loss(predicted, Labels().narrow(0, first, rows)).item<double>();
}

class EstimatorTest : public LinearEstimatorTest {};

TEST_F(EstimatorTest, TrainsAsTorchsOwnLoop) {
  Estimator estimator = Linear();
  estimator.Train(LinearTrainInput, {.max_steps = 20});
  EXPECT_THAT(estimator.LatestCheckpoint(), HasSubstr("model.ckpt-20"));

  SeedTorch(kLinearSeed);
  torch::nn::Linear twin(2, 1);
  torch::optim::SGD optimizer(twin->parameters(), 0.1);
  for (int step = 0; step < 20; ++step) {
    const bool first = step % 2 == 0;
    const torch::Tensor x = Features().narrow(0, first ? 0 : 4, first ? 4 : 2);
    const torch::Tensor y = Labels().narrow(0, first ? 0 : 4, first ? 4 : 2);
    optimizer.zero_grad();
    torch::mse_loss(twin->forward(x), y).backward();
    optimizer.step();
  }
  EXPECT_TRUE(torch::allclose(estimator.VariableValue("weight"), twin->weight, 1e-5, 1e-6));
  EXPECT_TRUE(torch::allclose(estimator.VariableValue("bias"), twin->bias, 1e-5, 1e-6));
}

// The program of docs/estimator.md.
TEST_F(EstimatorTest, TrainsEvaluatesAndPredictsByAFewCalls) {
  const std::string model_dir = folder_.path();
  std::vector<double> values;
  // [program]
  Estimator estimator(LinearModelFn, {.model_dir = model_dir, .seed = 1}, {{"rate", "0.1"}});
  estimator.Train(LinearTrainInput, {.max_steps = 1000});
  const EvalResults results = estimator.Evaluate(LinearEvalInput);  // loss, global_step
  estimator.Predict(LinearEvalInput, [&](const Tensors& row) { values.push_back(row.at("value").item<double>()); });
  // [/program]
  EXPECT_LT(results.at("loss"), 1e-4);
  ASSERT_EQ(values.size(), static_cast<size_t>(kLinearRows));
  for (int64_t i = 0; i < kLinearRows; ++i) EXPECT_NEAR(values[i], Labels()[i].item<double>(), 0.05);
}

// 7 steps end in the middle of an epoch: the checkpoint keeps the position, too.
TEST_F(EstimatorTest, GoesOnWhereTheCheckpointIs) {
  Linear().Train(LinearTrainInput, {.max_steps = 7});
  Estimator second = Linear();
  second.Train(LinearTrainInput, {.max_steps = 15});
  const ScratchFolder other;
  Estimator whole(LinearModelFn, {.model_dir = other.path(), .seed = kLinearSeed});
  whole.Train(LinearTrainInput, {.max_steps = 15});
  EXPECT_TRUE(Same(ValuesOf(second), ValuesOf(whole)));
}

TEST_F(EstimatorTest, TrainsAsOftenAsOneLikes) {
  Estimator estimator = Linear();
  estimator.Train(LinearTrainInput, {.steps = 3}).Train(LinearTrainInput, {.steps = 4});
  EXPECT_EQ(estimator.VariableValue("global_step").item<int64_t>(), 7);
}

// One epoch per call, as TensorFlow programs call train.
TEST_F(EstimatorTest, AnInputThatHasEndedBeginsAnewWithTheNextCall) {
  Estimator estimator = Linear();
  for (int64_t epoch = 1; epoch <= 3; ++epoch) {
    estimator.Train(LinearEvalInput);
    EXPECT_EQ(estimator.VariableValue("global_step").item<int64_t>(), 2 * epoch);
  }
}

TEST_F(EstimatorTest, StopsWhereMaxStepsWasReachedBefore) {
  Estimator estimator = Linear();
  estimator.Train(LinearTrainInput, {.max_steps = 5});
  const auto before = ValuesOf(estimator);
  testing::internal::CaptureStderr();
  estimator.Train(LinearTrainInput, {.max_steps = 5});
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      AllOf(HasSubstr("Skipping training since max_steps has already saved."), Not(HasSubstr("Calling model_fn."))));
  EXPECT_TRUE(Same(ValuesOf(estimator), before));
}

TEST_F(EstimatorTest, LogsAsTensorFlow) {
  testing::internal::CaptureStderr();
  Estimator estimator(LinearModelFn, {.model_dir = folder_.path(), .seed = kLinearSeed, .log_step_count_steps = 2});
  estimator.Train(LinearTrainInput, {.max_steps = 4});
  const std::string log = testing::internal::GetCapturedStderr();
  size_t at = 0;
  for (const char* line : {"Using config: model_dir = ", "Calling model_fn.", "Done calling model_fn.",
                           "Create CheckpointSaverHook.", "Graph was finalized.", "Running local_init_op.",
                           "Done running local_init_op.", "Saving checkpoints for 0 into ", "loss = ", ", step = 1",
                           "loss = ", ", step = 3", "Saving checkpoints for 4 into ", "Loss for final step: "}) {
    at = log.find(line, at);
    ASSERT_NE(at, std::string::npos) << line << " isn't there, or too early, in\n" << log;
  }
  EXPECT_EQ(log.find("Graph was finalized."), log.rfind("Graph was finalized.")) << "it is logged twice in\n" << log;
  testing::internal::CaptureStderr();
  estimator.Evaluate(LinearEvalInput, {.steps = 2});
  const std::string evaluation = testing::internal::GetCapturedStderr();
  at = 0;
  for (const char* line :
       {"Calling model_fn.", "Starting evaluation at ", "Restoring parameters from ", "Evaluation [1/2]",
        "Evaluation [2/2]", "Finished evaluation at ", "Saving dict for global step 4: global_step = 4, loss = "}) {
    at = evaluation.find(line, at);
    ASSERT_NE(at, std::string::npos) << line << " isn't there, or too early, in\n" << evaluation;
  }
}

// Counts rows and adds up predictions.
class SumMetric final : public Metric {
 public:
  void Reset() override { sum_ = 0; }
  void Update(const Tensors& predictions, const Minibatch& minibatch) override {
    EXPECT_EQ(predictions.at("value").size(0), minibatch.size());
    sum_ += predictions.at("value").sum().item<double>();
  }
  double Result() const override { return sum_; }

 private:
  double sum_ = 0;
};

EstimatorSpec MeasuredModelFn(const ModelContext& context) {
  EstimatorSpec spec = LinearModelFn(context);
  spec.eval_metrics["sum"] = std::make_shared<SumMetric>();
  return spec;
}

TEST_F(EstimatorTest, EvaluatesAsByHand) {
  Estimator estimator(MeasuredModelFn, Config());
  estimator.Train(LinearTrainInput, {.max_steps = 3});
  const EvalResults results = estimator.Evaluate(LinearEvalInput);
  const auto values = ValuesOf(estimator);
  EXPECT_EQ(results.at("global_step"), 3);
  // Each batch counts the same, whatever its rows, as in TensorFlow.
  EXPECT_NEAR(results.at("loss"), (Loss(values, 0, 4) + Loss(values, 4, 2)) / 2, 1e-5);
  const torch::Tensor predicted = torch::matmul(Features(), values[0].t()) + values[1];
  EXPECT_NEAR(results.at("sum"), predicted.sum().item<double>(), 1e-4);
  EXPECT_NEAR(estimator.Evaluate(LinearEvalInput, {.steps = 1}).at("loss"), Loss(values, 0, 4), 1e-5);
}

TEST_F(EstimatorTest, ResultsAreALineAndSummariesOfTheirOwnFolder) {
  Estimator estimator(MeasuredModelFn, Config());
  estimator.Train(LinearTrainInput, {.max_steps = 3});
  estimator.Evaluate(LinearEvalInput);
  const EvalResults results = estimator.Evaluate(LinearEvalInput);
  EXPECT_EQ(estimator.EvalDir(), folder_.path() + "/eval");
  const auto text = PosixFileSystem().ReadFile(estimator.EvalDir() + "/metrics.jsonl").value();
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  ASSERT_EQ(lines.size(), 3u) << text;
  EXPECT_EQ(lines.back(), "");
  const auto line = nlohmann::json::parse(lines[1]);
  EXPECT_EQ(line.at("global_step").get<int64_t>(), 3);
  EXPECT_EQ(line.at("loss").get<double>(), results.at("loss"));
  EXPECT_EQ(line.at("sum").get<double>(), results.at("sum"));
  EXPECT_GT(line.at("wall_time").get<double>(), 1e9);
  estimator.Evaluate(LinearEvalInput, {.name = "test"});
  const auto files = PosixFileSystem().ListDirectory(estimator.EvalDir("test")).value();
  EXPECT_TRUE(std::any_of(files.begin(), files.end(),
                          [](const std::string& name) { return name.find("tfevents") != std::string::npos; }));
  EXPECT_EQ(estimator.EvalDir("test"), folder_.path() + "/eval_test");
}

TEST_F(EstimatorTest, EvaluatesTheCheckpointThatIsNamed) {
  Estimator estimator = Linear();
  estimator.Train(LinearTrainInput, {.max_steps = 2}).Train(LinearTrainInput, {.max_steps = 6});
  EXPECT_EQ(estimator.Evaluate(LinearEvalInput).at("global_step"), 6);
  const std::string first = folder_.path() + "/model.ckpt-2";
  EXPECT_EQ(estimator.Evaluate(LinearEvalInput, {.checkpoint_path = first}).at("global_step"), 2);
}

TEST_F(EstimatorTest, PredictsRowByRow) {
  Estimator estimator = Linear();
  estimator.Train(LinearTrainInput, {.max_steps = 3});
  std::vector<double> predicted;
  estimator.Predict(LinearEvalInput, [&](const Tensors& row) {
    EXPECT_THAT(row.at("value").sizes().vec(), ElementsAre(1));
    predicted.push_back(row.at("value").item<double>());
  });
  const auto values = ValuesOf(estimator);
  const torch::Tensor expected = torch::matmul(Features(), values[0].t()) + values[1];
  ASSERT_EQ(predicted.size(), static_cast<size_t>(kLinearRows));
  for (int64_t i = 0; i < kLinearRows; ++i) EXPECT_NEAR(predicted[i], expected[i].item<double>(), 1e-5);
  EXPECT_THAT(
      MessageOf([&] { estimator.Predict(LinearEvalInput, [](const Tensors&) {}, {.predict_keys = {"class"}}); }),
      AllOf(HasSubstr("'class'"), HasSubstr("value")));
}

TEST_F(EstimatorTest, KnowsTheVariablesByName) {
  Estimator estimator = Linear();
  EXPECT_EQ(estimator.LatestCheckpoint(), "");
  EXPECT_TRUE(absl::IsFailedPrecondition(ThrownBy([&] { estimator.VariableNames(); })));
  estimator.Train(LinearTrainInput, {.max_steps = 3});
  EXPECT_THAT(estimator.VariableNames(), UnorderedElementsAre("global_step", "weight", "bias"));
  EXPECT_THAT(estimator.VariableValue("weight").sizes().vec(), ElementsAre(1, 2));
  const absl::Status missing = ThrownBy([&] { estimator.VariableValue("wieght"); });
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_THAT(std::string(missing.message()), AllOf(HasSubstr("'wieght'"), HasSubstr("weight")));
}

// The model draws random numbers in each forward, in its evaluation, too.
EstimatorSpec DroppingModelFn(const ModelContext& context) {
  EstimatorSpec spec = LinearModelFn(context);
  spec.forward = [linear = spec.forward](const Minibatch& batch) {
    Minibatch noisy = batch;
    noisy.features["x"] = torch::dropout(noisy.features["x"], 0.5, /*train=*/true);
    return linear(noisy);
  };
  return spec;
}

// Evaluates each checkpoint, as train_and_evaluate does in one process.
class EvaluatingListener final : public CheckpointSaverListener {
 public:
  explicit EvaluatingListener(Estimator& estimator) : estimator_(estimator) {}
  absl::StatusOr<AfterSaving> AfterSave(const SessionContext&, int64_t step) override {
    EXPECT_EQ(estimator_.Evaluate(LinearEvalInput).at("global_step"), step);
    steps.push_back(step);
    return AfterSaving::kContinue;
  }
  std::vector<int64_t> steps;

 private:
  Estimator& estimator_;
};

TEST_F(EstimatorTest, AnEvaluationInTheMiddleOfTrainingChangesNothing) {
  for (const std::optional<uint64_t> seed : {std::optional<uint64_t>(kLinearSeed), std::optional<uint64_t>()}) {
    std::vector<std::vector<torch::Tensor>> ends;
    for (const bool evaluates : {false, true}) {
      const ScratchFolder folder;
      SeedTorch(kLinearSeed);
      Estimator estimator(DroppingModelFn, {.model_dir = folder.path(), .seed = seed, .save_checkpoints_steps = 4});
      const auto listener = std::make_shared<EvaluatingListener>(estimator);
      TrainOptions options{.max_steps = 12};
      if (evaluates) options.saving_listeners = {listener};
      estimator.Train(LinearTrainInput, options);
      ends.push_back(ValuesOf(estimator));
      if (evaluates) {
        EXPECT_THAT(listener->steps, ElementsAre(0, 4, 8, 12));
      }
    }
    EXPECT_TRUE(Same(ends[0], ends[1])) << (seed ? "with a seed" : "without");
  }
}

TEST_F(EstimatorTest, TheSeedMakesTheWeights) {
  std::vector<std::vector<torch::Tensor>> ends;
  for (const uint64_t seed : {kLinearSeed, kLinearSeed, kLinearSeed + 1}) {
    const ScratchFolder folder;
    torch::rand({3});  // whatever was drawn before
    Estimator estimator(LinearModelFn, {.model_dir = folder.path(), .seed = seed});
    estimator.Train(LinearTrainInput, {.max_steps = 1});
    ends.push_back(ValuesOf(estimator));
  }
  EXPECT_TRUE(Same(ends[0], ends[1]));
  EXPECT_FALSE(Same(ends[0], ends[2]));
}

TEST_F(EstimatorTest, TheModelFunctionIsToldModeParamsAndConfig) {
  std::vector<std::string> modes;
  const auto model_fn = [&](const ModelContext& context) {
    modes.emplace_back(ModeName(context.mode));
    EXPECT_EQ(context.config.model_dir, folder_.path());
    EXPECT_EQ(context.params.at("rate"), "0.5");
    return LinearModelFn(context);
  };
  Estimator estimator(model_fn, Config(), {{"rate", "0.5"}});
  estimator.Train(LinearTrainInput, {.max_steps = 1});
  estimator.Evaluate(LinearEvalInput);
  estimator.Predict(LinearEvalInput, [](const Tensors&) {});
  EXPECT_THAT(modes, ElementsAre("train", "eval", "infer"));
}

using Events = std::vector<std::string>;

class RecordingHook final : public SessionHook {
 public:
  RecordingHook(std::string name, Events& events) : name_(std::move(name)), events_(events) {}
  absl::Status Begin() override { return Add("begin"); }
  absl::Status AfterCreateSession(const SessionContext& session) override {
    return Add(absl::StrCat("created at ", session.global_step));
  }
  absl::Status BeforeRun(RunContext&) override { return Add("before"); }
  absl::Status AfterRun(RunContext&, const RunValues& values) override {
    return Add(absl::StrCat("after ", values.global_step));
  }
  absl::Status End(const SessionContext&) override { return Add("end"); }

 private:
  absl::Status Add(const std::string& event) {
    events_.push_back(absl::StrCat(name_, " ", event));
    return absl::OkStatus();
  }
  const std::string name_;
  Events& events_;
};

class RecordingListener final : public CheckpointSaverListener {
 public:
  explicit RecordingListener(Events& events) : events_(events) {}
  absl::StatusOr<AfterSaving> AfterSave(const SessionContext&, int64_t step) override {
    events_.push_back(absl::StrCat("saved ", step));
    return AfterSaving::kContinue;
  }

 private:
  Events& events_;
};

TEST_F(EstimatorTest, HooksComeInTensorFlowsOrder) {
  Events events;
  const auto hook = [&events](const char* name) { return std::make_shared<RecordingHook>(name, events); };
  const auto model_fn = [&](const ModelContext& context) {
    EstimatorSpec spec = LinearModelFn(context);
    spec.training_hooks = {hook("model's")};
    spec.training_chief_hooks = {hook("chief's")};
    return spec;
  };
  Estimator(model_fn, Config())
      .Train(LinearTrainInput, {.hooks = {hook("user's")},
                                .max_steps = 1,
                                .saving_listeners = {std::make_shared<RecordingListener>(events)}});
  EXPECT_THAT(events, ElementsAre("chief's begin", "user's begin", "model's begin",                                  //
                                  "saved 0", "chief's created at 0", "user's created at 0", "model's created at 0",  //
                                  "chief's before", "user's before", "model's before",                               //
                                  "chief's after 1", "user's after 1", "model's after 1",                            //
                                  "saved 1", "chief's end", "user's end", "model's end"));
}

TEST_F(EstimatorTest, SavesAsOftenAsTheConfigSaysByOneSaver) {
  Events events;
  const auto train = [&](RunConfig config) {
    const ScratchFolder folder;
    config.model_dir = folder.path();
    events.clear();
    Estimator(LinearModelFn, config)
        .Train(LinearTrainInput, {.max_steps = 6, .saving_listeners = {std::make_shared<RecordingListener>(events)}});
  };
  train({.save_checkpoints_steps = 2});
  EXPECT_THAT(events, ElementsAre("saved 0", "saved 2", "saved 4", "saved 6"));
  train({.save_checkpoints_steps = 0});
  EXPECT_THAT(events, ElementsAre("saved 0", "saved 6"));
  train({.save_checkpoints_secs = 0});
  EXPECT_THAT(events, ElementsAre("saved 0", "saved 6"));
}

TEST_F(EstimatorTest, HooksOfAnEvaluationSeeItsBatches) {
  Estimator estimator = Linear();
  estimator.Train(LinearTrainInput, {.max_steps = 3});
  Events events;
  estimator.Evaluate(LinearEvalInput, {.hooks = {std::make_shared<RecordingHook>("h", events)}});
  EXPECT_THAT(events, ElementsAre("h begin", "h created at 3", "h before", "h after 3", "h before", "h after 3",
                                  "h before", "h end"))
      << "the third batch isn't there";
}

TEST_F(EstimatorTest, AScaffoldOfTheModelIsUsed) {
  int inits = 0;
  const auto model_fn = [&](const ModelContext& context) {
    EstimatorSpec spec = LinearModelFn(context);
    auto weight = spec.module->named_parameters()["weight"];
    spec.scaffold = std::make_shared<Scaffold>(ScaffoldOptions{.init =
                                                                   [weight]() mutable {
                                                                     const torch::NoGradGuard no_grad;
                                                                     weight.fill_(7);
                                                                     return absl::OkStatus();
                                                                   },
                                                               .local_init =
                                                                   [&inits] {
                                                                     ++inits;
                                                                     return absl::OkStatus();
                                                                   },
                                                               .saver = ScaffoldSaver{.keep_checkpoint_max = 1}});
    return spec;
  };
  Estimator estimator(model_fn, Config(), {{"rate", "0"}});
  estimator.Train(LinearTrainInput, {.max_steps = 3});
  EXPECT_TRUE(torch::equal(estimator.VariableValue("weight"), torch::full({1, 2}, 7.0F)));
  EXPECT_EQ(inits, 1);
  estimator.Evaluate(LinearEvalInput);
  EXPECT_EQ(inits, 2);
  EXPECT_TRUE(absl::IsNotFound(ThrownBy([&] {
    estimator.Evaluate(LinearEvalInput, {.checkpoint_path = folder_.path() + "/model.ckpt-0"});
  }))) << "one checkpoint is kept";
}

TEST_F(EstimatorTest, AScaffoldThatWasUsedBeforeIsSaid) {
  const auto scaffold = std::make_shared<Scaffold>();
  const auto model_fn = [&](const ModelContext& context) {
    EstimatorSpec spec = LinearModelFn(context);
    spec.scaffold = scaffold;
    return spec;
  };
  Estimator estimator(model_fn, Config());
  estimator.Train(LinearTrainInput, {.max_steps = 1});
  EXPECT_THAT(MessageOf([&] { estimator.Train(LinearTrainInput, {.max_steps = 2}); }), HasSubstr("make a new one"));
}

TEST_F(EstimatorTest, TheAlgorithmIsTheConfigsItsRuleTheModels) {
  RunConfig config = Config();
  config.algorithm = {.name = "downpour_easy", .parameters = {{"window", "3"}}};
  Estimator windows(LinearModelFn, config);
  windows.Train(LinearTrainInput, {.max_steps = 6});
  const ScratchFolder other;
  Estimator plain(LinearModelFn, {.model_dir = other.path(), .seed = kLinearSeed});
  plain.Train(LinearTrainInput, {.max_steps = 18});  // as many minibatches as the windows have
  EXPECT_TRUE(torch::allclose(windows.VariableValue("weight"), plain.VariableValue("weight"), 1e-5, 1e-6));
}

}  // namespace
}  // namespace muster::estimator_test
