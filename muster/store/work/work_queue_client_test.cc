// Workers share out the rows of epochs, and each row's element of the model counts how often it was learned from: with
// a bad network, workers that die or are taken for dead, ps that die, and checkpoints meanwhile.
#include "muster/store/work/work_queue_client.h"

#include <gmock/gmock.h>

#include <cstring>
#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "muster/base/status_macros.h"
#include "muster/store/client/checkpoint_calls.h"
#include "muster/store/client/cut_leader.h"
#include "muster/store/service/store_status.h"
#include "muster/store/testing/simulated_store.h"
#include "muster/store/work/local_work.h"

namespace muster::work_queue_client_test {
namespace {

using ::testing::Each, ::testing::HasSubstr;

constexpr int64_t kRows = 23;
const WorkSpec kWork = {"train", kRows, 4, 2};
constexpr int64_t kUnits = 6;  // in an epoch
const std::vector<VariableSpec> kVariables = {{.name = "seen", .shape = {kRows}}, {.name = "updates", .shape = {1}}};
// A gradient of -1 adds one.
const RuleSpec kAdds = {.learning_rate = 1};

// A process: what it trains, its session's client and its queue client.
class Learner {
 public:
  Learner(SimulatedStore& store, const std::string& task, int num_ps, FaultScript& faults, bool chief = false,
          const GateSpec& gate = {})
      : store_(store),
        chief_(chief),
        model_(kVariables, kAdds, num_ps),
        gradients_(kVariables, kAdds, num_ps),
        client_(store.Client(task, faults)),
        source_(store.client_transport(faults), store.addresses()[0], kWork, tally_,
                {.stop_requested = [this] { return store_.loop.Now() >= patience_; }}) {
    model_.binding.gate = gate;
    client_->work().Share(tally_);
  }

  absl::Status Join() {
    RETURN_IF_ERROR(client_->Join(chief_));
    client_->Bind(model_.binding);
    if (chief_ && !client_->ready()) RETURN_IF_ERROR(client_->Initialize(0, 0, nullptr));
    RETURN_IF_ERROR(client_->AwaitReady(absl::InfiniteFuture()).status());
    return client_->Pull(PullWhat::kEverything);
  }
  // Takes one more unit. False: there is none, for now or for good (`ended`).
  bool Take() {
    patience_ = store_.loop.Now() + absl::Seconds(1);
    const auto unit = source_.Take();
    patience_ = absl::InfiniteFuture();
    if (!unit.ok()) {
      has_to_join = absl::IsAborted(unit.status());
      EXPECT_TRUE(has_to_join || absl::IsCancelled(unit.status())) << unit.status();
      return false;
    }
    ended = !unit->has_value();
    if (!ended) in_hand.push_back(**unit);
    return !ended;
  }
  // Trains on its oldest unit that isn't lost; false: it has none.
  absl::StatusOr<bool> Train(std::optional<uint64_t> local_step = {}) {
    for (;;) {
      if (in_hand.empty()) return false;
      const WorkUnit unit = in_hand.front();
      in_hand.pop_front();
      if (!source_.Begin()) continue;
      std::vector<float> seen(kRows);
      for (int64_t row = unit.begin; row < unit.end; ++row) seen[static_cast<size_t>(row)] = -1;
      const float one = -1;
      std::memcpy(gradients_.memory[0].data(), seen.data(), gradients_.memory[0].size());
      std::memcpy(gradients_.memory[1].data(), &one, sizeof one);
      const auto pushed =
          client_->PushPull([&](size_t i) { return ByteSpan(gradients_.memory[i]); }, {.local_step = local_step});
      RETURN_IF_ERROR(pushed.status());
      RETURN_IF_ERROR(source_.Done());
      dropped = pushed->dropped;
      return true;
    }
  }
  // Recovers as a session does: units that the store has lost, or given to others, are begun anew.
  void TrainOrRecover() {
    auto trained = Train();
    if (absl::IsAborted(trained.status())) {
      ASSERT_EQ(Join(), absl::OkStatus());
      trained = true;
    }
    ASSERT_TRUE(trained.ok()) << trained.status();
  }

  StoreClient& client() { return *client_; }
  WorkerModel& model() { return model_; }
  bool ended = false;
  bool dropped = false;
  bool has_to_join = false;  // according to the last Take
  std::deque<WorkUnit> in_hand;

