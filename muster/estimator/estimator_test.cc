#include "muster/estimator/estimator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/wrong_configuration.h"
#include "muster/estimator/estimator_test_model.h"
#include "muster/torch_bridge/random_state.h"
#include "muster/torch_bridge/training.h"
#include "muster/train/hooks.h"
#include "muster/transport/tcp/tcp_transport.h"

namespace muster::estimator_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

constexpr uint64_t kSeed = 11;

// Weight and bias as the latest checkpoint has them.
std::vector<torch::Tensor> ValuesOf(const Estimator& estimator) {
  return {estimator.VariableValue("weight"), estimator.VariableValue("bias")};
}

bool Same(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  return torch::equal(a[0], b[0]) && torch::equal(a[1], b[1]);
}

torch::Tensor Features() { return TensorOf(LinearRows().features[0].value); }
torch::Tensor Labels() { return TensorOf(LinearRows().labels); }

double Loss(const std::vector<torch::Tensor>& values, int64_t first, int64_t rows) {
  const torch::Tensor predicted = torch::matmul(Features().narrow(0, first, rows), values[0].t()) + values[1];
  return torch::mse_loss(predicted, Labels().narrow(0, first, rows)).item<double>();
}

std::string MessageOf(const std::function<void()>& call) { return std::string(ThrownBy(call).message()); }

class EstimatorTest : public ::testing::Test {
 protected:
  RunConfig Config() const { return {.model_dir = folder_.path(), .seed = kSeed}; }
  Estimator Linear() const { return Estimator(LinearModelFn, Config()); }

  const TestFolder folder_;
};

