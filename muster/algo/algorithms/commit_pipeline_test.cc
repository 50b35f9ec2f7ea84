// What algorithm_mathematics_test.cc doesn't cover: minibatches that fail, values loaded in the middle of a window, the
// end.
#include "muster/algo/algorithms/commit_pipeline.h"

#include <gtest/gtest.h>

#include "muster/algo/sources/quadratic_source.h"
#include "muster/optim/rule_options.h"
#include "muster/store/testing/joining.h"
#include "muster/store/testing/simulated_store.h"

namespace muster::commit_pipeline_test {
namespace {

const std::vector<VariableSpec> kVariables = {{.name = "w", .shape = {4}}};

class CommitPipelineTest : public ::testing::Test {
 protected:
  void Start(const CommitSpec& spec, const OptimizerSpec& server_rule = PlainAdd()) {
    pipeline_.emplace(source_, *PlaceVariables(kVariables, 1, Placement::kRoundRobin, {}), server_rule, spec);
    client_ = store_.Client("worker:0");
    ASSERT_EQ(JoinToTrain(*client_, pipeline_->binding(), /*chief=*/true), absl::OkStatus());
    Begin();
  }
  void Begin() {
    pipeline_->Begin(*client_);
    ASSERT_EQ(client_->Pull(PullWhat::kEverything), absl::OkStatus());
  }
  absl::Status Step() { return pipeline_->Step(*client_).status(); }
  void Steps(int count) {
    for (int i = 0; i < count; ++i) ASSERT_EQ(Step(), absl::OkStatus());
  }
  std::vector<float> Global() {
    const PartSnapshot snapshot = store_.Snapshot(0);
    std::vector<float> values(4);
    std::memcpy(values.data(), snapshot.bytes.data(), values.size() * sizeof(float));
    return values;
  }
  const std::vector<float>& own() { return source_.values(0); }

