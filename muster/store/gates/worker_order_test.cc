// The workers' order: nobody has its turn before those before it have pushed, whatever order they ask in, and whoever
// dies, loses messages or asks again.
#include "muster/store/gates/worker_order.h"

#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/store/service/store_status.h"
#include "muster/store/testing/joining.h"
#include "muster/store/testing/scripted_worker.h"

namespace muster::worker_order_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr;
using Pending = ScriptedWorker::Pending;

const std::vector<VariableSpec> kVariables = {{.name = "w", .shape = {40}},
                                              {.name = "b", .dtype = DType::kFloat64, .shape = {7}}};
const std::vector<std::string> kTasks = {"worker:0", "worker:1", "worker:2"};
// Nobody heartbeats here; a death shows only by its connections.
const LeaseOptions kLease = {.lease = absl::Hours(1), .disconnect_grace = absl::Seconds(3)};
const GateSpec kAll = {GateKind::kSynchronous, 3, 3, false};

class TurnsTest : public ::testing::Test {
 protected:
  void Start(
      int num_ps = 1, const std::function<void(ModelBinding&)>& choose = [](ModelBinding&) {}) {
    store_ = std::make_unique<SimulatedStore>(num_ps, kTasks, kLease);
    model_ = std::make_unique<WorkerModel>(kVariables, RuleSpec{.learning_rate = 1}, num_ps);
    model_->binding.ordered = true;
    choose(model_->binding);
    for (size_t i = 0; i < kTasks.size(); ++i)
      workers_.push_back(std::make_unique<ScriptedWorker>(*store_, kTasks[i], *model_, i == 0));
  }
  void PassTime() { store_->Pass(absl::Milliseconds(10)); }
  Pending Ask(int i, uint64_t clock = 0, uint64_t local_step = 0, int ps = 0) {
    Pending answer = workers_[i]->AwaitTurn(clock, local_step, ps);
    PassTime();
    return answer;
  }
  Pending Leave(int i) {
    AwaitTurnRequest message{workers_[i]->client().MakeStamp(0, 0), /*generation=*/1, 0, 0, /*leaves=*/true};
    Pending answer = workers_[i]->Send(message);
    PassTime();
    return answer;
  }
  // No first turn comes before that.
  void AllAsk() {
    for (int i = 0; i < 3; ++i) Ask(i);
  }
  Pending Push(int i, uint64_t clock, int ps = 0) {
    PushPullRequest message = workers_[i]->Message(ps);
    message.clock = clock;
    Pending answer = workers_[i]->Send(message, 1, ps);
    PassTime();
    return answer;
  }
  Pending Contribute(int i, uint64_t local_step, int ps = 0) {
    Pending answer = workers_[i]->Contribute(1, local_step, ps);
    PassTime();
    return answer;
  }
  // Starts a new life of worker i.
  void Restart(int i) {
    const uint64_t sequence = workers_[i]->sequence;
    workers_[i].reset();
    PassTime();
    workers_[i] = std::make_unique<ScriptedWorker>(*store_, kTasks[i], *model_);
    workers_[i]->sequence = sequence + 100;
  }
  nlohmann::json Status(int ps = 0) { return nlohmann::json::parse(StatusJson(store_->service(ps).MakeView())); }
  std::string WaitsFor(int i) { return Status()["clients"][i]["waiting_for"].get<std::string>(); }

  std::unique_ptr<SimulatedStore> store_;
  std::unique_ptr<WorkerModel> model_;
  std::vector<std::unique_ptr<ScriptedWorker>> workers_;
};

