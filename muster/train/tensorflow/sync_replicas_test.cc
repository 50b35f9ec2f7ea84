#include "muster/train/tensorflow/sync_replicas.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "muster/base/log.h"
#include "muster/base/wrong_configuration.h"
#include "muster/train/testing/training_process.h"

namespace muster::sync_replicas_test {
namespace {

const std::vector<std::string> kTasks = {"chief:0"};

class SyncReplicasTest : public ::testing::Test {
 protected:
  absl::Status Begin(const SyncReplicasOptimizer& optimizer, bool is_chief, int64_t num_tokens) {
    return optimizer.MakeSessionRunHook(is_chief, num_tokens)->Begin();
  }
  std::unique_ptr<Algorithm> Apply(SyncReplicasOptimizer& optimizer) {
    return optimizer.Apply(source_, *PlaceVariables(source_.variables(), 1, Placement::kRoundRobin, {}));
  }

  QuadraticSource source_{{{.name = "w", .shape = {3}}}};
};

TEST_F(SyncReplicasTest, TotalDefaultsToWhatIsAggregated) {
  EXPECT_EQ(SyncReplicasOptimizer(RuleSpec(), 3).total_num_replicas(), 3u);
  EXPECT_EQ(SyncReplicasOptimizer(RuleSpec(), 3, 4).total_num_replicas(), 4u);
}

TEST_F(SyncReplicasTest, TheAlgorithmIsSynchronousWithTheseNumbers) {
  SyncReplicasOptimizer optimizer(RuleSpec{.learning_rate = 0.1}, 3, 4);
  const auto algorithm = Apply(optimizer);
  const GateSpec& gate = algorithm->binding().gate;
  EXPECT_EQ(gate.kind, GateKind::kSynchronous);
  EXPECT_EQ(gate.replicas_to_aggregate, 3u);
  EXPECT_EQ(gate.total_replicas, 4u);
}

TEST_F(SyncReplicasTest, TheHookNeedsTheAlgorithmFirst) {
  SyncReplicasOptimizer optimizer(RuleSpec(), 1);
  const auto early = optimizer.MakeSessionRunHook(true);
  EXPECT_EQ(early->Begin(), absl::FailedPreconditionError(
                                "SyncReplicasOptimizer.apply_gradient should be called before using the hook."));
  Apply(optimizer);
  EXPECT_EQ(early->Begin(), absl::OkStatus()) << "it is checked when the session begins, not when the hook is made";
}

TEST_F(SyncReplicasTest, TooFewTokensAreRefusedInTensorFlowsWords) {
  SyncReplicasOptimizer optimizer(RuleSpec(), 5, 3);
  Apply(optimizer);
  EXPECT_EQ(Begin(optimizer, true, 1),
            WrongOptionError("Too few tokens to finish the first step: 1 (given) vs 2 (needed)"));
  EXPECT_EQ(Begin(optimizer, true, 2), absl::OkStatus());
  EXPECT_EQ(Begin(optimizer, true, -1), absl::OkStatus());
  EXPECT_EQ(Begin(optimizer, false, 1), absl::OkStatus()) << "only the chief hands out tokens";
}

TEST_F(SyncReplicasTest, TheHookAndTheSessionAgreeOnWhoIsTheChief) {
  SimulatedStore store(1, kTasks, {.lease = absl::Hours(100)});
  TrainingProcess chief(store, "chief:0");
  SyncReplicasOptimizer optimizer(RuleSpec{.learning_rate = 0.1}, 1);
  const auto algorithm =
      optimizer.Apply(chief.source, *PlaceVariables(chief.source.variables(), 1, Placement::kRoundRobin, {}));
  SessionEnvironment environment = chief.Environment();
  environment.algorithm = algorithm.get();
  Session session(environment, {}, {optimizer.MakeSessionRunHook(true)});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  EXPECT_EQ(session.Run(), absl::OkStatus());
  EXPECT_EQ(session.global_step(), 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(
      optimizer.MakeSessionRunHook(false)->AfterCreateSession(SessionContext{.is_chief = true})));
}

TEST(SyncReplicasWarningTest, ReplicasThatTheClusterHasNotAreWarnedOf) {
  const auto log_of = [](uint32_t total, size_t workers) {
    ::testing::internal::CaptureStderr();
    SetUpLog("");
    WarnOfMissingReplicas(total, workers);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(log_of(2, 2), "");
  EXPECT_EQ(log_of(1, 2), "");
  EXPECT_THAT(log_of(2, 1), ::testing::HasSubstr("total_num_replicas = 2, but the cluster has 1 worker"));
}

}  // namespace
}  // namespace muster::sync_replicas_test
