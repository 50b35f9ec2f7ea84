// Barriers: a client that arrives waits until enough others have, whatever happens to connections and processes
// meanwhile.
#include "muster/store/gates/barriers.h"

#include <gmock/gmock.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "muster/store/service/store_status.h"
#include "muster/store/testing/scripted_worker.h"

namespace muster::barriers_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr;
using Pending = ScriptedWorker::Pending;

const std::vector<VariableSpec> kVariables = {{.name = "w", .shape = {4}}};
const std::vector<std::string> kTasks = {"worker:0", "worker:1", "worker:2"};
const LeaseOptions kLease = {.lease = absl::Hours(1), .disconnect_grace = absl::Seconds(3)};

class BarriersTest : public ::testing::Test {
 protected:
  BarriersTest() {
    for (size_t i = 0; i < kTasks.size(); ++i)
      workers_.push_back(std::make_unique<ScriptedWorker>(store_, kTasks[i], model_, i == 0));
  }
  ~BarriersTest() override { workers_.clear(); }
  Pending Arrive(int i, const std::string& name, uint32_t parties, bool elastic = false) {
    Pending answer = workers_[i]->Barrier(name, parties, elastic);
    store_.Pass(absl::Milliseconds(10));
    return answer;
  }

  SimulatedStore store_{1, kTasks, kLease};
  WorkerModel model_{kVariables, {}, 1};
  std::vector<std::unique_ptr<ScriptedWorker>> workers_;
};

TEST_F(BarriersTest, OpensWhenAllAreThereAndCanBeUsedAgain) {
  for (int use = 0; use < 3; ++use) {
    const Pending first = Arrive(0, "epoch", 2);
    EXPECT_FALSE(first->there);
    const Pending other = Arrive(2, "another", 3);
    EXPECT_FALSE(first->there) << "a barrier of another name";
    const Pending second = Arrive(1, "epoch", 2);
    EXPECT_TRUE(first->ok() && second->ok());
    EXPECT_FALSE(other->there);
    workers_[2]->BreakConnection(store_);
    store_.Pass(absl::Milliseconds(10));
  }
}

TEST_F(BarriersTest, AClientCountsOnceHoweverOftenItAsks) {
  BarrierRequest message{workers_[0]->client().MakeStamp(0, 0), "epoch", 2};
  message.stamp.sequence = 7;
  workers_[0]->Send(message);
  store_.Pass(absl::Milliseconds(10));
  workers_[0]->BreakConnection(store_);
  const Pending again = workers_[0]->Send(message);
  store_.Pass(absl::Milliseconds(10));
  EXPECT_FALSE(again->there);
  EXPECT_TRUE(Arrive(1, "epoch", 2)->ok());
  EXPECT_TRUE(again->ok());
  // The answer is lost: the others have gone on, and it isn't kept for the next use.
  const Pending late = workers_[0]->Send(message);
  store_.Pass(absl::Milliseconds(10));
  EXPECT_TRUE(late->ok());
  EXPECT_FALSE(Arrive(1, "epoch", 2)->there);
}

TEST_F(BarriersTest, AnAnswerGoesToEveryConnectionOnWhichItWasAsked) {
  BarrierRequest message{workers_[0]->client().MakeStamp(0, 0), "epoch", 2};
  message.stamp.sequence = 7;
  // As after a break that the client has seen and the ps hasn't: nobody here knows on which of the two the client
  // listens.
  const Pending one = workers_[0]->Send(message);
  const Pending other = workers_[0]->Send(message);
  store_.Pass(absl::Milliseconds(10));
  EXPECT_FALSE(one->there || other->there);
  EXPECT_TRUE(Arrive(1, "epoch", 2)->ok());
  EXPECT_TRUE(one->ok()) << one->status;
  EXPECT_TRUE(other->ok()) << other->status;
}