TEST_F(TurnsTest, WorkersPushInTheOrderOfTheirRowsWhoeverAsksFirst) {
  Start();
  AllAsk();
  Pending first = Ask(0);
  for (uint64_t clock = 0; clock < 3; ++clock) {
    const Pending third = Ask(2);
    const Pending second = Ask(1);
    ASSERT_TRUE(first->ok()) << first->status;
    EXPECT_EQ(first->reply.clock, clock);
    EXPECT_FALSE(second->there || third->there);
    EXPECT_THAT(WaitsFor(2), HasSubstr("its turn: worker:0 (at"));
    ASSERT_TRUE(Push(0, clock + 1)->ok());
    ASSERT_TRUE(second->ok()) << second->status;
    EXPECT_FALSE(third->there);
    EXPECT_EQ(WaitsFor(2), absl::StrCat("its turn: worker:1 (at ", clock, ") is before it"));
    first = Ask(0);
    EXPECT_FALSE(first->there) << "it has had its turn";
    ASSERT_TRUE(Push(1, clock + 1)->ok());
    ASSERT_TRUE(third->ok()) << third->status;
    EXPECT_EQ(third->reply.clock, clock);
    EXPECT_FALSE(first->there);
    ASSERT_TRUE(Push(2, clock + 1)->ok());
  }
  EXPECT_EQ(Status()["version"], 9);
  EXPECT_EQ(Status()["ordered"], true);
  EXPECT_EQ(Status()["requests"]["await_turn"], 13);
}

// DynSGD's papers rely on this: in the round-robin of n equal workers, everyone's staleness is n - 1.
TEST_F(TurnsTest, InTurnTheStalenessIsOneLessThanThereAreWorkers) {
  Start();
  AllAsk();
  std::vector<uint64_t> pulled(kTasks.size());
  for (uint64_t clock = 1; clock <= 4; ++clock) {
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(Ask(i)->ok());
      PushPullRequest message = workers_[i]->Message();
      message.clock = clock;
      message.pulled_version = pulled[i];
      const Pending answer = workers_[i]->Send(message, 1);
      PassTime();
      ASSERT_TRUE(answer->ok()) << answer->status;
      pulled[i] = answer->reply.version;
      if (clock > 1) {
        EXPECT_EQ(answer->reply.staleness, 2u);
      }
    }
  }
}

// A worker that has asked has pulled: the first push doesn't change anyone's first values.
TEST_F(TurnsTest, NobodysFirstTurnComesBeforeAllHaveAsked) {
  Start();
  const Pending first = Ask(0);
  Ask(1);
  EXPECT_FALSE(first->there);
  EXPECT_EQ(WaitsFor(0), "its turn: worker:2 (at 0) is before it");
  Ask(2);
  EXPECT_TRUE(first->ok());
}

TEST_F(TurnsTest, WhoLeavesIsLeftOutAndAnsweredWhenAllLeave) {
  Start();
  AllAsk();
  ASSERT_TRUE(Push(0, 1)->ok());
  const Pending first = Leave(0);
  ASSERT_TRUE(Push(1, 1)->ok());
  ASSERT_TRUE(Push(2, 1)->ok());
  const Pending second = Ask(1);
  EXPECT_TRUE(second->ok()) << "nobody waits for worker 0's second turn";
  ASSERT_TRUE(Push(1, 2)->ok());
  const Pending left = Leave(1);
  EXPECT_FALSE(first->there || left->there);
  EXPECT_EQ(workers_[2]->client().Done(), absl::OkStatus());
  PassTime();
  EXPECT_TRUE(first->ok() && left->ok());
}

// Otherwise it would wait for the others to leave, and they for its clock.
TEST_F(TurnsTest, WhoLeavesIsNoReasonToWaitByABoundOfStaleness) {
  Start(1, [](ModelBinding& binding) { binding.clock_limit = 2; });
  AllAsk();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Push(i, 1)->ok());
  for (int i = 1; i < 3; ++i) ASSERT_TRUE(Push(i, 2)->ok());
  const Pending ahead = Push(1, 3);
  EXPECT_FALSE(ahead->there);
  EXPECT_EQ(WaitsFor(1), "clock 2 of worker:0 (at 1)");
  const Pending left = Leave(0);
  EXPECT_TRUE(ahead->ok() && !left->there);
  EXPECT_FALSE(Push(1, 4)->there) << "worker:2 is still at 2";
}

