#include "muster/estimator/warm_start.h"

#include <gmock/gmock.h>

#include <vector>

#include "muster/base/testing/scratch_folder.h"
#include "muster/estimator/testing/estimator_test_model.h"

namespace muster::warm_start_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr;

class WarmStartTest : public LinearEstimatorTest {
 protected:
  WarmStartTest() { Linear().Train(LinearTrainInput, {.max_steps = 5}); }
  // Returns the initial values of a model with `settings`: its rate is 0, so they don't change.
  std::vector<torch::Tensor> Begin(const WarmStartSettings& settings) const {
    const ScratchFolder folder;
    Estimator estimator(LinearModelFn, {.model_dir = folder.path(), .seed = kLinearSeed + 1}, {{"rate", "0"}},
                        settings);
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
  const ScratchFolder folder;
  const RunConfig config{.model_dir = folder.path(), .seed = kLinearSeed + 1};
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

}  // namespace
}  // namespace muster::warm_start_test
