// Elastic exchanges against the published equations; each happens once and gets the same answer however often it is
// requested.
#include "muster/store/client/elastic_exchange.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "muster/store/testing/scripted_worker.h"

namespace muster::elastic_exchange_test {
namespace {

const std::vector<VariableSpec> kVariables = {{.name = "w", .shape = {40000}},
                                              {.name = "d", .dtype = DType::kFloat64, .shape = {7}},
                                              {.name = "mean", .shape = {5}, .kind = VariableKind::kBuffer}};
const RuleSpec kAdd = {.kind = RuleKind::kAdd};
const LeaseOptions kLease = {.lease = absl::Hours(1)};
constexpr double kAlpha = 0.3;

TEST(ElasticExchangeTest, CentreAndWorkersMoveByThePapersEquations) {
  SimulatedStore store(2, {"chief:0", "worker:0"}, kLease);
  const Partitioning halves = {.kind = Partitioning::Kind::kFixed, .shards = 2};
  std::vector<std::unique_ptr<WorkerModel>> models;
  std::vector<std::unique_ptr<StoreClient>> clients;
  std::vector<std::unique_ptr<ElasticExchange>> exchanges;
  for (const char* task : {"chief:0", "worker:0"}) {
    models.push_back(std::make_unique<WorkerModel>(kVariables, kAdd, 2, halves));
    models.back()->binding.exchanges = true;
    models.back()->Fill(0);
    clients.push_back(store.Client(task));
    ASSERT_TRUE(clients.back()->Join(clients.size() == 1).ok());
    clients.back()->Bind(models.back()->binding);
    if (clients.size() == 1) {
      ASSERT_TRUE(clients[0]->Initialize(0, 0, nullptr).ok());
    }
    ASSERT_TRUE(clients.back()->AwaitReady(absl::InfiniteFuture()).ok());
    exchanges.push_back(std::make_unique<ElasticExchange>(*clients.back(), kAlpha));
  }
  std::vector<double> centre(7);
  std::vector<std::vector<double>> workers(2, std::vector<double>(7));
  const auto initial = models[0]->Values<double>(1);
  for (size_t i = 0; i < 7; ++i) centre[i] = workers[0][i] = workers[1][i] = initial[i];
  for (int round = 0; round < 6; ++round) {
    const int who = round % 2;
    models[who]->Fill(round + 1);  // it has trained
    workers[who] = models[who]->Values<double>(1);
    const auto before = models[who]->Values<float>(0);
    const auto result = exchanges[who]->Exchange().value();
    EXPECT_EQ(result.global_step, round + 1);
    EXPECT_EQ(models[who]->Values<float>(0), before) << "asked for is not moved";
    exchanges[who]->Move();
    const auto now = models[who]->Values<double>(1);
    for (size_t i = 0; i < 7; ++i) {
      const double force = kAlpha * (workers[who][i] - centre[i]);
      workers[who][i] -= force;
      centre[i] += force;
      EXPECT_NEAR(now[i], workers[who][i], 1e-12);
    }
    EXPECT_NE(models[who]->Values<float>(0), before) << "the large variable moves, too";
  }
  ASSERT_TRUE(clients[0]->Pull(PullWhat::kTrainable).ok());
  const auto pulled = models[0]->Values<double>(1);
  for (size_t i = 0; i < 7; ++i) EXPECT_NEAR(pulled[i], centre[i], 1e-12);
}

TEST(ElasticExchangeTest, ItMovesOnceByWhatWasPushedFromWhereverTheValuesAre) {
  SimulatedStore store(1, {"chief:0"});
  WorkerModel model(kVariables, kAdd, 1);
  model.binding.exchanges = true;
  model.Fill(0);
  const auto client = store.Client("chief:0");
  ASSERT_TRUE(client->Join(true).ok());
  client->Bind(model.binding);
  ASSERT_TRUE(client->Initialize(0, 0, nullptr).ok());
  ASSERT_TRUE(client->AwaitReady(absl::InfiniteFuture()).ok());
  const auto centre = model.Values<double>(1);
  model.Fill(1);
  const auto pushed = model.Values<double>(1);
  ElasticExchange exchange(*client, kAlpha);
  ASSERT_TRUE(exchange.Exchange().ok());
  model.Fill(2);  // a step at the values as they were
  const auto stepped = model.Values<double>(1);
  const auto buffer = model.memory[2];
  exchange.Move();
  const auto moved = model.memory;
  const auto values = model.Values<double>(1);
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], stepped[i] - kAlpha * (pushed[i] - centre[i]), 1e-12);
  EXPECT_EQ(model.memory[2], buffer);
  exchange.Move();
  EXPECT_EQ(model.memory, moved) << "it has moved already";
}

