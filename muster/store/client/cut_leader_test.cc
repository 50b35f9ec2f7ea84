// The cut of a checkpoint: that every ps marks the same updates whatever is under way, and that nobody is held for
// long.
#include "muster/store/client/cut_leader.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "muster/store/client/checkpoint_calls.h"
#include "muster/store/service/store_status.h"
#include "muster/store/testing/scripted_worker.h"

namespace muster::cut_leader_test {
namespace {

const std::vector<VariableSpec> kVariables = {{.name = "a", .shape = {3}}, {.name = "b", .shape = {2}}};
const std::vector<std::string> kTasks = {"chief:0", "worker:0"};
const LeaseOptions kLease = {.lease = absl::Hours(1), .disconnect_grace = absl::Seconds(1)};

// Looks at a ps wherever it might die.
class WatchingProbe final : public ArenaProbe {
 public:
  void At(ArenaPoint) override {
    if (look) look();
  }
  bool Has(PlantedBug) const override { return false; }
  bool dying() const override { return false; }

  std::function<void()> look;
};

class CutLeaderTest : public ::testing::Test {
 protected:
  CutLeaderTest() { Start({}); }
  void Start(const GateSpec& gate, ArenaProbe* probe = nullptr, const std::vector<std::string>& tasks = kTasks) {
    workers_.clear();
    store_ = std::make_unique<SimulatedStore>(2, tasks, kLease, probe);
    model_ = std::make_unique<WorkerModel>(kVariables, RuleSpec{.learning_rate = 1}, 2);
    model_->binding.gate = gate;
    for (size_t i = 0; i < tasks.size(); ++i)
      workers_.push_back(std::make_unique<ScriptedWorker>(*store_, tasks[i], *model_, i == 0));
  }
  StoreClient& chief() { return workers_[0]->client(); }
  ScriptedWorker& worker() { return *workers_[1]; }

  // Sends the share for ps `ps` of a worker's push number `sequence`, which is 1 everywhere.
  static ScriptedWorker::Pending SendPush(ScriptedWorker& worker, uint64_t sequence, int ps) {
    worker.sequence = sequence - 1;
    PushPullRequest message = worker.Message(ps);
    message.minibatches = 0;
    message.update = true;
    return worker.Send(message, 1, ps);
  }
  static ScriptedWorker::Pending SendCount(ScriptedWorker& worker, uint64_t sequence) {
    worker.sequence = sequence - 1;
    PushPullRequest message = worker.Message(0);
    message.pushed.clear();
    message.pull = PullWhat::kNothing;
    return worker.Send(message, 0, 0);
  }
  ScriptedWorker::Pending Push(uint64_t sequence, int ps) {
    auto answer = SendPush(worker(), sequence, ps);
    PassTime();
    return answer;
  }
  ScriptedWorker::Pending Count(uint64_t sequence) {
    auto answer = SendCount(worker(), sequence);
    PassTime();
    return answer;
  }
  void PassTime() { store_->Pass(absl::Milliseconds(10)); }
  // Returns the first element of ps `ps`'s part.
  float Part(int ps, const CheckpointCut& cut) {
    const auto snapshot = ExportPart(chief(), ps, cut.hold).value();
    float value = 0;
    std::memcpy(&value, snapshot.bytes.data(), sizeof value);
    return value;
  }
  float Initial(int ps) {
    float value = 0;
    std::memcpy(&value, model_->memory[ps].data(), sizeof value);
    return value;
  }
  // Posts a request from the chief without blocking.
  ScriptedWorker::Pending Ask(StoreMethod method, int ps, const std::string& control) {
    auto answer = std::make_shared<ScriptedWorker::Answer>();
    channel_ = transport().Connect(store_->addresses()[ps]);
    channel_->Call({.method = static_cast<uint16_t>(method), .control = control},
                   [answer](absl::StatusOr<Reply> reply) {
                     answer->there = true;
                     answer->status = reply.status();
                   });
    PassTime();
    return answer;
  }
  ScriptedWorker::Pending Hold(int ps, uint64_t number) {
    return Ask(StoreMethod::kHold, ps, Encode(HoldRequest{chief().MakeStamp(ps, number), chief().chief_epoch(ps)}));
  }
  SimulatedTransport& transport() {
    if (transport_ == nullptr) transport_ = std::make_unique<SimulatedTransport>(store_->network, store_->loop);
    return *transport_;
  }