 private:
  SimulatedStore& store_;
  const bool chief_;
  WorkerModel model_;
  WorkerModel gradients_;
  const std::shared_ptr<WorkTally> tally_ = std::make_shared<WorkTally>();
  std::unique_ptr<StoreClient> client_;
  absl::Time patience_ = absl::InfiniteFuture();
  WorkQueueClient source_;
};

class WorkQueueClientTest : public ::testing::Test {
 protected:
  explicit WorkQueueClientTest(int num_ps = 1) : num_ps_(num_ps) {}

  std::unique_ptr<Learner> Start(const std::string& task, bool chief = false, const GateSpec& gate = {}) {
    auto learner = std::make_unique<Learner>(store_, task, num_ps_, faults_, chief, gate);
    EXPECT_EQ(learner->Join(), absl::OkStatus());
    return learner;
  }
  // Trains with all of them in turns, with two units in hand each, until there is nothing left.
  static void TrainToTheEnd(const std::vector<Learner*>& learners) {
    for (int turn = 0; turn < 1000; ++turn) {
      bool over = true;
      for (Learner* learner : learners) {
        if (!learner->ended && learner->in_hand.size() < 2) learner->Take();
        learner->TrainOrRecover();
        over = over && learner->ended && learner->in_hand.empty();
      }
      if (over) return;
    }
    FAIL() << "it doesn't end";
  }
  std::vector<float> Seen(Learner& learner) {
    EXPECT_EQ(learner.client().Pull(PullWhat::kEverything), absl::OkStatus());
    return learner.model().Values<float>(0);
  }
  void ExpectEachSeenInEveryEpoch(Learner& learner) {
    EXPECT_THAT(Seen(learner), Each(2));
    EXPECT_EQ(*learner.client().ReadGlobalStep(), 2 * kUnits);
  }
  nlohmann::json Work() {
    return nlohmann::json::parse(StatusJson(store_.service(0).MakeView())).value("work", nlohmann::json());
  }

