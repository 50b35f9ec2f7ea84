#include "muster/algo/algorithms/pipelined.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "muster/algo/sources/quadratic_source.h"
#include "muster/store/testing/joining.h"
#include "muster/store/testing/simulated_store.h"

namespace muster::pipelined_test {
namespace {

const std::vector<VariableSpec> kVariables = {{.name = "w", .shape = {3, 4}},
                                              {.name = "frozen", .shape = {2}, .kind = VariableKind::kFrozen},
                                              {.name = "mean", .shape = {2}, .kind = VariableKind::kBuffer},
                                              {.name = "b", .shape = {4}}};
constexpr float kRate = 0.25F;

struct Trainee {
  Trainee(SimulatedStore& store, const std::string& task, bool chief, bool thread, FaultScript* script = nullptr)
      : client(script == nullptr ? store.Client(task) : store.Client(task, *script)),
        algorithm(source,
                  *PlaceVariables(kVariables, static_cast<int>(store.addresses().size()), Placement::kGreedyBySize, {}),
                  RuleSpec{.learning_rate = kRate}, {.thread = thread}) {
    Start(chief);
  }
  // Does what a session does.
  void Start(bool chief) {
    ASSERT_EQ(client->Join(chief), absl::OkStatus());
    client->Bind(algorithm.binding());
    if (chief) {
      ASSERT_EQ(client->Initialize(0, 0, nullptr), absl::OkStatus());
    }
    ASSERT_EQ(client->AwaitReady(absl::InfiniteFuture()).status(), absl::OkStatus());
    algorithm.Begin(*client);
    ASSERT_EQ(client->Pull(PullWhat::kEverything), absl::OkStatus());
  }
  StepResult Step() { return algorithm.Step(*client).value(); }

  QuadraticSource source{kVariables};
  std::unique_ptr<StoreClient> client;
  PipelinedAlgorithm algorithm;
};

// Gradient descent with a delay of one on w, written as it is defined.
class Reference {
 public:
  // Returns the values from which the next minibatch is computed.
  const std::vector<float>& computed_from() const { return seen_; }
  void Step() {
    const std::vector<float> newest = newest_;
    for (size_t i = 0; i < newest_.size(); ++i) newest_[i] -= kRate * (seen_[i] - static_cast<float>(i + 1));
    seen_ = newest;
  }
  void FinishPending() { seen_ = newest_; }