  SimulatedStore store_{1, {"worker:0"}, {.lease = absl::Hours(1)}};
  QuadraticSource source_{kVariables};
  std::optional<CommitPipeline> pipeline_;
  std::unique_ptr<StoreClient> client_;
};

TEST_F(CommitPipelineTest, WithinAWindowNothingIsSent) {
  Start({.kind = CommitKind::kDelta, .window = 3, .worker_rule = Sgd({.learning_rate = 0.1})});
  const uint64_t calls = TrafficOf(*client_).calls;
  Steps(2);
  EXPECT_EQ(TrafficOf(*client_).calls, calls);
  EXPECT_EQ(Global(), std::vector<float>(4));
  Steps(1);
  EXPECT_EQ(TrafficOf(*client_).calls, calls + 1) << "push and pull are one round trip";
  EXPECT_EQ(Global(), own());
  EXPECT_EQ(pipeline_->window(), 3u);
}

// Before the end FinishPending is called for checkpoints, which hold only what was committed.
TEST_F(CommitPipelineTest, OnlyAfterTheEndALastWindowIsCommitted) {
  Start({.kind = CommitKind::kDelta, .window = 3, .worker_rule = Sgd({.learning_rate = 0.1})});
  Steps(4);
  ASSERT_EQ(pipeline_->FinishPending(*client_), absl::OkStatus());
  EXPECT_NE(Global(), own());
  pipeline_->End();
  ASSERT_EQ(pipeline_->FinishPending(*client_), absl::OkStatus());
  EXPECT_EQ(Global(), own());
  EXPECT_EQ(client_->global_step(), 2);
}

TEST_F(CommitPipelineTest, WhoFetchesSeldomHasTheGlobalValuesAtTheEndAllTheSame) {
  Start({.window = 3, .fetch_window = 2, .worker_rule = Sgd({.learning_rate = 0.3})}, Sgd({.learning_rate = 0.1}));
  Steps(3);
  EXPECT_NE(Global(), own()) << "the commit has pulled nothing";
  pipeline_->End();
  ASSERT_EQ(pipeline_->FinishPending(*client_), absl::OkStatus());
  EXPECT_EQ(Global(), own());
  EXPECT_EQ(client_->global_step(), 1) << "there was nothing to commit";
  const uint64_t calls = TrafficOf(*client_).calls;
  ASSERT_EQ(pipeline_->FinishPending(*client_), absl::OkStatus());  // as for the last checkpoint
  EXPECT_EQ(TrafficOf(*client_).calls, calls) << "the end comes once";
}

TEST_F(CommitPipelineTest, AMinibatchThatFailsLeavesTheLookAheadUndoneAndTheExchangeDone) {
  Start({.kind = CommitKind::kExchange,
         .window = 1,
         .worker_rule = Sgd({.learning_rate = 0.1}),
         .alpha = 0.5,
         .momentum = 0.5});
  Steps(2);
  const std::vector<float> before = own(), centre = Global();
  source_.on_step = [](double) { return absl::InternalError("no such minibatch"); };
  EXPECT_TRUE(absl::IsInternal(Step()));
  for (size_t i = 0; i < before.size(); ++i) {
    const float moved = 0.5f * (before[i] - centre[i]);
    EXPECT_NEAR(own()[i], before[i] - moved, 1e-6);
    EXPECT_NEAR(Global()[i], centre[i] + moved, 1e-6);
  }
  source_.on_step = {};
  Steps(1);
}

TEST_F(CommitPipelineTest, ValuesThatAreLoadedBeginANewWindow) {
  Start({.kind = CommitKind::kDelta, .window = 3, .worker_rule = Sgd({.learning_rate = 0.1})});
  Steps(2);
  // Like the chief's session: gives other values to the ps and pulls them.
  source_.values(0) = {7, 7, 7, 7};
  ASSERT_EQ(client_->Initialize(/*global_step=*/40, /*minibatches=*/0, nullptr), absl::OkStatus());
  ASSERT_TRUE(client_->AwaitReady(absl::InfiniteFuture()).ok());
  ASSERT_EQ(client_->Pull(PullWhat::kEverything), absl::OkStatus());
  Steps(2);
  EXPECT_EQ(Global(), std::vector<float>(4, 7)) << "the two minibatches before are forgotten";
  Steps(1);
  EXPECT_EQ(Global(), own());
  EXPECT_EQ(client_->global_step(), 41);
}

// A Ctrl-C comes while the ps, which has applied the commit, holds its answer back.
TEST(InterruptedCommitTest, ItIsNotSentAgainAtTheEnd) {
  SimulatedStore store{1, {"worker:0", "worker:1"}, {.lease = absl::Hours(1)}};
  const PlacementResult placement = *PlaceVariables(kVariables, 1, Placement::kRoundRobin, {});
  const CommitSpec spec = {.window = 2, .staleness_bound = 1};
  QuadraticSource source{kVariables}, slow_source{kVariables};
  CommitPipeline pipeline(source, placement, Sgd({.learning_rate = 0.1}), spec);
  CommitPipeline slow_pipeline(slow_source, placement, Sgd({.learning_rate = 0.1}), spec);
  bool stop = false;
  const std::unique_ptr<StoreClient> client = store.Client("worker:0", {.stop_requested = [&stop] { return stop; }});
  const std::unique_ptr<StoreClient> slow = store.Client("worker:1");
  ASSERT_EQ(JoinToTrain(*client, pipeline.binding(), /*chief=*/true), absl::OkStatus());
  ASSERT_EQ(JoinToTrain(*slow, slow_pipeline.binding(), /*chief=*/false), absl::OkStatus());
  pipeline.Begin(*client);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(pipeline.Step(*client).status(), absl::OkStatus());
  store.loop.CallAt(store.loop.Now() + absl::Seconds(1), [&stop] { stop = true; });
  ASSERT_TRUE(absl::IsCancelled(pipeline.Step(*client).status())) << "worker:1 has made no commit";
  const std::vector<std::byte> values = store.Snapshot(0).bytes;
  const uint64_t calls = TrafficOf(*client).calls;
  pipeline.End();
  EXPECT_EQ(pipeline.FinishPending(*client), absl::OkStatus());
  store.Pass(absl::Seconds(1));
  EXPECT_EQ(TrafficOf(*client).calls, calls);
  EXPECT_EQ(store.Snapshot(0).bytes, values);
  EXPECT_EQ(store.service(0).MakeView().arena->header().counters.updates, 2u);
}

TEST_F(CommitPipelineTest, TheScaleComesBeforeClippingByTheNorm) {
  OptimizerSpec clipped = Sgd({.learning_rate = 1, .clip = {.kind = ClipKind::kGlobalNorm, .limit = 1}});
  Start({.scale = 0.01}, clipped);  // the gradient's norm is √30
  Steps(1);
  EXPECT_NEAR(Global()[3], 0.04, 1e-6) << "0.01 · √30 is below the limit";
}

}  // namespace
}  // namespace muster::commit_pipeline_test