TEST(ElasticExchangeTest, ADroppedExchangeMovesNothing) {
  SimulatedStore store(1, {"chief:0"});
  WorkerModel model(kVariables, kAdd, 1);
  model.binding.exchanges = true;
  model.binding.optimizer.non_finite = NonFinite::kDrop;
  model.Fill(0);
  const auto client = store.Client("chief:0");
  ASSERT_TRUE(client->Join(true).ok());
  client->Bind(model.binding);
  ASSERT_TRUE(client->Initialize(0, 0, nullptr).ok());
  ASSERT_TRUE(client->AwaitReady(absl::InfiniteFuture()).ok());
  ElasticExchange exchange(*client, kAlpha);
  model.Fill(1);
  ASSERT_TRUE(exchange.Exchange().ok());
  // The worker doesn't follow this exchange: the next one starts afresh.
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(model.memory[0].data(), &nan, sizeof nan);
  const auto before = model.memory;
  const auto result = exchange.Exchange().value();
  EXPECT_TRUE(result.dropped);
  exchange.Move();
  EXPECT_EQ(model.memory, before);
}

class ElasticRetryTest : public ::testing::Test {
 protected:
  ElasticRetryTest() {
    model_.binding.exchanges = true;
    for (const char* task : {"chief:0", "worker:0"})
      workers_.push_back(std::make_unique<ScriptedWorker>(store_, task, model_, workers_.empty()));
  }
  PushPullRequest Message(int i) {
    PushPullRequest message = workers_[i]->Message();
    message.pull = PullWhat::kNothing;
    message.exchange = 0.5;
    return message;
  }
  ScriptedWorker::Pending Send(int i, const PushPullRequest& message, double theta) {
    auto answer = workers_[i]->Send(message, theta);
    store_.Pass(absl::Milliseconds(10));
    return answer;
  }
  float Centre() {
    std::vector<float> values(40000);
    store_.service(0).MakeView().arena->Read(0, AsMutableBytes(values.data(), values.size()));
    for (const float value : values) EXPECT_EQ(value, values[0]);
    return values[0];
  }

  SimulatedStore store_{1, {"chief:0", "worker:0"}, kLease};
  WorkerModel model_{{{.name = "w", .shape = {40000}}}, kAdd, 1};
  std::vector<std::unique_ptr<ScriptedWorker>> workers_;
};

TEST_F(ElasticRetryTest, ARetryGetsTheFirstAnswerAlsoFromARestartedPs) {
  const PushPullRequest message = Message(0);
  const auto first = Send(0, message, 8);
  ASSERT_TRUE(first->ok()) << first->status;
  EXPECT_EQ(first->first(), 4.0f);
  // Others move the centre before the lost answer is requested again.
  ASSERT_TRUE(Send(1, Message(1), 2)->ok());
  EXPECT_EQ(Centre(), 3.0f);
  for (const bool restart : {false, true}) {
    if (restart) {
      store_.KillPs(0);
      store_.StartPs(0);
    }
    workers_[0]->BreakConnection(store_);
    const auto again = Send(0, message, 8);
    ASSERT_TRUE(again->ok()) << again->status;
    EXPECT_TRUE(again->values == first->values);
    EXPECT_EQ(Centre(), 3.0f) << "it is done once";
    EXPECT_EQ(again->reply.global_step, 2);
  }
  const auto next = Send(0, Message(0), 5);
  ASSERT_TRUE(next->ok());
  EXPECT_EQ(next->first(), 1.0f);
}

TEST_F(ElasticRetryTest, WhatCanNotBeMeantIsRefused) {
  for (const double alpha : {-0.5, 1.5, std::nan("")}) {
    PushPullRequest message = Message(0);
    message.exchange = alpha;
    EXPECT_TRUE(absl::IsInvalidArgument(Send(0, message, 1)->status)) << alpha;
    workers_[0]->BreakConnection(store_);
  }
  PushPullRequest pulls = Message(0);
  pulls.pull = PullWhat::kTrainable;
  EXPECT_TRUE(absl::IsInvalidArgument(Send(0, pulls, 1)->status));
  PushPullRequest ticks = Message(0);
  ticks.clock = 1;
  EXPECT_TRUE(absl::IsInvalidArgument(Send(0, ticks, 1)->status));
  EXPECT_EQ(Centre(), 0) << "nothing of all that was applied";
  StoreModel model = workers_[0]->client().ModelOf(0);
  EXPECT_TRUE(ValidateModel(model).ok());
  model.clock_limit = 1;
  EXPECT_TRUE(absl::IsInvalidArgument(ValidateModel(model)));
  model.clock_limit = 0;
  model.optimizer.rule.kind = RuleKind::kSgd;
  EXPECT_TRUE(absl::IsInvalidArgument(ValidateModel(model)));
}

}  // namespace
}  // namespace muster::elastic_exchange_test