TEST_F(TurnsTest, WhoIsDoneIsLeftOut) {
  Start();
  AllAsk();
  const Pending third = Ask(2);
  ASSERT_TRUE(Ask(0)->ok());
  ASSERT_TRUE(Push(0, 1)->ok());
  EXPECT_FALSE(third->there);
  EXPECT_EQ(workers_[1]->client().Done(), absl::OkStatus());
  PassTime();
  ASSERT_TRUE(third->ok()) << third->status;
  ASSERT_TRUE(Push(2, 1)->ok());
  EXPECT_TRUE(Ask(0)->ok());
}

TEST_F(TurnsTest, WhoIsDeadOrHasNotComeIsWaitedFor) {
  SimulatedStore store(1, kTasks, kLease);
  WorkerModel model(kVariables, {.learning_rate = 1}, 1);
  model.binding.ordered = true;
  ScriptedWorker chief(store, "worker:0", model, /*chief=*/true);
  ScriptedWorker third(store, "worker:2", model);
  PushPullRequest message = chief.Message();
  message.clock = 1;
  chief.Send(message, 1);
  const Pending turn = third.AwaitTurn();
  store.Pass(absl::Seconds(30));
  EXPECT_FALSE(turn->there) << "worker:1 has not joined yet";
  auto second = std::make_unique<ScriptedWorker>(store, "worker:1", model);
  second.reset();
  store.Pass(absl::Seconds(30));
  EXPECT_FALSE(turn->there) << "worker:1 is dead";
  second = std::make_unique<ScriptedWorker>(store, "worker:1", model);
  message = second->Message();
  message.clock = 1;
  second->Send(message, 1);
  store.Pass(absl::Milliseconds(10));
  EXPECT_TRUE(turn->ok()) << turn->status;
}

// A bound that nobody ever comes near: a worker that comes back isn't moved up to the others, as it is without an
// order.
TEST_F(TurnsTest, ANewLifeGoesOnWithItsOwnClock) {
  Start(1, [](ModelBinding& binding) { binding.clock_limit = 2; });
  for (uint64_t clock = 1; clock <= 2; ++clock)
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(Push(i, clock)->ok());
  ASSERT_TRUE(Push(0, 3)->ok());
  workers_[2].reset();
  store_->Pass(absl::Seconds(4));
  Restart(1);
  StoreClient& client = workers_[1]->client();
  ASSERT_EQ(PullWhenReady(client), absl::OkStatus());
  EXPECT_EQ(client.clock(), 2u);
  ASSERT_EQ(client.AwaitTurn(), absl::OkStatus());
  EXPECT_EQ(client.clock(), 2u);
  ASSERT_TRUE(Push(1, 3)->ok());
  const Pending next = Ask(0, 3);
  EXPECT_FALSE(next->there) << "worker:2 is at 2";
}

TEST_F(TurnsTest, ClocksOutliveThePsAndQuestionsAreAskedAgain) {
  Start();
  ASSERT_TRUE(Push(0, 1)->ok());
  Ask(2);
  store_->KillPs(0);
  store_->StartPs(0);
  for (auto& worker : workers_) worker->BreakConnection(*store_);
  const Pending third = Ask(2);
  EXPECT_FALSE(third->there);
  EXPECT_TRUE(Ask(1)->ok());
  ASSERT_TRUE(Push(1, 1)->ok());
  EXPECT_TRUE(third->ok()) << third->status;
}

TEST_F(TurnsTest, AQuestionIsAnsweredOnEveryConnectionOnWhichItWasAsked) {
  Start();
  AllAsk();
  const Pending one = Ask(1);
  const Pending other = Ask(1);
  workers_[1]->BreakConnection(*store_);
  const Pending elsewhere = Ask(1);
  EXPECT_FALSE(elsewhere->there);
  const Pending twice = Ask(1);
  ASSERT_TRUE(Push(0, 1)->ok());
  EXPECT_TRUE(elsewhere->ok() && twice->ok());
  // The answer was lost: it still is its turn.
  EXPECT_TRUE(Ask(1)->ok());
  ASSERT_TRUE(Push(1, 1)->ok());
  // A delayed question for a turn that is over counts as one for the next turn.
  const Pending late = Ask(1);
  EXPECT_FALSE(late->there);
  ASSERT_TRUE(Push(2, 1)->ok());
  ASSERT_TRUE(Push(0, 2)->ok());
  ASSERT_TRUE(late->ok());
  EXPECT_EQ(late->reply.clock, 1u);
}