TEST_F(EstimatorTest, TrainsAsTorchsOwnLoop) {
  Estimator estimator = Linear();
  estimator.Train(LinearTrainInput, {.max_steps = 20});
  EXPECT_THAT(estimator.LatestCheckpoint(), HasSubstr("model.ckpt-20"));

  SeedTorch(kSeed);
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

// 7 steps end in the middle of an epoch: the position is the checkpoint's, too.
TEST_F(EstimatorTest, GoesOnWhereTheCheckpointIs) {
  Linear().Train(LinearTrainInput, {.max_steps = 7});
  Estimator second = Linear();
  second.Train(LinearTrainInput, {.max_steps = 15});
  const TestFolder other;
  Estimator whole(LinearModelFn, {.model_dir = other.path(), .seed = kSeed});
  whole.Train(LinearTrainInput, {.max_steps = 15});
  EXPECT_TRUE(Same(ValuesOf(second), ValuesOf(whole)));
}

TEST_F(EstimatorTest, TrainsAsOftenAsOneLikes) {
  Estimator estimator = Linear();
  estimator.Train(LinearTrainInput, {.steps = 3}).Train(LinearTrainInput, {.steps = 4});
  EXPECT_EQ(estimator.VariableValue("global_step").item<int64_t>(), 7);
}

// An epoch a call, as programs of TensorFlow's train.
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
  Estimator estimator(LinearModelFn, {.model_dir = folder_.path(), .seed = kSeed, .log_step_count_steps = 2});
  estimator.Train(LinearTrainInput, {.max_steps = 4});
  const std::string log = testing::internal::GetCapturedStderr();
  size_t at = 0;
  for (const char* line :
       {"Calling model_fn.", "Done calling model_fn.", "Create CheckpointSaverHook.", "Graph was finalized.",
        "Running local_init_op.", "Done running local_init_op.", "Saving checkpoints for 0 into ",
        "loss = ", ", step = 1", "loss = ", ", step = 3", "Saving checkpoints for 4 into ", "Loss for final step: "}) {
    at = log.find(line, at);
    ASSERT_NE(at, std::string::npos) << line << " isn't there, or too early, in\n" << log;
  }
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

// Counts rows and adds predictions up.
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
  const auto text = PosixFileSystem().ReadFile(estimator.EvalDir() + "/metrics.jsonl");
  ASSERT_TRUE(text.ok()) << text.status();
  const std::vector<std::string> lines = absl::StrSplit(*text, '\n');
  ASSERT_EQ(lines.size(), 3u) << *text;
  EXPECT_EQ(lines.back(), "");
  const auto line = nlohmann::json::parse(lines[1]);
  EXPECT_EQ(line.at("global_step").get<int64_t>(), 3);
  EXPECT_EQ(line.at("loss").get<double>(), results.at("loss"));
  EXPECT_EQ(line.at("sum").get<double>(), results.at("sum"));
  EXPECT_GT(line.at("wall_time").get<double>(), 1e9);
  estimator.Evaluate(LinearEvalInput, {.name = "test"});
  const auto files = PosixFileSystem().ListDirectory(estimator.EvalDir("test"));
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_TRUE(std::any_of(files->begin(), files->end(),
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

// The model draws in each forward, and its evaluation too.
EstimatorSpec DroppingModelFn(const ModelContext& context) {
  EstimatorSpec spec = LinearModelFn(context);
  spec.forward = [linear = spec.forward](const Minibatch& batch) {
    Minibatch noisy = batch;
    noisy.features["x"] = noisy.features["x"] * torch::bernoulli(torch::full({2}, 0.5));
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
    return AfterSaving::kGoOn;
  }
  std::vector<int64_t> steps;

 private:
  Estimator& estimator_;
};

TEST_F(EstimatorTest, AnEvaluationInTheMiddleOfTrainingChangesNothing) {
  for (const std::optional<uint64_t> seed : {std::optional<uint64_t>(kSeed), std::optional<uint64_t>()}) {
    std::vector<std::vector<torch::Tensor>> ends;
    for (const bool evaluates : {false, true}) {
      const TestFolder folder;
      SeedTorch(kSeed);
      Estimator estimator(DroppingModelFn, {.model_dir = folder.path(), .seed = seed, .save_checkpoints_steps = 4});
      const auto listener = std::make_shared<EvaluatingListener>(estimator);
      TrainOptions options{.max_steps = 12};
      if (evaluates) options.saving_listeners = {listener};
      estimator.Train(LinearTrainInput, options);
      ends.push_back(ValuesOf(estimator));
      if (evaluates) EXPECT_THAT(listener->steps, ElementsAre(0, 4, 8, 12));
    }
    EXPECT_TRUE(Same(ends[0], ends[1])) << (seed ? "with a seed" : "without");
  }
}

TEST_F(EstimatorTest, TheSeedMakesTheWeights) {
  std::vector<std::vector<torch::Tensor>> ends;
  for (const uint64_t seed : {kSeed, kSeed, kSeed + 1}) {
    const TestFolder folder;
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
    return AfterSaving::kGoOn;
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
    const TestFolder folder;
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
  const TestFolder other;
  Estimator plain(LinearModelFn, {.model_dir = other.path(), .seed = kSeed});
  plain.Train(LinearTrainInput, {.max_steps = 6});
  EXPECT_TRUE(torch::allclose(windows.VariableValue("weight"), plain.VariableValue("weight"), 1e-5, 1e-6));
}

class WarmStartTest : public EstimatorTest {
 protected:
  WarmStartTest() { Linear().Train(LinearTrainInput, {.max_steps = 5}); }
  // What a model with `settings` begins with: it doesn't move.
  std::vector<torch::Tensor> Begin(const WarmStartSettings& settings) const {
    const TestFolder folder;
    Estimator estimator(LinearModelFn, {.model_dir = folder.path(), .seed = kSeed + 1}, {{"rate", "0"}}, settings);
    estimator.Train(LinearTrainInput, {.max_steps = 1});
    return ValuesOf(estimator);
  }
};

TEST_F(WarmStartTest, BeginsWithAnotherModelsValues) {
  EXPECT_TRUE(Same(Begin({.checkpoint = folder_.path()}), ValuesOf(Linear())));
  EXPECT_TRUE(Same(Begin({.checkpoint = folder_.path() + "/model.ckpt-5"}), ValuesOf(Linear())));
}

TEST_F(WarmStartTest, TakesWhatTheExpressionMatches) {
  const auto taken = ValuesOf(Linear());
  const auto begun = Begin({.checkpoint = folder_.path(), .variables = "wei"});
  EXPECT_TRUE(torch::equal(begun[0], taken[0]));
  EXPECT_FALSE(torch::equal(begun[1], taken[1]));
  EXPECT_THAT(MessageOf([&] { Begin({.checkpoint = folder_.path(), .variables = "eight"}); }),
              HasSubstr("no variable of this model matches 'eight'"));
}

TEST_F(WarmStartTest, GoesOnFromItsOwnCheckpointIfThereIsOne) {
  const TestFolder folder;
  const RunConfig config{.model_dir = folder.path(), .seed = kSeed + 1};
  const WarmStartSettings settings{.checkpoint = folder_.path()};
  Estimator first(LinearModelFn, config, {}, settings);
  first.Train(LinearTrainInput, {.max_steps = 2});
  const auto there = ValuesOf(first);
  Estimator second(LinearModelFn, config, {{"rate", "0"}}, settings);
  second.Train(LinearTrainInput, {.max_steps = 3});
  EXPECT_TRUE(Same(ValuesOf(second), there));
}

TEST_F(WarmStartTest, MistakesAreSaid) {
  EXPECT_THAT(MessageOf([&] { Begin({.checkpoint = folder_.path(), .variables = "("}); }),
              HasSubstr("no regular expression"));
  EXPECT_THAT(MessageOf([&] {
                Begin({.checkpoint = folder_.path(), .names = {{"wieght", "weight"}}});
              }),
              AllOf(HasSubstr("'wieght'"), HasSubstr("weight, bias")));
  EXPECT_THAT(MessageOf([&] {
                Begin({.checkpoint = folder_.path(), .names = {{"weight", "linear.weight"}}});
              }),
              HasSubstr("has no variable 'linear.weight'"));
  EXPECT_THAT(MessageOf([&] {
                Begin({.checkpoint = folder_.path(), .names = {{"weight", "bias"}}});
              }),
              AllOf(HasSubstr("[1,2]"), HasSubstr("[1]")));
  EXPECT_TRUE(absl::IsNotFound(ThrownBy([&] { Begin({.checkpoint = folder_.path() + "/elsewhere"}); })));
}

// A model whose loss is what `change` makes of it.
ModelFn WithLoss(std::function<torch::Tensor(const torch::Tensor&)> change) {
  return [change = std::move(change)](const ModelContext& context) {
    EstimatorSpec spec = LinearModelFn(context);
    spec.forward = [linear = spec.forward, change](const Minibatch& batch) {
      ModelOutputs outputs = linear(batch);
      outputs.loss = change(outputs.loss);
      return outputs;
    };
    return spec;
  };
}

TEST_F(EstimatorTest, ALossHasToBeAFiniteScalar) {
  const auto no_loss = [](const torch::Tensor&) { return torch::Tensor(); };
  const auto vector = [](const torch::Tensor& loss) { return loss.expand({3}); };
  const auto nan = [](const torch::Tensor& loss) { return loss * std::numeric_limits<double>::quiet_NaN(); };
  const auto infinite = [](const torch::Tensor& loss) { return loss / 0; };
  const auto train = [](const std::function<torch::Tensor(const torch::Tensor&)>& change) {
    const TestFolder folder;
    return MessageOf(
        [&] { Estimator(WithLoss(change), {.model_dir = folder.path()}).Train(LinearTrainInput, {.max_steps = 2}); });
  };
  EXPECT_THAT(train(no_loss), HasSubstr("returned no loss"));
  EXPECT_THAT(train(vector), AllOf(HasSubstr("scalar"), HasSubstr("[3]")));
  EXPECT_THAT(train(nan), HasSubstr("NaN loss during training."));
  EXPECT_THAT(train(infinite), HasSubstr("loss is inf"));
  Linear().Train(LinearTrainInput, {.max_steps = 1});
  const auto evaluate = [this](const std::function<torch::Tensor(const torch::Tensor&)>& change) {
    return MessageOf([&] { Estimator(WithLoss(change), Config()).Evaluate(LinearEvalInput); });
  };
  EXPECT_THAT(evaluate(no_loss), HasSubstr("returned no loss"));
  EXPECT_THAT(evaluate(vector), HasSubstr("[3]"));
  EXPECT_THAT(evaluate(nan), HasSubstr("nan"));
  EXPECT_THAT(evaluate(infinite), HasSubstr("inf"));
}

TEST_F(EstimatorTest, WhatTheModelFunctionLeavesOutIsSaid) {
  const auto without = [this](const std::function<void(EstimatorSpec&)>& change) {
    Estimator estimator(
        [change](const ModelContext& context) {
          EstimatorSpec spec = LinearModelFn(context);
          change(spec);
          return spec;
        },
        Config());
    const absl::Status status = ThrownBy([&] { estimator.MakeSpec(Mode::kEval); });
    EXPECT_TRUE(IsWrongConfiguration(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(without([](EstimatorSpec& spec) { spec.module = nullptr; }), HasSubstr("module"));
  EXPECT_THAT(without([](EstimatorSpec& spec) { spec.forward = nullptr; }), HasSubstr("forward"));
  EXPECT_THAT(without([](EstimatorSpec& spec) { spec.eval_metrics["mine"] = nullptr; }), HasSubstr("'mine'"));
  EXPECT_THAT(without([](EstimatorSpec& spec) { spec.eval_metrics["loss"] = std::make_shared<SumMetric>(); }),
              HasSubstr("'loss'"));
  EXPECT_TRUE(IsWrongConfiguration(ThrownBy([this] { Estimator({}, Config()); })));
}

TEST_F(EstimatorTest, TheModuleInTrainingIsNotEvaluated) {
  std::optional<EstimatorSpec> shared;
  const auto model_fn = [&](const ModelContext& context) {
    if (!shared) shared = LinearModelFn(context);
    return *shared;
  };
  Estimator estimator(model_fn, Config());
  EXPECT_THAT(MessageOf([&] {
                estimator.Train(
                    LinearTrainInput,
                    {.max_steps = 1, .saving_listeners = {std::make_shared<EvaluatingListener>(estimator)}});
              }),
              HasSubstr("being trained"));
}

TEST_F(EstimatorTest, AnInputWithoutABatchIsAnError) {
  const auto nothing = [](const InputContext&) {
    return Dataset::FromMemory(LinearRows()).Batch(100, /*drop_remainder=*/true);
  };
  Estimator estimator = Linear();
  EXPECT_THAT(MessageOf([&] { estimator.Train(nothing, {.max_steps = 2}); }),
              AllOf(HasSubstr("training input function"), HasSubstr("yielded nothing")));
  EXPECT_THAT(MessageOf([&] { estimator.Evaluate(nothing); }), HasSubstr("yielded nothing"));
  EXPECT_THAT(MessageOf([&] { estimator.Predict(nothing, [](const Tensors&) {}); }), HasSubstr("yielded nothing"));
}

TEST_F(EstimatorTest, AModelDirOfAnotherModelIsSaid) {
  Linear().Train(LinearTrainInput, {.max_steps = 1});
  const auto wider = [](const ModelContext& context) {
    EstimatorSpec spec = LinearModelFn(context);
    spec.module = torch::nn::Linear(3, 1).ptr();
    return spec;
  };
  Estimator other(wider, Config());
  for (const absl::Status& status : {ThrownBy([&] { other.Train(LinearTrainInput, {.max_steps = 2}); }),
                                     ThrownBy([&] { other.Evaluate(LinearEvalInput); })}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("of another model"), HasSubstr("'weight'"), HasSubstr("give another model_dir")));
  }
}

TEST_F(EstimatorTest, WithoutACheckpointThereIsNothingToEvaluate) {
  Estimator estimator = Linear();
  for (const absl::Status& status : {ThrownBy([&] { estimator.Evaluate(LinearEvalInput); }),
                                     ThrownBy([&] { estimator.Predict(LinearEvalInput, [](const Tensors&) {}); })}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("no checkpoint"), HasSubstr(folder_.path())));
  }
}

TEST_F(EstimatorTest, StepsAreAboveZeroAndSaidOnce) {
  Estimator estimator = Linear();
  const auto usage = [&](const TrainOptions& options) {
    const absl::Status status = ThrownBy([&] { estimator.Train(LinearTrainInput, options); });
    EXPECT_TRUE(IsWrongConfiguration(status)) << status;
    return std::string(status.message());
  };
  EXPECT_EQ(usage({.steps = 0}), "Must specify steps > 0, given: 0");
  EXPECT_EQ(usage({.max_steps = -1}), "Must specify max_steps > 0, given: -1");
  EXPECT_THAT(usage({.steps = 1, .max_steps = 2}), HasSubstr("Can not provide both steps (1) and max_steps (2)."));
  EXPECT_EQ(MessageOf([&] { estimator.Evaluate(LinearEvalInput, {.steps = 0}); }), "Must specify steps > 0, given: 0");
}

TaskConfig TaskOfCluster(const std::string& ps, const std::string& type) {
  return *ResolveTaskConfig(
      {.tf_config = absl::StrCat(R"({"cluster": {"ps": [")", ps,
                                 R"("], "worker": ["127.0.0.1:1"]}, "task": {"type": ")", type, R"(", "index": 0}})")});
}

// A free port, taken from one that listens for a moment.
std::string FreeAddress() {
  TcpEventLoop loop;
  StoreService nobody(loop,
                      {.files = &PosixFileSystem(), .background = [](absl::AnyInvocable<void()> task) { task(); }});
  TcpTransport transport(loop);
  return (*transport.Listen("127.0.0.1:0", nobody))->address();
}

TEST_F(EstimatorTest, TrainsWithAPsOnceAProcess) {
  const std::string address = FreeAddress();
  Server ps(TaskOfCluster(address, "ps"));
  int exit_code = -1;
  std::thread serving([&] { exit_code = ps.Join(); });
  RunConfig config = Config();
  config.task = TaskOfCluster(address, "worker");
  Estimator worker(LinearModelFn, config);
  worker.Train(LinearTrainInput, {.max_steps = 6});
  serving.join();
  EXPECT_EQ(exit_code, 0);
  EXPECT_THAT(MessageOf([&] { worker.Train(LinearTrainInput, {.max_steps = 9}); }),
              HasSubstr("this server has had its session"));

  const TestFolder other;
  Estimator alone(LinearModelFn, {.model_dir = other.path(), .seed = kSeed});
  alone.Train(LinearTrainInput, {.max_steps = 6});
  EXPECT_TRUE(torch::allclose(worker.VariableValue("weight"), alone.VariableValue("weight"), 1e-5, 1e-6));
}

// Who has nothing left to train tells the ps, which would wait for ever otherwise.
TEST_F(EstimatorTest, InAClusterMaxStepsThatWasReachedEndsThePsToo) {
  Linear().Train(LinearTrainInput, {.max_steps = 3});
  const std::string address = FreeAddress();
  Server ps(TaskOfCluster(address, "ps"));
  int exit_code = -1;
  std::thread serving([&] { exit_code = ps.Join(); });
  RunConfig config = Config();
  config.task = TaskOfCluster(address, "worker");
  Estimator worker(LinearModelFn, config);
  testing::internal::CaptureStderr();
  worker.Train(LinearTrainInput, {.max_steps = 3});
  serving.join();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("Skipping training since max_steps has already saved."));
  EXPECT_EQ(exit_code, 0);
  EXPECT_EQ(worker.VariableValue("global_step").item<int64_t>(), 3);
}

TEST_F(EstimatorTest, APsAndAnEvaluatorDoNotTrain) {
  for (const char* type : {"ps", "evaluator"}) {
    RunConfig config = Config();
    config.task = TaskOfCluster("127.0.0.1:2", type);
    Estimator estimator(LinearModelFn, config);
    const absl::Status status = ThrownBy([&] { estimator.Train(LinearTrainInput, {.max_steps = 3}); });
    EXPECT_TRUE(IsWrongConfiguration(status)) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(type), HasSubstr("TrainAndEvaluate")));
  }
}

TEST_F(EstimatorTest, AnEvaluatorEvaluates) {
  Linear().Train(LinearTrainInput, {.max_steps = 3});
  RunConfig config = Config();
  config.task = TaskOfCluster("127.0.0.1:2", "evaluator");
  EXPECT_EQ(Estimator(LinearModelFn, config).Evaluate(LinearEvalInput).at("global_step"), 3);
}

}  // namespace
}  // namespace muster::estimator_test