  std::unique_ptr<SimulatedStore> store_;
  std::unique_ptr<WorkerModel> model_;
  std::vector<std::unique_ptr<ScriptedWorker>> workers_;
  std::unique_ptr<SimulatedTransport> transport_;
  std::unique_ptr<Channel> channel_;
};

TEST_F(CutLeaderTest, APushThatOnePsHasIsWaitedForByTheOther) {
  Push(1, 1);
  // The other half of the push comes while the ps are held.
  store_->loop.CallAt(store_->loop.Now() + absl::Milliseconds(50), [&] { SendPush(worker(), 1, 0); });
  const auto cut = CutCheckpoint(chief()).value();
  EXPECT_EQ(cut.global_step, 1) << "every ps has it: its sender has only to come and count it";
  Push(2, 0);
  Push(2, 1);
  EXPECT_EQ(Part(0, cut), Initial(0) - 1);
  EXPECT_EQ(Part(1, cut), Initial(1) - 1);
}

TEST_F(CutLeaderTest, WhatIsCountedLaterIsCountedOnce) {
  Push(1, 0);
  Push(1, 1);
  const auto cut = CutCheckpoint(chief()).value();
  EXPECT_EQ(cut.global_step, 1);
  EXPECT_EQ(*chief().ReadGlobalStep(), 0);
  ASSERT_TRUE(Count(1)->ok());
  EXPECT_EQ(*chief().ReadGlobalStep(), 1);
  const auto again = CutCheckpoint(chief()).value();
  EXPECT_EQ(again.global_step, 1);
}

TEST_F(CutLeaderTest, WhatHasBeenCountedIsNotCountedForALateRetry) {
  Push(1, 0);
  Push(1, 1);
  ASSERT_TRUE(Count(1)->ok());
  Push(1, 0);  // it was under way on a connection that broke
  const auto cut = CutCheckpoint(chief()).value();
  EXPECT_EQ(cut.global_step, 1);
}

TEST_F(CutLeaderTest, AHeldPsKeepsNewUpdatesBackAndLetsPullsThrough) {
  Push(1, 0);
  Push(1, 1);
  ASSERT_TRUE(Hold(0, 100)->ok());
  const auto retry = Push(1, 0);
  EXPECT_TRUE(retry->ok()) << "it was begun before";
  EXPECT_TRUE(Count(1)->ok());
  const auto next = Push(2, 0);
  EXPECT_FALSE(next->there);
  EXPECT_TRUE(chief().Pull(PullWhat::kTrainable).ok());
  store_->Pass(CutFollower::kLimit);
  EXPECT_TRUE(next->ok()) << "a chief that dies holds nobody";
}

TEST_F(CutLeaderTest, AConnectionThatBreaksTakesWhatWasKeptBackAlong) {
  ASSERT_TRUE(Hold(0, 100)->ok());
  ASSERT_FALSE(Push(2, 0)->there);
  const auto connections = [&] {
    return nlohmann::json::parse(StatusJson(store_->service(0).MakeView()))["clients"][1]["connections"];
  };
  const nlohmann::json before = connections();
  // The ps releases its hold, and at the same moment the connection is gone.
  channel_->Call(
      {.method = static_cast<uint16_t>(StoreMethod::kMark),
       .control = Encode(MarkRequest{
           .stamp = chief().MakeStamp(0, 100), .chief_epoch = chief().chief_epoch(0), .hold = 100, .release = true})},
      [](const absl::StatusOr<Reply>&) {});
  worker().BreakConnection(*store_);
  PassTime();
  EXPECT_EQ(connections(), before.get<int>() - 1);
}

TEST_F(CutLeaderTest, AMarkThatTheChiefGivesUpIsNotInTheWayOfTheNextOne) {
  ASSERT_TRUE(CutCheckpoint(chief()).ok());
  ASSERT_TRUE(CutCheckpoint(chief()).ok());
}

TEST_F(CutLeaderTest, AHoldThatHasRunOutIsNoneAndTheNextOneWorks) {
  ASSERT_TRUE(Hold(0, 100)->ok());
  store_->Pass(CutFollower::kLimit);
  const auto late =
      Ask(StoreMethod::kMark, 0, Encode(MarkRequest{chief().MakeStamp(0, 100), chief().chief_epoch(0), 100, {0, 0}}));
  ASSERT_TRUE(late->lost());
  EXPECT_TRUE(absl::IsOutOfRange(late->status)) << late->status;
  EXPECT_TRUE(absl::IsOutOfRange(Hold(0, 100)->status)) << "a request that was late itself holds nobody";
  const auto other = Push(1, 0);
  EXPECT_TRUE(other->ok());
}

TEST_F(CutLeaderTest, NobodyWaitsForThePushOfTheDead) {
  Push(1, 1);
  workers_[1].reset();
  store_->Pass(absl::Seconds(2));
  const auto cut = CutCheckpoint(chief()).value();
  EXPECT_EQ(cut.global_step, 0);
}

// ps 1 marks at once, without that push; ps 0 waits for another worker, and counts the push before it marks.
TEST_F(CutLeaderTest, APushThatOnePsDidNotWaitForAndThatIsCountedMeanwhileIsNotInACut) {
  Start({}, nullptr, {"chief:0", "worker:0", "worker:1"});
  ScriptedWorker& other = *workers_[2];
  store_->Pass(kLease.lease * 0.75);
  SendPush(worker(), 1, 0);
  for (int ps = 0; ps < 2; ++ps) SendPush(other, 1, ps);
  ASSERT_TRUE(chief().Pull(PullWhat::kTrainable).ok());
  store_->Pass(kLease.lease / 2);
  ASSERT_TRUE(SendCount(other, 1)->status.ok());
  SendPush(other, 2, 1);
  PassTime();
  const auto after = [&](int milliseconds, const std::function<void()>& what) {
    store_->loop.CallAt(store_->loop.Now() + absl::Milliseconds(milliseconds), what);
  };
  after(50, [&] { SendPush(worker(), 1, 1); });
  after(60, [&] { SendCount(worker(), 1); });
  after(70, [&] { SendPush(other, 2, 0); });
  const absl::Status refused = CutCheckpoint(chief()).status();
  EXPECT_TRUE(absl::IsOutOfRange(refused)) << refused;
  EXPECT_NE(std::string(refused.message()).find("ps 1 took for dead"), std::string::npos) << refused;
  const auto cut = CutCheckpoint(chief()).value();
  EXPECT_EQ(cut.global_step, 3);
  for (int ps = 0; ps < 2; ++ps) EXPECT_EQ(Part(ps, cut), Initial(ps) - 3);
}

TEST_F(CutLeaderTest, NobodyWaitsForThePushOfAnEarlierLife) {
  Push(1, 1);
  workers_[1].reset();
  PassTime();
  workers_[1] = std::make_unique<ScriptedWorker>(*store_, "worker:0", *model_);
  const auto cut = CutCheckpoint(chief()).value();
  EXPECT_EQ(cut.global_step, 0);
  // The same after a restart of the ps that has it.
  store_->KillPs(1);
  store_->StartPs(1);
  EXPECT_TRUE(CutCheckpoint(chief()).ok());
}

// Where the first half is whole, ps 0 marks at once, and counts it as inside; the other half isn't, and ps 1 marks when
// the next life has joined it.
TEST_F(CutLeaderTest, HalfAPushOfAnEarlierLifeIsNotInsideWhereThatIsFoundOnlyAtTheMark) {
  Push(1, 0);
  PushPullRequest half = worker().Message(1);
  half.stamp.sequence = 1;
  half.minibatches = 0;
  half.update = true;
  half.part = UpdatePart::kOpen;
  const auto pushed = worker().Send(half, 1, 1);
  PassTime();
  ASSERT_TRUE(pushed->ok()) << pushed->status;
  workers_[1].reset();
  PassTime();
  std::vector<std::unique_ptr<Channel>> next_life;
  int joined = 0;
  store_->loop.CallAt(store_->loop.Now() + absl::Milliseconds(50), [&] {
    for (const std::string& address : store_->addresses()) {
      next_life.push_back(transport().Connect(address));
      next_life.back()->Call({.method = static_cast<uint16_t>(StoreMethod::kJoin),
                              .control = Encode(JoinRequest{.task = kTasks[1], .incarnation = 1000})},
                             [&joined](const absl::StatusOr<Reply>& reply) { joined += reply.ok() ? 1 : 0; });
    }
  });
  const auto cut = CutCheckpoint(chief()).value();
  PassTime();
  EXPECT_EQ(joined, 2);
  EXPECT_EQ(cut.global_step, 0);
}

// A ps that dies while a new life joins must find, restarted, that it is new, or that nothing is under way any more.
TEST_F(CutLeaderTest, WhatAnEarlierLifeHadBegunIsSettledBeforeTheNextOneIsRecorded) {
  WatchingProbe probe;
  Start({}, &probe);
  Push(1, 1);
  const ClientRecord& record = store_->service(1).MakeView().arena->client(1);
  const uint64_t earlier = record.incarnation;
  workers_[1].reset();
  PassTime();
  int points = 0;
  probe.look = [&] {
    ++points;
    EXPECT_TRUE(record.incarnation == earlier || record.settled == 1);
  };
  workers_[1] = std::make_unique<ScriptedWorker>(*store_, "worker:0", *model_);
  EXPECT_GT(points, 0);
  EXPECT_NE(record.incarnation, earlier);
  probe.look = nullptr;
}

TEST_F(CutLeaderTest, WhatBelongsToValuesThatAreGoneIsNotCounted) {
  Push(1, 0);
  Push(1, 1);
  ASSERT_TRUE(chief().Initialize(7, 7, nullptr).ok());
  const auto cut = CutCheckpoint(chief()).value();
  EXPECT_EQ(cut.global_step, 7);
}

TEST_F(CutLeaderTest, APartWithoutItsMarkIsRefused) {
  const auto cut = CutCheckpoint(chief()).value();
  store_->KillPs(1);
  store_->StartPs(1);
  EXPECT_TRUE(ExportPart(chief(), 0, cut.hold).ok());
  EXPECT_TRUE(absl::IsOutOfRange(ExportPart(chief(), 0, cut.hold).status())) << "its mark was used";
  const auto part = ExportPart(chief(), 1, cut.hold);
  EXPECT_TRUE(absl::IsOutOfRange(part.status())) << part.status();
  EXPECT_TRUE(CutCheckpoint(chief()).ok());
}

TEST_F(CutLeaderTest, AHeldGateDoesNotFireAndAllPsMarkTheSameRound) {
  Start({GateKind::kSynchronous, 2, 2, false});
  const auto contribute = [&](int i, uint64_t round, int ps) {
    auto answer = workers_[i]->Contribute(1, round, ps);
    --workers_[i]->sequence;  // the shares of one push
    PassTime();
    return answer;
  };
  for (int i = 0; i < 2; ++i) contribute(i, 0, 0);
  contribute(0, 0, 1);
  // ps 0 is a round ahead; ps 1 gets there while it is held.
  store_->loop.CallAt(store_->loop.Now() + absl::Milliseconds(50), [&] { workers_[1]->Contribute(1, 0, 1); });
  const auto cut = CutCheckpoint(chief()).value();
  EXPECT_EQ(cut.global_step, 1);
  EXPECT_EQ(Part(0, cut), Initial(0) - 1);
  EXPECT_EQ(Part(1, cut), Initial(1) - 1);
  // While it is held, a complete round waits.
  ASSERT_TRUE(Hold(0, 100)->ok());
  workers_[0]->sequence = workers_[1]->sequence = 10;
  contribute(0, 1, 0);
  const auto last = contribute(1, 1, 0);
  EXPECT_FALSE(last->there);
  store_->Pass(CutFollower::kLimit);
  EXPECT_TRUE(last->ok());
}

TEST_F(CutLeaderTest, OnceTrainingHasEndedNobodyIsKeptAndNobodyWaitsForARound) {
  Start({GateKind::kSynchronous, 1, 2, false});
  store_->service(0).Shutdown("a test");
  worker().sequence = 0;
  const auto refused = worker().Contribute(1, 0, 0);
  worker().sequence = 0;
  const auto taken = worker().Contribute(1, 0, 1);
  PassTime();
  EXPECT_TRUE(absl::IsCancelled(refused->status)) << refused->status;
  EXPECT_TRUE(taken->ok()) << "the ps hear of the end one after the other";
  const auto cut = CutCheckpoint(chief()).value();
  EXPECT_EQ(cut.global_step, 0);
  EXPECT_EQ(Part(0, cut), Initial(0));
  EXPECT_EQ(Part(1, cut), Initial(1) - 1) << "a round that ps 0 never gets to";
}

TEST_F(CutLeaderTest, AHeldPsRefusesUpdatesOnceTrainingHasEnded) {
  ASSERT_TRUE(Hold(0, 100)->ok());
  const auto kept = Push(1, 0);
  EXPECT_FALSE(kept->there);
  store_->service(0).Shutdown("a test");
  PassTime();
  EXPECT_TRUE(absl::IsCancelled(kept->status)) << kept->status;
  ASSERT_TRUE(Hold(0, 101)->ok());
  // Without a slice here, because a request with bulk is refused before the bulk comes.
  PushPullRequest message = worker().Message(0);
  message.pushed.clear();
  message.update = true;
  const auto late = worker().Send(message, 0, 0);
  PassTime();
  EXPECT_TRUE(absl::IsCancelled(late->status)) << late->status;
}

TEST_F(CutLeaderTest, AShareWithoutASliceIsRefusedOnceTrainingHasEnded) {
  Start({GateKind::kSynchronous, 2, 2, false});
  store_->service(1).Shutdown("a test");
  PushPullRequest message = worker().Message(1);
  message.pushed.clear();
  message.contributes = true;
  const auto answer = worker().Send(message, 1, 1);
  PassTime();
  EXPECT_TRUE(absl::IsCancelled(answer->status)) << "else its answer is kept back for ever";
}

}  // namespace
}  // namespace muster::cut_leader_test