TEST_F(TurnsTest, AProcessThatWasReplacedIsToldSo) {
  SimulatedStore store(1, kTasks, {.lease = absl::Seconds(10)});
  WorkerModel model(kVariables, {}, 1);
  model.binding.ordered = true;
  ScriptedWorker chief(store, "worker:0", model, /*chief=*/true);
  ScriptedWorker stopped(store, "worker:1", model);
  const Pending left = stopped.AwaitTurn();
  store.Pass(absl::Seconds(11));
  const ScriptedWorker next(store, "worker:1", model);
  store.Pass(absl::Milliseconds(10));
  ASSERT_TRUE(left->there) << "its connection is still there, and it would wait for ever";
  EXPECT_TRUE(absl::IsFailedPrecondition(left->status)) << left->status;
}

TEST_F(TurnsTest, OtherValuesAndTheEndLeaveNobodyWaiting) {
  Start();
  const Pending before = Ask(1);
  ASSERT_EQ(workers_[0]->client().Initialize(0, 0, nullptr), absl::OkStatus());
  PassTime();
  ASSERT_TRUE(before->there);
  EXPECT_TRUE(absl::IsAborted(before->status)) << before->status;
  const Pending older = Ask(1);
  ASSERT_TRUE(older->there);
  EXPECT_TRUE(absl::IsAborted(older->status)) << "of values that are gone: " << older->status;
  const Pending waiting =
      workers_[1]->Send(AwaitTurnRequest{workers_[1]->client().MakeStamp(0, 0), /*generation=*/2, 0, 0});
  PassTime();
  EXPECT_FALSE(waiting->there);
  store_->service(0).Shutdown("enough");
  PassTime();
  ASSERT_TRUE(waiting->there);
  EXPECT_TRUE(absl::IsCancelled(waiting->status)) << waiting->status;
  const Pending late =
      workers_[1]->Send(AwaitTurnRequest{workers_[1]->client().MakeStamp(0, 0), /*generation=*/2, 0, 0});
  PassTime();
  EXPECT_TRUE(absl::IsCancelled(late->status)) << late->status;
}

TEST_F(TurnsTest, WithoutAnOrderNobodyHasATurn) {
  Start(1, [](ModelBinding& binding) { binding.ordered = false; });
  const Pending answer = Ask(0);
  ASSERT_TRUE(answer->there);
  EXPECT_TRUE(absl::IsInvalidArgument(answer->status)) << answer->status;
  EXPECT_FALSE(Status().contains("ordered"));
}

TEST_F(TurnsTest, AnExchangeIsATurnToo) {
  Start(1, [](ModelBinding& binding) {
    binding.exchanges = true;
    binding.optimizer.rule = {.kind = RuleKind::kAdd};
  });
  AllAsk();
  const Pending second = Ask(1);
  PushPullRequest message = workers_[0]->Message();
  message.pull = PullWhat::kNothing;
  message.exchange = 0.5;
  message.clock = 1;
  const Pending moved = workers_[0]->Send(message, 8);
  PassTime();
  ASSERT_TRUE(moved->ok()) << moved->status;
  EXPECT_EQ(moved->reply.clock, 1u);
  EXPECT_EQ(moved->first(), 4.0f) << "its answer isn't held, and is what it moved";
  EXPECT_TRUE(second->ok());
}

// The old life's push came to one of the two ps.
TEST_F(TurnsTest, APushThatOnlySomePsHaveStopsNobody) {
  Start(2);
  for (int ps = 0; ps < 2; ++ps) ASSERT_TRUE(Push(0, 1, ps)->ok());
  ASSERT_TRUE(Push(1, 1, /*ps=*/1)->ok());
  const Pending third = Ask(2, 0, 0, /*ps=*/0);
  EXPECT_FALSE(third->there);
  EXPECT_TRUE(Ask(2, 0, 0, /*ps=*/1)->ok());
  Restart(1);
  ASSERT_EQ(PullWhenReady(workers_[1]->client()), absl::OkStatus());
  EXPECT_EQ(workers_[1]->client().clock(), 1u) << "the furthest that some ps has of it";
  const Pending again = Ask(1, /*clock=*/1, 0, /*ps=*/0);
  EXPECT_FALSE(again->there) << "its next turn comes after worker:2's";
  EXPECT_TRUE(third->ok()) << "nobody pushes that again";
}

