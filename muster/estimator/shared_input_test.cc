// Training on an input that a work queue shares (InputContext::share), in a process without a cluster.
#include <gmock/gmock.h>

#include <cstdint>
#include <vector>

#include "muster/data/shuffle.h"
#include "muster/data/testing/numbered_examples.h"
#include "muster/estimator/estimator.h"
#include "muster/estimator/testing/estimator_test_model.h"

namespace muster::shared_input_test {
namespace {

using ::testing::HasSubstr, ::testing::IsEmpty, ::testing::UnorderedElementsAreArray;

constexpr int64_t kRows = 10;
constexpr int64_t kBatch = 3;
constexpr uint64_t kSeed = 5;

InputFn SharedEpochs(int64_t epochs) {
  return [epochs](const InputContext& context) {
    const auto batch = static_cast<size_t>(kBatch);
    return NumberedRows(kRows)
        .Shuffle({.seed = kSeed})
        .ShareBy(context.share(kRows, kBatch, epochs))
        .Batch(batch)
        .Prefetch(2);
  };
}

// The rows of the queue's epochs.
std::vector<int64_t> RowsOfEpochs(uint64_t epochs) {
  std::vector<int64_t> rows;
  for (uint64_t epoch = 0; epoch < epochs; ++epoch)
    for (const size_t row : ShuffledOrder(kRows, kSeed, epoch)) rows.push_back(static_cast<int64_t>(row));
  return rows;
}

class EstimatorSharedInputTest : public LinearEstimatorTest {
 protected:
  Estimator Recording() {
    return Estimator([this](const ModelContext&) { return Model(); }, Config());
  }

  std::vector<int64_t> trained_;  // rows, in the order of the steps
  int aborts_at_ = -1;            // the step (of this process, from 0) that must be repeated

 private:
  EstimatorSpec Model() {
    torch::nn::Linear net(2, 1);
    EstimatorSpec spec;
    spec.module = net.ptr();
    spec.forward = [this, net](const Minibatch& batch) mutable {
      if (steps_++ == aborts_at_) throw Error(absl::AbortedError("the store has lost the model"));
      const auto* labels = batch.labels.const_data_ptr<int64_t>();
      trained_.insert(trained_.end(), labels, labels + batch.labels.numel());
      return ModelOutputs{.loss = net->forward(FeatureOf(batch, "x")).square().mean()};
    };
    spec.optimizer = Sgd({.learning_rate = 0.001});
    return spec;
  }

  int steps_ = 0;
};

TEST_F(EstimatorSharedInputTest, EachRowIsTrainedOnOnceAnEpoch) {
  Estimator estimator = Recording();
  estimator.Train(SharedEpochs(2));
  EXPECT_EQ(trained_, RowsOfEpochs(2));
  EXPECT_EQ(estimator.VariableValue("global_step").item<int64_t>(), 8) << "an epoch ends with a short batch";
}

// Some units are prepared that were never trained on.
TEST_F(EstimatorSharedInputTest, ACheckpointKnowsWhichRowsAreDone) {
  Recording().Train(SharedEpochs(2), {.max_steps = 3});
  EXPECT_EQ(trained_.size(), 9U);
  Recording().Train(SharedEpochs(2));
  EXPECT_EQ(trained_, RowsOfEpochs(2));
}

TEST_F(EstimatorSharedInputTest, TheEpochsAreTheJobs) {
  Recording().Train(SharedEpochs(1));
  trained_.clear();
  testing::internal::CaptureStderr();
  Recording().Train(SharedEpochs(1));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("Training with estimator made no steps."));
  EXPECT_THAT(trained_, IsEmpty());
  Recording().Train(SharedEpochs(2));
  const std::vector<int64_t> both = RowsOfEpochs(2);
  EXPECT_EQ(trained_, std::vector<int64_t>(both.begin() + kRows, both.end()));
}

// Its session joins again, and the worker's units are handed out anew: the interrupted step must not use them, too.
TEST_F(EstimatorSharedInputTest, AStepThatIsMadeAnewDoesNotTakeTheRowsThatItHasLost) {
  aborts_at_ = 1;
  Recording().Train(SharedEpochs(2));
  EXPECT_THAT(trained_, UnorderedElementsAreArray(RowsOfEpochs(2)));
}

TEST_F(EstimatorSharedInputTest, EvaluationSharesNothing) {
  Linear().Train(LinearTrainInput, {.max_steps = 1});
  bool asked = false;
  Linear().Evaluate([&](const InputContext& context) {
    asked = true;
    EXPECT_FALSE(context.share);
    return LinearEvalInput(context);
  });
  EXPECT_TRUE(asked);
}

}  // namespace
}  // namespace muster::shared_input_test
