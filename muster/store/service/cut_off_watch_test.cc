#include "muster/store/service/cut_off_watch.h"

#include <gmock/gmock.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/store/client/checkpoint_calls.h"
#include "muster/store/client/cut_leader.h"
#include "muster/store/client/row_client.h"
#include "muster/store/service/passing_handler.h"
#include "muster/store/testing/direct_worker.h"
#include "muster/store/testing/joining.h"
#include "muster/store/testing/scripted_worker.h"

namespace muster::cut_off_watch_test {
namespace {

using ::testing::HasSubstr;

// Lets the ps take all connections for those of its own host.
class OnOneHost final : public PassingHandler {
 public:
  using PassingHandler::PassingHandler;
  void OnConnect(ConnectionId connection, const std::string&) override { inner_.OnConnect(connection, "127.0.0.1:1"); }
};

// A ps whose supervisor is heard when the test says so; `one_host`: so are its workers.
class CutOffWatchTest : public ::testing::TestWithParam<ApplyChoice> {
 protected:
  void Start(bool one_host = true) {
    if (one_host) store_.wrap = [](StoreService& service) { return std::make_unique<OnOneHost>(service); };
    store_.supervisor_count = [this]() -> std::optional<uint64_t> { return count_; };
    store_.KillPs(0);
    store_.StartPs(0);
  }
  void HearIn(absl::Duration wait) {
    store_.loop.CallAt(store_.loop.Now() + wait, [this] { ++count_; });
  }
  // Until the ps has noticed.
  void BeSilent() { store_.Pass(CutOffWatch::kAfter + 2 * CutOffWatch::kPeriod); }