TEST_F(BarriersTest, AProcessThatWasReplacedIsToldSoAndCountsNoMore) {
  SimulatedStore store(1, kTasks, {.lease = absl::Seconds(10)});
  ScriptedWorker chief(store, "worker:0", model_, /*chief=*/true);
  ScriptedWorker stopped(store, "worker:1", model_);
  ScriptedWorker third(store, "worker:2", model_);
  const Pending left = stopped.Barrier("end", 2);
  store.Pass(absl::Seconds(11));
  ScriptedWorker next(store, "worker:1", model_);
  store.Pass(absl::Milliseconds(10));
  ASSERT_TRUE(left->there) << "its connection is still there, and it would wait for ever";
  EXPECT_TRUE(absl::IsFailedPrecondition(left->status)) << left->status;
  const Pending first = third.Barrier("end", 2);
  store.Pass(absl::Milliseconds(10));
  EXPECT_FALSE(first->there) << "the next process has not come yet";
  const Pending second = next.Barrier("end", 2);
  store.Pass(absl::Milliseconds(10));
  EXPECT_TRUE(first->ok() && second->ok());
}

TEST_F(BarriersTest, AnElasticBarrierWaitsForThoseWhoAreThere) {
  const Pending first = Arrive(0, "epoch", 3, true);
  const Pending second = Arrive(1, "epoch", 3, true);
  EXPECT_FALSE(first->there);
  workers_[2].reset();
  store_.Pass(absl::Seconds(4));
  EXPECT_TRUE(first->ok() && second->ok());
  EXPECT_EQ(workers_[1]->client().Done(), absl::OkStatus());
  EXPECT_TRUE(Arrive(0, "epoch", 3, true)->ok());
}

TEST_F(BarriersTest, SaysWhoIsMissingAndSinceWhen) {
  Arrive(0, "epoch", 3);
  store_.Pass(absl::Seconds(30));
  const auto client = nlohmann::json::parse(StatusJson(store_.service(0).MakeView()))["clients"][0];
  EXPECT_THAT(client["waiting_for"].get<std::string>(),
              AllOf(HasSubstr("'epoch'"), HasSubstr("1 of 3"), HasSubstr("worker:1, worker:2")));
  EXPECT_NEAR(client["waiting_seconds"].get<double>(), 30, 1);
}

TEST_F(BarriersTest, RefusesWhatNeverOpens) {
  for (const uint32_t parties : {0u, 4u}) {
    const Pending answer = Arrive(0, "epoch", parties);
    ASSERT_TRUE(answer->there);
    EXPECT_TRUE(absl::IsInvalidArgument(answer->status)) << answer->status;
  }
  Arrive(0, "epoch", 3);
  const Pending other = Arrive(1, "epoch", 2);
  ASSERT_TRUE(other->there);
  EXPECT_THAT(std::string(other->status.message()), AllOf(HasSubstr("2"), HasSubstr("3")));
}

TEST_F(BarriersTest, AStoreClientPassesARestartOfThePs) {
  Pending other;
  store_.loop.CallAt(store_.loop.Now() + absl::Seconds(1), [&] { store_.KillPs(0); });
  store_.loop.CallAt(store_.loop.Now() + absl::Seconds(2), [&] { store_.StartPs(0); });
  store_.loop.CallAt(store_.loop.Now() + absl::Seconds(20), [&] { other = workers_[1]->Barrier("epoch", 2); });
  EXPECT_EQ(workers_[0]->client().Barrier("epoch", 2), absl::OkStatus());
}

TEST_F(BarriersTest, AStoreClientNoticesAPsThatIsGone) {
  store_.loop.CallAt(store_.loop.Now() + absl::Seconds(1), [&] { store_.KillPs(0); });
  const absl::Time before = store_.loop.Now();
  const absl::Status status = workers_[0]->client().Barrier("epoch", 2);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_LT(store_.loop.Now() - before, absl::Seconds(70)) << "its patience, not that of the gates";
}

}  // namespace
}  // namespace muster::barriers_test