  const int num_ps_;
  FaultScript faults_;
  SimulatedStore store_{num_ps_, {"chief:0", "worker:0", "worker:1"}};
};

TEST_F(WorkQueueClientTest, EachRowIsSeenOnceAnEpoch) {
  const auto chief = Start("chief:0", true);
  const auto worker = Start("worker:0");
  EXPECT_TRUE(Work().is_null());
  ASSERT_TRUE(chief->Take());
  EXPECT_EQ(Work()["name"], "train");
  EXPECT_EQ(Work()["handed_out"], 4);
  EXPECT_EQ(Work()["hands"][0]["task"], "chief:0");
  EXPECT_EQ(Work()["hands"][0]["units"], 1);
  EXPECT_THAT(*StatusTable(StatusJson(store_.service(0).MakeView())),
              HasSubstr("work queue train: epoch 0 of 2, 4 of 23 rows handed out, 0 units have come back\n"
                        "  chief:0      has 1 units\n"));
  TrainToTheEnd({chief.get(), worker.get()});
  ExpectEachSeenInEveryEpoch(*chief);
}

class WorkFaultTest : public WorkQueueClientTest,
                      public ::testing::WithParamInterface<std::tuple<FaultKind, uint64_t, StoreMethod>> {};

TEST_P(WorkFaultTest, EachRowIsSeenOnceAnEpochOverABadNetwork) {
  const auto chief = Start("chief:0", true);
  const auto worker = Start("worker:0");
  const auto [kind, first, method] = GetParam();
  faults_.Add({.kind = kind, .first = first, .times = 2, .method = static_cast<uint16_t>(method), .bytes = 3});
  TrainToTheEnd({chief.get(), worker.get()});
  EXPECT_EQ(faults_.met(), 2U);
  ExpectEachSeenInEveryEpoch(*chief);
}

INSTANTIATE_TEST_SUITE_P(Questions, WorkFaultTest,
                         ::testing::Combine(::testing::Values(FaultKind::kDropRequest, FaultKind::kDropReply,
                                                              FaultKind::kDelayRequest, FaultKind::kDelayReply,
                                                              FaultKind::kDuplicateRequest, FaultKind::kCutRequest,
                                                              FaultKind::kCutReply),
                                            ::testing::Values(1, 2, 5), ::testing::Values(StoreMethod::kTakeWork)));
INSTANTIATE_TEST_SUITE_P(Pushes, WorkFaultTest,
                         ::testing::Combine(::testing::Values(FaultKind::kDelayRequest, FaultKind::kDuplicateRequest,
                                                              FaultKind::kCutRequest, FaultKind::kCutReply),
                                            ::testing::Values(1, 2, 5), ::testing::Values(StoreMethod::kPushPull)));

// The worker is killed at every moment of its work: with units in hand, and with or without a push's answer on its way.
TEST_F(WorkQueueClientTest, WhoIsKilledLosesWhatItHasNotPushedAndNothingElse) {
  const auto chief = Start("chief:0", true);
  for (int trained = 0; trained < 3; ++trained) {
    auto killed = Start("worker:0");
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(killed->Take());
    for (int i = 0; i < trained; ++i) killed->TrainOrRecover();
    killed.reset();
    store_.Pass(absl::Seconds(4));  // its connections have broken
    ASSERT_TRUE(chief->Take());
    chief->TrainOrRecover();
  }
  TrainToTheEnd({chief.get()});
  ExpectEachSeenInEveryEpoch(*chief);
}

TEST_F(WorkQueueClientTest, WhoIsKilledBeforeItHearsThatItsPushIsCountedHasDoneIt) {
  const auto chief = Start("chief:0", true);
  auto killed = Start("worker:0");
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(killed->Take());
  faults_.Add({.kind = FaultKind::kDropReply, .times = 1000, .method = static_cast<uint16_t>(StoreMethod::kPushPull)});
  EXPECT_FALSE(killed->Train().ok()) << "it never hears of it";
  killed.reset();
  faults_ = FaultScript();
  const auto again = Start("worker:0");
  TrainToTheEnd({chief.get(), again.get()});
  ExpectEachSeenInEveryEpoch(*chief);
}

TEST_F(WorkQueueClientTest, ANewLifeOfATaskGivesBackWhatTheOldOneHad) {
  const auto chief = Start("chief:0", true);
  auto killed = Start("worker:0");
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(killed->Take());
  killed.reset();
  const auto again = Start("worker:0");
  ASSERT_TRUE(chief->Take());
  EXPECT_EQ(chief->in_hand.back(), (WorkUnit{0, 0, 4})) << "first of all";
  TrainToTheEnd({chief.get(), again.get()});
  ExpectEachSeenInEveryEpoch(*chief);
}

TEST_F(WorkQueueClientTest, WhatAWorkerHadThatIsTakenForDeadIsNotCountedTwice) {
  const auto chief = Start("chief:0", true);
  const auto stopped = Start("worker:0");
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(stopped->Take());
  store_.Pass(absl::Seconds(11));  // its lease has run out, but it goes on
  ASSERT_TRUE(chief->Take());
  EXPECT_EQ(chief->in_hand.back(), (WorkUnit{0, 0, 4}));
  EXPECT_TRUE(absl::IsAborted(stopped->Train().status()));
  ASSERT_EQ(stopped->Join(), absl::OkStatus());
  EXPECT_EQ(*stopped->Train(), false) << "what it had is others' now";
  EXPECT_THAT(Seen(*chief), Each(0));
  TrainToTheEnd({chief.get(), stopped.get()});
  ExpectEachSeenInEveryEpoch(*chief);
}

TEST_F(WorkQueueClientTest, WhoIsDoneLeavesTheRestToOthers) {
  const auto chief = Start("chief:0", true);
  const auto worker = Start("worker:0");
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(worker->Take());
  worker->TrainOrRecover();
  ASSERT_EQ(worker->client().Done(), absl::OkStatus());
  TrainToTheEnd({chief.get()});
  ExpectEachSeenInEveryEpoch(*chief);
}

TEST_F(WorkQueueClientTest, TheLastUnitsAreWaitedForAsTheirHolderMayDie) {
  const auto chief = Start("chief:0", true);
  auto worker = Start("worker:0");
  while (chief->Take()) {
    if (Work()["epoch"] == 1 && Work()["handed_out"] == 20) {
      ASSERT_TRUE(worker->Take());
    }
    while (!chief->in_hand.empty()) chief->TrainOrRecover();
  }
  EXPECT_FALSE(chief->ended) << "the worker has the last one";
  EXPECT_EQ(Work()["hands"][0]["waits"], true);
  worker.reset();
  store_.Pass(absl::Seconds(4));
  TrainToTheEnd({chief.get()});
  ExpectEachSeenInEveryEpoch(*chief);
}

TEST_F(WorkQueueClientTest, APsThatIsRestartedOnItsMemoryGoesOnWithItsWork) {
  const auto chief = Start("chief:0", true);
  auto killed = Start("worker:0");
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(killed->Take());
  ASSERT_TRUE(chief->Take());
  killed->TrainOrRecover();
  store_.KillPs(0);
  killed.reset();
  store_.StartPs(0);
  ASSERT_TRUE(chief->Take());
  chief->TrainOrRecover();
  store_.KillPs(0);
  store_.StartPs(0);
  store_.Pass(absl::Seconds(11));
  TrainToTheEnd({chief.get()});
  ExpectEachSeenInEveryEpoch(*chief);
}

// A worker that waits for work talks to nobody else.
TEST_F(WorkQueueClientTest, WhoWaitsForWorkHearsThatThePsHasLostItsMemory) {
  const auto chief = Start("chief:0", true);
  ASSERT_TRUE(chief->Take());
  store_.LosePs(0);
  store_.StartPs(0);
  EXPECT_FALSE(chief->Take());
  EXPECT_FALSE(chief->has_to_join) << "it will hear of it by its next push";
  EXPECT_TRUE(absl::IsAborted(chief->Train().status()));
  ASSERT_EQ(chief->Join(), absl::OkStatus());
  store_.LosePs(0);
  store_.StartPs(0);
  EXPECT_FALSE(chief->Take());
  EXPECT_TRUE(chief->has_to_join);
  ASSERT_EQ(chief->Join(), absl::OkStatus());
  TrainToTheEnd({chief.get()});
  ExpectEachSeenInEveryEpoch(*chief);
}

TEST_F(WorkQueueClientTest, TrainingFromACheckpointGoesOnWithWhatIsNotInIt) {
  const auto chief = Start("chief:0", true);
  const auto worker = Start("worker:0");
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(chief->Take());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(worker->Take());
  chief->TrainOrRecover();
  const auto cut = CutCheckpoint(chief->client()).value();
  std::vector<RestoredPart> parts(1);
  parts[0] = {.snapshot = *ExportPart(chief->client(), 0, cut.hold), .with_slots = true, .work = cut.work};
  WorkState state;
  ASSERT_EQ(Decode(cut.work, state), absl::OkStatus());
  EXPECT_EQ(state.next, 16);
  EXPECT_EQ(state.entries.size(), 3U);
  chief->TrainOrRecover();
  worker->TrainOrRecover();
  ASSERT_EQ(chief->client().Initialize(cut.global_step, cut.global_step, &parts), absl::OkStatus());
  ASSERT_EQ(chief->Join(), absl::OkStatus());
  EXPECT_EQ(chief->client().global_step(), 1);
  TrainToTheEnd({chief.get(), worker.get()});
  ExpectEachSeenInEveryEpoch(*chief);
}

TEST_F(WorkQueueClientTest, ADroppedContributionIsForOthers) {
  const GateSpec one_of_two = {.kind = GateKind::kSynchronous, .replicas_to_aggregate = 1, .total_replicas = 2};
  const auto chief = Start("chief:0", true, one_of_two);
  const auto late = Start("worker:0", false, one_of_two);
  ASSERT_TRUE(late->Take());
  ASSERT_TRUE(chief->Take());
  const uint64_t round = late->client().round();
  EXPECT_TRUE(*chief->Train(chief->client().round()));
  EXPECT_FALSE(chief->dropped);
  EXPECT_TRUE(*late->Train(round));
  EXPECT_TRUE(late->dropped);
  ASSERT_TRUE(chief->Take());
  EXPECT_EQ(chief->in_hand.back(), (WorkUnit{0, 0, 4}));
  for (;;) {
    if (chief->in_hand.empty() && !chief->Take()) break;
    ASSERT_TRUE(*chief->Train(chief->client().round()));
  }
  EXPECT_TRUE(chief->ended);
  ExpectEachSeenInEveryEpoch(*chief);
}

TEST_F(WorkQueueClientTest, WithoutAModelThereIsNoWorkAndAfterTheEndNoneAnyMore) {
  Learner worker(store_, "worker:0", 1, faults_);
  EXPECT_FALSE(worker.Take());
  EXPECT_FALSE(worker.ended) << "it hasn't joined";
  ASSERT_EQ(worker.client().Join(false), absl::OkStatus());
  EXPECT_FALSE(worker.Take());
  EXPECT_FALSE(worker.ended) << "there is no model";
  const auto chief = Start("chief:0", true);
  EXPECT_TRUE(worker.Take());
  store_.service(0).Shutdown("of the test");
  EXPECT_FALSE(worker.Take());
  EXPECT_TRUE(worker.ended);
}

TEST_F(WorkQueueClientTest, APsThatIsGoneIsNamed) {
  const auto chief = Start("chief:0", true);
  const auto tally = std::make_shared<WorkTally>();
  chief->client().work().Share(tally);
  WorkQueueClient source(store_.client_transport(), store_.addresses()[0], kWork, tally, {});
  store_.KillPs(0);
  const absl::Time before = store_.loop.Now();
  const auto unit = source.Take();
  EXPECT_TRUE(absl::IsUnavailable(unit.status()));
  EXPECT_THAT(std::string(unit.status().message()), HasSubstr("work queue 'train' on ps:0 (ps0:2222)"));
  EXPECT_GE(store_.loop.Now() - before, absl::Seconds(60));
  source.Stop();
  EXPECT_TRUE(absl::IsCancelled(source.Take().status()));
}

class WorkOfTwoPsTest : public WorkQueueClientTest {
 protected:
  WorkOfTwoPsTest() : WorkQueueClientTest(2) {}
};

TEST_F(WorkOfTwoPsTest, EachRowIsSeenOnceAnEpoch) {
  const auto chief = Start("chief:0", true);
  const auto worker = Start("worker:0");
  TrainToTheEnd({chief.get(), worker.get()});
  ExpectEachSeenInEveryEpoch(*chief);
}

TEST_F(WorkOfTwoPsTest, ACheckpointHasTheWorkOfAnUpdateThatItHasAndThatIsntCountedYet) {
  const auto chief = Start("chief:0", true);
  const auto worker = Start("worker:0");
  ASSERT_TRUE(worker->Take());
  ASSERT_TRUE(worker->Take());
  // Every ps has the update, but its count is late.
  faults_.Add({.kind = FaultKind::kDelayRequest,
               .first = 3,
               .method = static_cast<uint16_t>(StoreMethod::kPushPull),
               .delay = absl::Milliseconds(500)});
  absl::StatusOr<CheckpointCut> cut = absl::UnknownError("not cut");
  store_.loop.CallAt(store_.loop.Now() + absl::Milliseconds(100), [&] { cut = CutCheckpoint(chief->client()); });
  worker->TrainOrRecover();
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ(cut->global_step, 1);
  WorkState state;
  ASSERT_EQ(Decode(cut->work, state), absl::OkStatus());
  ASSERT_EQ(state.entries.size(), 1U);
  EXPECT_EQ(state.entries[0].begin, 4);
  EXPECT_EQ(state.entries[0].holder, 0U);
  EXPECT_TRUE(state.holders.empty());
}

TEST(LocalWorkTest, AProcessAloneTakesAllAndWaitsForNobody) {
  const auto queue = std::make_shared<WorkQueue>(1);
  const auto tally = std::make_shared<WorkTally>();
  LocalWork work(queue, tally, {"train", 5, 2, 1});
  EXPECT_EQ(**work.Take(), (WorkUnit{0, 0, 2}));
  EXPECT_EQ(**work.Take(), (WorkUnit{0, 2, 4}));
  EXPECT_TRUE(work.Begin());
  tally->Seal();
  tally->Counted();
  EXPECT_EQ(work.Done(), absl::OkStatus());
  EXPECT_EQ(**work.Take(), (WorkUnit{0, 4, 5}));
  EXPECT_EQ(*work.Take(), std::nullopt);
  EXPECT_EQ(queue->Save()->entries.size(), 2U) << "one is done";
  work.Stop();
  EXPECT_TRUE(absl::IsCancelled(work.Take().status()));
}

}  // namespace
}  // namespace muster::work_queue_client_test