  SimulatedStore store_{1, {"worker:0", "worker:1"}, kUnrenewedLease, nullptr, /*direct=*/true};
  uint64_t count_ = 1;
};

TEST_P(CutOffWatchTest, NoUpdateIsAcknowledgedUntilSomebodyIsHeard) {
  Start();
  DirectWorker worker(store_, "worker:0", true, GetParam(), kPlain);
  ASSERT_EQ(worker.ready, absl::OkStatus());
  ASSERT_TRUE(worker.Push(1).ok());
  BeSilent();
  const absl::Time heard = store_.loop.Now() + absl::Seconds(2);
  HearIn(absl::Seconds(2));
  const auto pushed = worker.Push(1);
  ASSERT_TRUE(pushed.ok()) << pushed.status();
  EXPECT_EQ(pushed->global_step, 2);
  EXPECT_GE(store_.loop.Now(), heard);
  const absl::Time before = store_.loop.Now();
  EXPECT_TRUE(worker.Push(1).ok());
  EXPECT_LT(store_.loop.Now(), before + absl::Seconds(1)) << "it is held still";
}

TEST_P(CutOffWatchTest, NoPushOfRowsIsAcknowledgedUntilSomebodyIsHeard) {
  Start();
  WorkerModel model({{.name = "w", .shape = {4}},
                     {.name = "table",
                      .shape = {20, 2},
                      .kind = VariableKind::kRows,
                      .table = {.initial = RowInitializer::Uniform(-1, 1, 7)}}},
                    {.kind = RuleKind::kSgd, .learning_rate = 1}, 1);
  model.memory[1] = {};
  model.binding.values[1] = {};
  const auto client = store_.Client("worker:0", {.patience = absl::Seconds(20), .apply = GetParam()});
  ASSERT_EQ(JoinToTrain(*client, model.binding, /*chief=*/true), absl::OkStatus());
  RowClient rows(*client);
  const std::vector<int64_t> indices = {3, 17};
  const std::vector<float> gradients(4, 1);
  const auto push = [&] {
    return rows.Push("table", {indices, DType::kFloat32, AsBytes(gradients.data(), gradients.size())}).status();
  };
  const auto gather = [&] {
    std::vector<float> values(4);
    EXPECT_EQ(rows.Gather("table", {indices, DType::kFloat32, AsMutableBytes(values.data(), values.size())}),
              absl::OkStatus());
    return values;
  };
  const std::vector<float> first = gather();
  BeSilent();
  EXPECT_EQ(gather(), first) << "reading goes on";
  const absl::Time heard = store_.loop.Now() + absl::Seconds(2);
  HearIn(absl::Seconds(2));
  EXPECT_EQ(push(), absl::OkStatus());
  EXPECT_GE(store_.loop.Now(), heard);
  const absl::Time before = store_.loop.Now();
  EXPECT_EQ(push(), absl::OkStatus());
  EXPECT_LT(store_.loop.Now(), before + absl::Seconds(1)) << "it is held still";
  const std::vector<float> last = gather();
  for (size_t i = 0; i < first.size(); ++i) EXPECT_FLOAT_EQ(last[i], first[i] - 2);
}

TEST_F(CutOffWatchTest, AWorkerOfAnotherHostThatIsHeardIsEnough) {
  Start(/*one_host=*/false);
  DirectWorker worker(store_, "worker:0", true, ApplyChoice::kServer, kPlain);
  ASSERT_EQ(worker.ready, absl::OkStatus());
  for (int i = 0; i < 10; ++i) {
    store_.Pass(absl::Seconds(2));
    ASSERT_TRUE(worker.client->Pull(PullWhat::kEverything).ok());
  }
  const absl::Time before = store_.loop.Now();
  EXPECT_TRUE(worker.Push(1).ok());
  EXPECT_LT(store_.loop.Now(), before + absl::Seconds(1));
}

TEST_P(CutOffWatchTest, NoCheckpointIsCutMeanwhile) {
  Start();
  DirectWorker worker(store_, "worker:0", true, GetParam(), kPlain);
  ASSERT_EQ(worker.ready, absl::OkStatus());
  BeSilent();
  const auto refused = CutCheckpoint(*worker.client);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("cut off from the other hosts"));
  const absl::Time heard = store_.loop.Now() + absl::Seconds(2);
  HearIn(absl::Seconds(2));
  EXPECT_TRUE(worker.Push(1).ok());
  EXPECT_GE(store_.loop.Now(), heard) << "the failed cut has released it";
  EXPECT_TRUE(CutCheckpoint(*worker.client).ok());
}

TEST_P(CutOffWatchTest, LoadingValuesDoesNotLetUpdatesThrough) {
  Start();
  DirectWorker worker(store_, "worker:0", true, GetParam(), kPlain);
  ASSERT_EQ(worker.ready, absl::OkStatus());
  BeSilent();
  ASSERT_EQ(worker.client->Initialize(10, 0, nullptr), absl::OkStatus());
  ASSERT_EQ(worker.client->AwaitReady(absl::InfiniteFuture()).status(), absl::OkStatus());
  ASSERT_EQ(worker.client->Pull(PullWhat::kEverything), absl::OkStatus());
  const absl::Time heard = store_.loop.Now() + absl::Seconds(2);
  HearIn(absl::Seconds(2));
  const auto pushed = worker.Push(1);
  ASSERT_TRUE(pushed.ok()) << pushed.status();
  EXPECT_EQ(pushed->global_step, 11);
  EXPECT_GE(store_.loop.Now(), heard);
}

TEST_P(CutOffWatchTest, AHostThatNobodyAsksForCountsAsHeard) {
  store_.wrap = [](StoreService& service) { return std::make_unique<OnOneHost>(service); };
  store_.supervisor_count = []() -> std::optional<uint64_t> { return std::nullopt; };
  store_.KillPs(0);
  store_.StartPs(0);
  DirectWorker worker(store_, "worker:0", true, GetParam(), kPlain);
  ASSERT_EQ(worker.ready, absl::OkStatus());
  BeSilent();
  const absl::Time before = store_.loop.Now();
  EXPECT_TRUE(worker.Push(1).ok());
  EXPECT_LT(store_.loop.Now(), before + absl::Seconds(1));
}
INSTANTIATE_TEST_SUITE_P(, CutOffWatchTest, ::testing::Values(ApplyChoice::kDirect, ApplyChoice::kServer),
                         [](const auto& way) { return way.param == ApplyChoice::kDirect ? "Direct" : "Server"; });

TEST_F(CutOffWatchTest, ARoundOfASynchronousGateDoesNotFire) {
  Start();
  WorkerModel model({{.name = "w", .shape = {4}}}, {.kind = RuleKind::kSgd, .learning_rate = 1}, 1);
  model.binding.gate = {.kind = GateKind::kSynchronous, .replicas_to_aggregate = 2, .total_replicas = 2};
  ScriptedWorker chief(store_, "worker:0", model, true);
  ScriptedWorker other(store_, "worker:1", model);
  BeSilent();
  const auto first = chief.Contribute(1, 0), second = other.Contribute(1, 0);
  store_.Pass(absl::Seconds(2));
  EXPECT_FALSE(first->there || second->there);
  ++count_;
  store_.Pass(absl::Seconds(1));
  EXPECT_TRUE(first->ok() && second->ok()) << first->status << second->status;
}

}  // namespace
}  // namespace muster::cut_off_watch_test