// In a round the order is the same, and every worker is waited for.
TEST_F(TurnsTest, InARoundWorkersContributeInTheirOrder) {
  Start(1, [](ModelBinding& binding) { binding.gate = kAll; });
  for (uint64_t round = 0; round < 3; ++round) {
    const Pending third = Ask(2, 0, round);
    const Pending second = Ask(1, 0, round);
    EXPECT_FALSE(second->there || third->there);
    ASSERT_TRUE(Ask(0, 0, round)->ok());
    const Pending a = Contribute(0, round);
    EXPECT_TRUE(second->ok() && !third->there);
    EXPECT_EQ(WaitsFor(2), absl::StrCat("its turn: worker:1 (not in round ", round, ") is before it"));
    const Pending b = Contribute(1, round);
    EXPECT_TRUE(third->ok() && !a->there);
    const Pending c = Contribute(2, round);
    EXPECT_TRUE(a->ok() && b->ok() && c->ok());
  }
  EXPECT_EQ(Status()["gate"]["round"], 3);
}

// ps 0 has fired with a contributor that died before ps 1 had its part.
TEST_F(TurnsTest, ARoundThatPs0HasFiredIsFiredEverywhereWhenTheNextIsAskedFor) {
  Start(2, [](ModelBinding& binding) { binding.gate = kAll; });
  for (int ps = 0; ps < 2; ++ps) ASSERT_TRUE(Ask(0, 0, 0, ps)->ok());
  const Pending waits = Contribute(0, 0, /*ps=*/1);
  Contribute(0, 0, /*ps=*/0);
  for (int ps = 0; ps < 2; ++ps) Contribute(1, 0, ps);
  ASSERT_TRUE(Contribute(2, 0, /*ps=*/0)->ok());
  EXPECT_FALSE(waits->there);
  Restart(2);
  ASSERT_EQ(PullWhenReady(workers_[2]->client()), absl::OkStatus());
  EXPECT_EQ(workers_[2]->client().round(), 1u);
  const Pending turn = Ask(2, 0, /*local_step=*/1, /*ps=*/1);
  EXPECT_TRUE(waits->ok()) << waits->status;
  EXPECT_EQ(Status(1)["gate"]["round"], 1);
  EXPECT_FALSE(turn->there) << "of the next round it is the last";
}

// An earlier life of it is in the round on ps 0 only: there it has its turn, and is dropped.
TEST_F(TurnsTest, WhoIsInTheRoundAlreadyStopsNobody) {
  Start(2, [](ModelBinding& binding) { binding.gate = kAll; });
  Contribute(0, 0, /*ps=*/0);
  Restart(0);
  for (int ps = 0; ps < 2; ++ps) EXPECT_TRUE(Ask(0, 0, 0, ps)->ok()) << ps;
  EXPECT_FALSE(Ask(1, 0, 0, /*ps=*/1)->there);
  const Pending second = Ask(1, 0, 0, /*ps=*/1);
  Contribute(0, 0, /*ps=*/0);
  Contribute(0, 0, /*ps=*/1);
  EXPECT_TRUE(second->ok());
}

// Store clients that lose messages commit, each turn asked for by the last of the workers first: the result is, bit for
// bit, that of a run without losses.
class OrderedRun {
 public:
  explicit OrderedRun(std::vector<Fault> faults, int restart_after = -1)
      : script_(std::move(faults)), restart_after_(restart_after) {
    for (size_t i = 0; i < kTasks.size(); ++i) {
      models_.push_back(std::make_unique<WorkerModel>(kVariables, kAdam, 2));
      models_[i]->binding.ordered = true;
      models_[i]->Fill(7);
      clients_.push_back(store_.Client(kTasks[i], script_));
      EXPECT_EQ(JoinToTrain(*clients_[i], models_[i]->binding, i == 0), absl::OkStatus());
    }
  }
  // The first worker in `asking` asks last.
  void Round(const std::vector<int>& asking) { Commit(asking, asking.size() - 1); }

