// Bounded staleness: no client is answered while it is further than the bound ahead of the slowest present one.
#include "muster/store/gates/staleness_clock.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "muster/store/service/store_status.h"
#include "muster/store/testing/scripted_worker.h"

namespace muster::staleness_clock_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr;
using Pending = ScriptedWorker::Pending;

const std::vector<VariableSpec> kVariables = {{.name = "w", .shape = {4}}};
const std::vector<std::string> kTasks = {"worker:0", "worker:1", "worker:2"};
const LeaseOptions kLease = {.lease = absl::Hours(1), .disconnect_grace = absl::Seconds(3)};

class StalenessClockTest : public ::testing::Test {
 protected:
  void Start(uint64_t bound) {
    model_.binding.clock_limit = bound + 1;
    for (size_t i = 0; i < kTasks.size(); ++i)
      workers_.push_back(std::make_unique<ScriptedWorker>(store_, kTasks[i], model_, i == 0));
  }
  Pending Tick(int i, uint64_t clock) {
    Pending answer = workers_[i]->Tick(clock);
    store_.Pass(absl::Milliseconds(10));
    return answer;
  }
  nlohmann::json Status() { return nlohmann::json::parse(StatusJson(store_.service(0).MakeView())); }

  SimulatedStore store_{1, kTasks, kLease};
  WorkerModel model_{kVariables, {.learning_rate = 1}, 1};
  std::vector<std::unique_ptr<ScriptedWorker>> workers_;
};

TEST_F(StalenessClockTest, WhoIsTooFarAheadWaitsForTheSlowestAndReadsItsUpdate) {
  Start(1);
  EXPECT_TRUE(Tick(0, 1)->ok());
  const Pending ahead = Tick(0, 2);
  EXPECT_FALSE(ahead->there);
  EXPECT_TRUE(Tick(1, 1)->ok());
  EXPECT_FALSE(ahead->there) << "worker:2 is still at 0";
  EXPECT_TRUE(Tick(2, 1)->ok());
  ASSERT_TRUE(ahead->ok());
  EXPECT_EQ(ahead->reply.clock, 2u);
  EXPECT_EQ(ahead->reply.version, 4u);
  EXPECT_EQ(ahead->first(), -4.0f);
  EXPECT_EQ(Status()["staleness_bound"], 1);
}

TEST_F(StalenessClockTest, NobodyIsEverMoreThanTheBoundAhead) {
  constexpr uint64_t kBound = 2;
  Start(kBound);
  std::minstd_rand random(20240601);
  std::vector<uint64_t> clocks(3);
  std::vector<Pending> answers(3);
  int waited = 0;
  for (int step = 0; step < 600; ++step) {
    // Worker 0 is three times as fast.
    const int i = std::array{0, 0, 0, 1, 2}[random() % 5];
    if (answers[i] && !answers[i]->ok()) {
      ++waited;
      continue;
    }
    answers[i] = Tick(i, ++clocks[i]);
    const uint64_t slowest = *std::min_element(clocks.begin(), clocks.end());
    for (int k = 0; k < 3; ++k) {
      if (answers[k] == nullptr) continue;
      EXPECT_EQ(answers[k]->ok(), clocks[k] <= slowest + kBound) << "worker:" << k << " at " << clocks[k];
    }
  }
  EXPECT_GT(waited, 50);
}

TEST_F(StalenessClockTest, ADeadWorkerIsNotWaitedForAndComesBackWhereTheSlowestIs) {
  Start(0);
  const Pending first = Tick(0, 1);
  const Pending second = Tick(1, 1);
  EXPECT_FALSE(first->there);
  EXPECT_THAT(Status()["clients"][0]["waiting_for"].get<std::string>(),
              AllOf(HasSubstr("clock 1"), HasSubstr("worker:2 (at 0)")));
  workers_[2].reset();
  store_.Pass(absl::Seconds(4));
  ASSERT_TRUE(first->ok() && second->ok());
  for (uint64_t clock = 2; clock <= 10; ++clock) {
    const Pending a = Tick(0, clock);
    const Pending b = Tick(1, clock);
    ASSERT_TRUE(a->ok() && b->ok());
  }
  workers_[2] = std::make_unique<ScriptedWorker>(store_, kTasks[2], model_);
  ASSERT_TRUE(workers_[2]->client().AwaitReady(absl::InfiniteFuture()).ok());
  ASSERT_EQ(workers_[2]->client().Pull(PullWhat::kTrainable), absl::OkStatus());
  EXPECT_EQ(workers_[2]->client().clock(), 10u);
  const Pending a = Tick(0, 11);
  EXPECT_TRUE(Tick(1, 11) && !a->there) << "it is there again, and is waited for";
  workers_[2]->sequence = 100;
  EXPECT_TRUE(Tick(2, 11)->ok());
  EXPECT_TRUE(a->ok());
}

TEST_F(StalenessClockTest, ClocksOutliveThePsAndARetryIsAppliedOnce) {
  Start(0);
  PushPullRequest message = workers_[0]->Message();
  message.clock = 1;
  workers_[0]->Send(message, 1);
  Tick(1, 1);
  store_.KillPs(0);
  store_.StartPs(0);
  store_.Pass(absl::Seconds(1));
  const Pending again = workers_[0]->Send(message, 1);
  store_.Pass(absl::Milliseconds(10));
  EXPECT_FALSE(again->there);
  EXPECT_EQ(Status()["version"], 2);
  EXPECT_TRUE(Tick(2, 1)->ok());
  ASSERT_TRUE(again->ok()) << again->status;
  EXPECT_EQ(again->first(), -3.0f);
}

TEST_F(StalenessClockTest, WhoIsDoneIsNotWaitedFor) {
  Start(0);
  const Pending first = Tick(0, 1);
  Tick(1, 1);
  EXPECT_EQ(workers_[2]->client().Done(), absl::OkStatus());
  store_.Pass(absl::Milliseconds(10));
  EXPECT_TRUE(first->ok());
}

}  // namespace
}  // namespace muster::staleness_clock_test
