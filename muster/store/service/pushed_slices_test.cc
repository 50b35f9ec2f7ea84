// Pushes that are scaled by their staleness: the ps takes the scale and the version at one moment, whoever else pushes,
// and applies a push once however often it comes. Pulled copies: pulled_copy_test.cc.
#include "muster/store/service/pushed_slices.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "muster/store/testing/joining.h"
#include "muster/store/testing/scripted_worker.h"

namespace muster::pushed_slices_test {
namespace {

using ::testing::HasSubstr;
using Pending = ScriptedWorker::Pending;

const std::vector<VariableSpec> kVariables = {{.name = "d", .dtype = DType::kFloat64, .shape = {20000}}};
const std::vector<std::string> kTasks = {"worker:0", "worker:1", "worker:2"};
const LeaseOptions kLease = {.lease = absl::Hours(1)};
constexpr double kRate = 0.25;

// The scale of DynSGD, and that of staleness-aware async-SGD.
double Scale(StalenessScale scale, uint64_t staleness) {
  const auto tau = static_cast<double>(staleness);
  if (scale == StalenessScale::kInverseAfterThis) return 1 / (tau + 1);
  return scale == StalenessScale::kInverse && staleness > 0 ? 1 / tau : 1;
}

// Returns the first and the last element of two stripes.
std::vector<double> Ends(const std::vector<std::byte>& values) {
  std::vector<double> ends(2);
  std::memcpy(ends.data(), values.data(), sizeof(double));
  std::memcpy(ends.data() + 1, values.data() + values.size() - sizeof(double), sizeof(double));
  return ends;
}

struct ScaledRule {
  const char* name;
  RuleSpec rule;
  double rate;  // the gradient's factor
};

class StalenessScaleTest : public ::testing::TestWithParam<StalenessScale> {};

TEST_P(StalenessScaleTest, IsTakenWithTheVersionThatIsAnswered) {
  for (const ScaledRule& with :
       {ScaledRule{"sgd", {.learning_rate = kRate}, -kRate}, ScaledRule{"add", {.kind = RuleKind::kAdd}, 1}}) {
    SimulatedStore store(1, kTasks, kLease);
    WorkerModel model(kVariables, with.rule, 1);
    std::vector<std::unique_ptr<ScriptedWorker>> workers;
    for (const std::string& task : kTasks)
      workers.push_back(std::make_unique<ScriptedWorker>(store, task, model, workers.empty()));
    double value = 0;
    uint64_t version = 0;
    uint64_t stalest = 0;
    std::vector<uint64_t> pulled(kTasks.size());
    std::minstd_rand random(20240611);
    for (int step = 0; step < 60; ++step) {
      const size_t who = random() % kTasks.size();
      PushPullRequest message = workers[who]->Message();
      message.pulled_version = pulled[who];
      message.staleness_scale = GetParam();
      const double gradient = 1 + step % 7;
      const Pending answer = workers[who]->Send(message, gradient);
      store.Pass(absl::Milliseconds(10));
      ASSERT_TRUE(answer->ok()) << answer->status;
      const uint64_t staleness = version - pulled[who];
      stalest = std::max(stalest, staleness);
      value += with.rate * Scale(GetParam(), staleness) * gradient;
      ++version;
      EXPECT_EQ(answer->reply.staleness, staleness);
      EXPECT_EQ(answer->reply.version, version);
      for (const double end : Ends(answer->values)) ASSERT_NEAR(end, value, 1e-9) << with.name << " " << step;
      // Some continue to compute with older values.
      if (random() % 3 == 0) pulled[who] = version;
      if (random() % 4 != 0) continue;
      const Pending again = workers[who]->Send(message, gradient);
      store.Pass(absl::Milliseconds(10));
      ASSERT_TRUE(again->ok()) << again->status;
      EXPECT_EQ(again->reply.version, version) << "a retry is no update";
      for (const double end : Ends(again->values)) ASSERT_NEAR(end, value, 1e-9) << with.name << " " << step;
    }
    EXPECT_GT(stalest, 3u);
    workers.clear();
  }
}

INSTANTIATE_TEST_SUITE_P(All, StalenessScaleTest,
                         ::testing::Values(StalenessScale::kNone, StalenessScale::kInverseAfterThis,
                                           StalenessScale::kInverse));

// A push that comes again is scaled once, even by another life of the ps and after others have pushed.
TEST(PushedSlicesTest, APushThatComesAgainIsScaledOnce) {
  SimulatedStore store(1, kTasks, kLease);
  WorkerModel model(kVariables, {.learning_rate = kRate}, 1);
  ScriptedWorker late(store, kTasks[0], model, /*chief=*/true);
  ScriptedWorker other(store, kTasks[1], model);
  PushPullRequest message = late.Message();
  message.staleness_scale = StalenessScale::kInverseAfterThis;
  late.Send(message, 8);
  store.Pass(absl::Milliseconds(10));
  const Pending between = other.Send(other.Message(), 0);
  store.Pass(absl::Milliseconds(10));
  ASSERT_TRUE(between->ok());
  store.KillPs(0);
  store.StartPs(0);
  late.BreakConnection(store);
  const Pending again = late.Send(message, 8);
  store.Pass(absl::Milliseconds(10));
  ASSERT_TRUE(again->ok()) << again->status;
  EXPECT_THAT(Ends(again->values), ::testing::Each(-8 * kRate)) << "not once more, by a scale of 1/2 or 1/3";
  EXPECT_EQ(again->reply.version, 2u);
}

TEST(PushedSlicesTest, AClientsUpdatesAreScaledOnEveryPs) {
  SimulatedStore store(2, kTasks, kLease);
  const Partitioning halves = {.kind = Partitioning::Kind::kFixed, .shards = 2};
  std::vector<std::unique_ptr<WorkerModel>> models;
  std::vector<std::unique_ptr<StoreClient>> clients;
  for (int i = 0; i < 2; ++i) {
    models.push_back(std::make_unique<WorkerModel>(kVariables, RuleSpec{.learning_rate = kRate}, 2, halves));
    models[i]->binding.staleness_scale = StalenessScale::kInverseAfterThis;
    clients.push_back(store.Client(kTasks[i]));
    ASSERT_EQ(JoinToTrain(*clients[i], models[i]->binding, i == 0), absl::OkStatus());
  }
  const std::vector<double> ones(20000, 1);
  const auto gradient = [&](size_t) { return AsBytes(ones.data(), ones.size()); };
  ASSERT_EQ(clients[0]->PushPull(gradient, {}).status(), absl::OkStatus());
  const auto second = clients[1]->PushPull(gradient, {}).value();
  EXPECT_EQ(second.staleness, 1u);
  EXPECT_THAT(models[1]->Values<double>(0), ::testing::Each(-kRate * 1.5));
}

absl::Status Answer(SimulatedStore& store, ScriptedWorker& worker, const PushPullRequest& message) {
  worker.BreakConnection(store);
  const Pending answer = worker.Send(message, 1);
  store.Pass(absl::Milliseconds(10));
  return answer->there ? answer->status : absl::UnavailableError("no answer");
}

TEST(PushedSlicesTest, ScalesThatCanNotBeMeantAreRefused) {
  SimulatedStore store(1, kTasks, kLease);
  WorkerModel model(kVariables, {.learning_rate = kRate}, 1);
  ScriptedWorker worker(store, kTasks[0], model, /*chief=*/true);
  PushPullRequest unknown = worker.Message();
  unknown.staleness_scale = static_cast<StalenessScale>(3);
  const absl::Status refused = Answer(store, worker, unknown);
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("unknown scale by staleness 3; accepted: 0 none"));
  PushPullRequest part = worker.Message();
  part.minibatches = 0;
  part.update = true;
  part.part = UpdatePart::kOpen;
  part.staleness_scale = StalenessScale::kInverse;
  EXPECT_THAT(std::string(Answer(store, worker, part).message()), HasSubstr("comes in parts only without"));
}

TEST(PushedSlicesTest, WholeNumbersAreNotScaled) {
  SimulatedStore store(1, kTasks, kLease);
  WorkerModel model({{.name = "n", .dtype = DType::kInt64, .shape = {2}}}, {.kind = RuleKind::kAdd}, 1);
  ScriptedWorker worker(store, kTasks[0], model, /*chief=*/true);
  model.binding.staleness_scale = StalenessScale::kInverse;
  worker.client().Bind(model.binding);
  ASSERT_TRUE(worker.client().AwaitReady(absl::InfiniteFuture()).ok());
  const absl::Status refused = worker.client().PushPull([&](size_t) { return ByteSpan(model.memory[0]); }, {}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("'n' is of whole numbers"));
}

TEST(PushedSlicesTest, RoundsAndExchangesAreNotScaled) {
  for (const bool gated : {true, false}) {
    SimulatedStore store(1, kTasks, kLease);
    WorkerModel model(kVariables, {.kind = RuleKind::kAdd}, 1);
    if (gated) model.binding.gate = {GateKind::kSynchronous, 1, 1, false};
    model.binding.exchanges = !gated;
    ScriptedWorker worker(store, kTasks[0], model, /*chief=*/true);
    PushPullRequest message = worker.Message();
    message.contributes = gated;
    if (!gated) {
      message.exchange = 0.5;
      message.pull = PullWhat::kNothing;
    }
    message.staleness_scale = StalenessScale::kInverse;
    const absl::Status refused = Answer(store, worker, message);
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("scale by staleness"));
  }
}

}  // namespace
}  // namespace muster::pushed_slices_test