  std::vector<int> order;  // in which they pushed
  std::vector<std::byte> Values() { return store_.Snapshot(0).bytes; }
  std::vector<std::byte> OthersValues() { return store_.Snapshot(1).bytes; }
  uint64_t met() const { return script_.met(); }

 private:
  static inline const RuleSpec kAdam = {.kind = RuleKind::kAdam};

  void Commit(const std::vector<int>& asking, size_t at) {
    if (at > 0)
      store_.loop.CallAt(store_.loop.Now() + absl::Seconds(1), [this, asking, at] { Commit(asking, at - 1); });
    const int who = asking[at];
    StoreClient& client = *clients_[who];
    ASSERT_EQ(client.AwaitTurn(), absl::OkStatus());
    order.push_back(who);
    WorkerModel gradients(kVariables, kAdam, 2);
    gradients.Fill(static_cast<double>(order.size()));
    if (static_cast<int>(order.size()) == restart_after_) {
      store_.KillPs(1);
      store_.loop.CallAt(store_.loop.Now() + absl::Seconds(1), [this] { store_.StartPs(1); });
    }
    const auto pushed =
        client.PushPull([&](size_t i) { return ByteSpan(gradients.memory[i]); }, {.clock = client.clock() + 1});
    ASSERT_TRUE(pushed.ok()) << pushed.status();
    EXPECT_EQ(pushed->global_step, static_cast<int64_t>(order.size())) << "the next turn begins when it is counted";
  }

  FaultScript script_;
  const int restart_after_;
  SimulatedStore store_{2, kTasks, kLease};
  std::vector<std::unique_ptr<WorkerModel>> models_;
  std::vector<std::unique_ptr<StoreClient>> clients_;
};

TEST(OrderedRunTest, LostMessagesAndRestartsChangeNothing) {
  const auto method = static_cast<uint16_t>(StoreMethod::kAwaitTurn);
  const auto push = static_cast<uint16_t>(StoreMethod::kPushPull);
  const std::vector<Fault> none;
  OrderedRun undisturbed(none);
  for (int round = 0; round < 3; ++round) undisturbed.Round({0, 1, 2});
  EXPECT_THAT(undisturbed.order, ElementsAre(0, 1, 2, 0, 1, 2, 0, 1, 2));
  std::vector<std::vector<Fault>> scripts;
  for (const FaultKind kind :
       {FaultKind::kCutRequest, FaultKind::kCutReply, FaultKind::kDuplicateRequest, FaultKind::kDelayReply})
    for (const uint64_t first : {1, 2, 4, 5})
      scripts.push_back({{.kind = kind, .first = first, .method = method},
                         {.kind = kind, .first = 6 + first, .method = push, .delay = absl::Seconds(3)}});
  for (const std::vector<Fault>& faults : scripts) {
    OrderedRun run(faults);
    for (int round = 0; round < 3; ++round) run.Round({0, 1, 2});
    EXPECT_EQ(run.order, undisturbed.order);
    EXPECT_EQ(run.met(), 2u);
    EXPECT_TRUE(run.Values() == undisturbed.Values());
    EXPECT_TRUE(run.OthersValues() == undisturbed.OthersValues());
  }
  for (const int restart_after : {1, 2, 5}) {
    OrderedRun run(none, restart_after);
    for (int round = 0; round < 3; ++round) run.Round({0, 1, 2});
    EXPECT_EQ(run.order, undisturbed.order);
    EXPECT_TRUE(run.Values() == undisturbed.Values());
    EXPECT_TRUE(run.OthersValues() == undisturbed.OthersValues());
  }
}