 private:
  std::vector<float> newest_ = std::vector<float>(12);
  std::vector<float> seen_ = newest_;
};

// Instances differ by the number of ps and by whether pushes have a thread.
class PipelinedTest : public ::testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  static int num_ps() { return std::get<0>(GetParam()); }
  static bool thread() { return std::get<1>(GetParam()); }
};

TEST_P(PipelinedTest, OneWorkerIsGradientDescentWithADelayOfOne) {
  SimulatedStore store(num_ps(), {"worker:0"});
  Trainee trainee(store, "worker:0", true, thread());
  Reference reference;
  for (int step = 1; step <= 30; ++step) {
    EXPECT_EQ(trainee.source.values(0), reference.computed_from()) << step;
    const StepResult result = trainee.Step();
    EXPECT_EQ(result.global_step, step);
    // It is that of the previous push. The first push, and the first after a pause, were computed from the newest
    // values.
    EXPECT_EQ(result.staleness, step <= 2 || step == 12 || step == 13 ? 0U : 1U) << step;
    reference.Step();
    if (step != 11) continue;
    ASSERT_EQ(trainee.algorithm.FinishPending(*trainee.client), absl::OkStatus());
    EXPECT_FALSE(trainee.algorithm.busy());
    EXPECT_EQ(*trainee.client->ReadGlobalStep(), step);
    reference.FinishPending();
  }
  EXPECT_EQ(trainee.source.values(1), std::vector<float>(2)) << "frozen";
  ASSERT_EQ(trainee.algorithm.FinishPending(*trainee.client), absl::OkStatus());
  EXPECT_EQ(*trainee.client->ReadGlobalStep(), 30) << "the last push is finished";
}

TEST_P(PipelinedTest, TwoWorkersFindTheOptimum) {
  SimulatedStore store(num_ps(), {"chief:0", "worker:0"});
  Trainee chief(store, "chief:0", true, false);
  Trainee worker(store, "worker:0", false, false);
  for (int step = 0; step < 200; ++step) (step % 2 == 0 ? chief : worker).Step();
  ASSERT_EQ(chief.algorithm.FinishPending(*chief.client), absl::OkStatus());
  ASSERT_EQ(worker.algorithm.FinishPending(*worker.client), absl::OkStatus());
  EXPECT_EQ(*chief.client->ReadGlobalStep(), 200);
  for (size_t i = 0; i < 12; ++i) EXPECT_NEAR(worker.source.values(0)[i], i + 1, 0.01);
}

TEST_P(PipelinedTest, TheChiefsBuffersArePublishedAsTheyWereAfterTheStep) {
  SimulatedStore store(num_ps(), {"chief:0", "worker:0"});
  Trainee chief(store, "chief:0", true, thread());
  Trainee worker(store, "worker:0", false, thread());
  chief.source.values(2) = {1, 2};
  chief.Step();
  chief.source.values(2) = {3, 4};
  ASSERT_EQ(chief.algorithm.FinishPending(*chief.client), absl::OkStatus());
  EXPECT_EQ(chief.source.values(2), (std::vector<float>{3, 4}));
  ASSERT_EQ(worker.client->Pull(PullWhat::kEverything), absl::OkStatus());
  EXPECT_EQ(worker.source.values(2), (std::vector<float>{1, 2}));
}

TEST_P(PipelinedTest, LostAndDoubledPushesCountOnce) {
  for (const FaultKind kind : {FaultKind::kCutRequest, FaultKind::kCutReply, FaultKind::kDuplicateRequest}) {
    for (uint64_t first = 1; first <= 8; ++first) {
      SimulatedStore store(num_ps(), {"worker:0"});
      FaultScript script({{.kind = kind, .first = first, .method = static_cast<uint16_t>(StoreMethod::kPushPull)}});
      Trainee trainee(store, "worker:0", true, thread(), &script);
      Reference reference;
      for (int step = 1; step <= 10; ++step) {
        EXPECT_EQ(trainee.source.values(0), reference.computed_from()) << step;
        EXPECT_EQ(trainee.Step().global_step, step);
        reference.Step();
      }
      ASSERT_EQ(trainee.algorithm.FinishPending(*trainee.client), absl::OkStatus());
      EXPECT_EQ(script.met(), 1U);
      EXPECT_EQ(*trainee.client->ReadGlobalStep(), 10);
    }
  }
}

TEST_P(PipelinedTest, AnErrorOfAPushSurfacesAtTheNextStepAndThePipelineBeginsAnew) {
  SimulatedStore store(num_ps(), {"worker:0"});
  Trainee trainee(store, "worker:0", true, thread());
  trainee.Step();
  trainee.Step();
  ASSERT_EQ(trainee.algorithm.FinishPending(*trainee.client), absl::OkStatus());
  store.LosePs(0);
  store.StartPs(0);
  EXPECT_EQ(trainee.algorithm.Step(*trainee.client).status(), absl::OkStatus());
  EXPECT_EQ(trainee.algorithm.Step(*trainee.client).status().code(), absl::StatusCode::kAborted);
  EXPECT_FALSE(trainee.algorithm.busy());
  trainee.Start(true);
  EXPECT_EQ(trainee.Step().global_step, 1);
  EXPECT_EQ(trainee.Step().global_step, 2);
}

TEST_P(PipelinedTest, AnErrorOfTheSourceLeavesThePushThatIsUnderWay) {
  SimulatedStore store(num_ps(), {"worker:0"});
  Trainee trainee(store, "worker:0", true, thread());
  trainee.Step();
  trainee.source.on_step = [](double) -> absl::StatusOr<double> { return absl::InternalError("the user's own"); };
  EXPECT_EQ(trainee.algorithm.Step(*trainee.client).status(), absl::InternalError("the user's own"));
  ASSERT_EQ(trainee.algorithm.FinishPending(*trainee.client), absl::OkStatus());
  EXPECT_EQ(*trainee.client->ReadGlobalStep(), 1);
}

TEST_P(PipelinedTest, WhoAsksForACheckpointToBeLoadedIsHeardBetweenTwoSteps) {
  SimulatedStore store(num_ps(), {"worker:0"});
  Trainee trainee(store, "worker:0", true, thread());
  trainee.Step();
  ASSERT_EQ(trainee.algorithm.FinishPending(*trainee.client), absl::OkStatus());
  std::vector<StoreCall> calls(1);
  calls[0].method = StoreMethod::kLoadCheckpoint;
  calls[0].control = Encode(LoadCheckpointRequest{"/model/model.ckpt-1"});
  // The answer comes only after the chief has reported: this doesn't wait for it.
  auto pending = store.Client("worker:0", {.patience = absl::Milliseconds(10)});
  EXPECT_FALSE(pending->ps_calls().Ask(calls).ok());
  trainee.Step();
  for (int step = 0; step < 3 && trainee.algorithm.busy(); ++step) trainee.Step();
  EXPECT_FALSE(trainee.algorithm.busy());
  EXPECT_EQ(trainee.client->TakeLoadRequest(), "/model/model.ckpt-1");
}

INSTANTIATE_TEST_SUITE_P(Ps, PipelinedTest, ::testing::Combine(::testing::Values(1, 2), ::testing::Bool()));

}  // namespace
}  // namespace muster::pipelined_test
