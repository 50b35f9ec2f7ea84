// An Estimator as a task of a cluster: with a ps in a thread, and as a task that doesn't train.
#include <gmock/gmock.h>

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/free_addresses.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/base/wrong_configuration.h"
#include "muster/estimator/estimator.h"
#include "muster/estimator/testing/estimator_test_model.h"
#include "muster/torch_bridge/facade/training.h"

namespace muster::estimator_cluster_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr;

class EstimatorClusterTest : public LinearEstimatorTest {};

TaskConfig TaskOfCluster(const std::string& ps, const std::string& type) {
  return *ResolveTaskConfig(
      {.tf_config = absl::StrCat(R"({"cluster": {"ps": [")", ps,
                                 R"("], "worker": ["127.0.0.1:1"]}, "task": {"type": ")", type, R"(", "index": 0}})")});
}

TEST_F(EstimatorClusterTest, TrainsWithAPsOnceAProcess) {
  const std::string address = FreeAddresses(1)[0];
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

  const ScratchFolder other;
  Estimator alone(LinearModelFn, {.model_dir = other.path(), .seed = kLinearSeed});
  alone.Train(LinearTrainInput, {.max_steps = 6});
  EXPECT_TRUE(torch::allclose(worker.VariableValue("weight"), alone.VariableValue("weight"), 1e-5, 1e-6));
}

// A worker with nothing left to train tells the ps, which would otherwise wait for ever.
TEST_F(EstimatorClusterTest, InAClusterMaxStepsThatWasReachedEndsThePsToo) {
  Linear().Train(LinearTrainInput, {.max_steps = 3});
  const std::string address = FreeAddresses(1)[0];
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

TEST_F(EstimatorClusterTest, APsAndAnEvaluatorDoNotTrain) {
  for (const char* type : {"ps", "evaluator"}) {
    RunConfig config = Config();
    config.task = TaskOfCluster("127.0.0.1:2", type);
    Estimator estimator(LinearModelFn, config);
    const absl::Status status = ThrownBy([&] { estimator.Train(LinearTrainInput, {.max_steps = 3}); });
    EXPECT_TRUE(IsWrongConfiguration(status)) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(type), HasSubstr("TrainAndEvaluate")));
  }
}

TEST_F(EstimatorClusterTest, AnEvaluatorEvaluates) {
  Linear().Train(LinearTrainInput, {.max_steps = 3});
  RunConfig config = Config();
  config.task = TaskOfCluster("127.0.0.1:2", "evaluator");
  EXPECT_EQ(Estimator(LinearModelFn, config).Evaluate(LinearEvalInput).at("global_step"), 3);
}

}  // namespace
}  // namespace muster::estimator_cluster_test