// The count of worker 0's push is on its way for 5 s: worker 1's turn at ps 0 begins with it.
TEST(OrderedRunTest, ATurnEndsWhenTheUpdateIsCounted) {
  SimulatedStore store(2, {kTasks[0], kTasks[1]}, kLease);
  FaultScript script({{.kind = FaultKind::kDelayRequest,
                       .first = 3,  // after the pull and the push
                       .method = static_cast<uint16_t>(StoreMethod::kPushPull),
                       .peer = store.addresses()[0],
                       .delay = absl::Seconds(5)}});
  WorkerModel model(kVariables, {.learning_rate = 1}, 2);
  model.binding.ordered = true;
  const auto first = store.Client(kTasks[0], script);
  ASSERT_EQ(JoinToTrain(*first, model.binding, true), absl::OkStatus());
  ScriptedWorker second(store, kTasks[1], model);
  const Pending turn = second.AwaitTurn(0, 0, /*ps=*/0);
  const Pending other_turn = second.AwaitTurn(0, 0, /*ps=*/1);
  const absl::Time begin = store.loop.Now();
  store.loop.CallAt(begin + absl::Seconds(4), [&] {
    EXPECT_TRUE(other_turn->ok());
    EXPECT_FALSE(turn->there);
  });
  ASSERT_EQ(first->AwaitTurn(), absl::OkStatus());
  const auto pushed =
      first->PushPull([&](size_t i) { return ByteSpan(model.memory[i]); }, {.clock = first->clock() + 1});
  ASSERT_TRUE(pushed.ok()) << pushed.status();
  EXPECT_EQ(script.met(), 1u);
  EXPECT_GE(store.loop.Now(), begin + absl::Seconds(5));
  store.Pass(absl::Milliseconds(10));
  EXPECT_TRUE(turn->ok());
}

// A ps has lost its memory and everybody joins again: what the others remember of their turns counts for nothing.
TEST(OrderedRunTest, AfterAPsHasLostItsMemoryTheOrderBeginsAnew) {
  SimulatedStore store(1, kTasks, kLease);
  std::vector<std::unique_ptr<WorkerModel>> models;
  std::vector<std::unique_ptr<StoreClient>> clients;
  const auto join = [&] {
    for (size_t i = 0; i < kTasks.size(); ++i)
      ASSERT_EQ(JoinToTrain(*clients[i], models[i]->binding, i == 0), absl::OkStatus());
  };
  for (const std::string& task : kTasks) {
    models.push_back(std::make_unique<WorkerModel>(kVariables, RuleSpec{}, 1));
    models.back()->binding.ordered = true;
    clients.push_back(store.Client(task));
  }
  join();
  const auto commit = [&](int who) {
    const absl::Status turn = clients[who]->AwaitTurn();
    if (!turn.ok()) return turn;
    return clients[who]
        ->PushPull([&](size_t i) { return ByteSpan(models[who]->memory[i]); }, {.clock = clients[who]->clock() + 1})
        .status();
  };
  // The first turns, for which all must ask: the last asker waits within the wait of the others.
  const auto first_turns = [&] {
    store.loop.CallAt(store.loop.Now() + absl::Seconds(1), [&] {
      store.loop.CallAt(store.loop.Now() + absl::Seconds(1), [&] { EXPECT_EQ(commit(0), absl::OkStatus()); });
      EXPECT_EQ(commit(1), absl::OkStatus());
    });
    EXPECT_EQ(clients[2]->AwaitTurn(), absl::OkStatus());
  };
  first_turns();
  const uint64_t generation = clients[0]->generation();
  store.LosePs(0);
  store.StartPs(0);
  EXPECT_TRUE(absl::IsAborted(commit(2)));
  join();
  EXPECT_GT(clients[0]->generation(), generation) << "which tells an algorithm that its window is of other values";
  EXPECT_EQ(clients[1]->generation(), clients[0]->generation());
  first_turns();
  for (const int who : {2, 0}) {
    ASSERT_EQ(commit(who), absl::OkStatus()) << who;
  }
  EXPECT_EQ(clients[0]->clock(), 2u);
}

}  // namespace
}  // namespace muster::worker_order_test
