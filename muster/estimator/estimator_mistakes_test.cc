// Mistakes in a model function, an input function, a model_dir or a call, and Estimator's error messages.
#include <gmock/gmock.h>

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "muster/base/testing/scratch_folder.h"
#include "muster/base/wrong_configuration.h"
#include "muster/estimator/estimator.h"
#include "muster/estimator/testing/estimator_test_model.h"

namespace muster::estimator_mistakes_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr;

class EstimatorMistakesTest : public LinearEstimatorTest {};

// A model whose loss is changed by `change`.
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

TEST_F(EstimatorMistakesTest, ALossHasToBeAFiniteScalar) {
  const auto no_loss = [](const torch::Tensor&) { return torch::Tensor(); };
  const auto vector = [](const torch::Tensor& loss) { return loss.expand({3}); };
  const auto nan = [](const torch::Tensor& loss) { return loss * std::numeric_limits<double>::quiet_NaN(); };
  const auto infinite = [](const torch::Tensor& loss) { return loss / 0; };
  const auto train = [](const std::function<torch::Tensor(const torch::Tensor&)>& change) {
    const ScratchFolder folder;
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

class NoMetric final : public Metric {
 public:
  void Reset() override {}
  void Update(const Tensors&, const Minibatch&) override {}
  double Result() const override { return 0; }
};

TEST_F(EstimatorMistakesTest, WhatTheModelFunctionLeavesOutIsSaid) {
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
  EXPECT_THAT(without([](EstimatorSpec& spec) { spec.eval_metrics["loss"] = std::make_shared<NoMetric>(); }),
              HasSubstr("'loss'"));
  EXPECT_TRUE(IsWrongConfiguration(ThrownBy([this] { Estimator({}, Config()); })));
}

class EvaluatingListener final : public CheckpointSaverListener {
 public:
  explicit EvaluatingListener(Estimator& estimator) : estimator_(estimator) {}
  absl::StatusOr<AfterSaving> AfterSave(const SessionContext&, int64_t) override {
    estimator_.Evaluate(LinearEvalInput);
    return AfterSaving::kContinue;
  }

 private:
  Estimator& estimator_;
};

TEST_F(EstimatorMistakesTest, TheModuleInTrainingIsNotEvaluated) {
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

TEST_F(EstimatorMistakesTest, AnInputWithoutABatchIsAnError) {
  const auto nothing = [](const InputContext&) {
    return Dataset::FromMemory(LinearRows()).Skip(kLinearRows).Batch(100);
  };
  Estimator estimator = Linear();
  EXPECT_THAT(MessageOf([&] { estimator.Train(nothing, {.max_steps = 2}); }),
              AllOf(HasSubstr("training input function"), HasSubstr("yielded nothing")));
  estimator.Train(LinearTrainInput, {.max_steps = 1});
  EXPECT_THAT(MessageOf([&] { estimator.Evaluate(nothing); }), HasSubstr("yielded nothing"));
  EXPECT_THAT(MessageOf([&] { estimator.Predict(nothing, [](const Tensors&) {}); }), HasSubstr("yielded nothing"));
}

TEST_F(EstimatorMistakesTest, AModelDirOfAnotherModelIsSaid) {
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

TEST_F(EstimatorMistakesTest, WithoutACheckpointThereIsNothingToEvaluate) {
  Estimator estimator = Linear();
  for (const absl::Status& status : {ThrownBy([&] { estimator.Evaluate(LinearEvalInput); }),
                                     ThrownBy([&] { estimator.Predict(LinearEvalInput, [](const Tensors&) {}); })}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("no checkpoint"), HasSubstr(folder_.path())));
  }
}

TEST_F(EstimatorMistakesTest, StepsAreAboveZeroAndSaidOnce) {
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

}  // namespace
}  // namespace muster::estimator_mistakes_test
