// What workers do with parameter servers, step by step: joining, waiting, training, and the numbers that come of it.
// Faults on the way are in store_fault_test.cc, the life of a ps in store_service_test.cc.
#include "muster/store/client/store_client.h"

#include <gmock/gmock.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/log.h"
#include "muster/store/client/checkpoint_calls.h"
#include "muster/store/client/cut_leader.h"
#include "muster/store/service/store_status.h"
#include "muster/store/testing/joining.h"
#include "muster/store/testing/simulated_store.h"

namespace muster::store_client_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr;

const std::vector<VariableSpec> kVariables = {
    {.name = "w", .shape = {50, 1000}},
    {.name = "b", .dtype = DType::kFloat64, .shape = {7}},
    {.name = "scale"},
    {.name = "none", .shape = {0, 3}},
    {.name = "frozen", .shape = {5}, .kind = VariableKind::kFrozen},
    {.name = "mean", .shape = {6}, .kind = VariableKind::kBuffer},
    {.name = "batches", .dtype = DType::kInt64, .kind = VariableKind::kBuffer},
};
// Heartbeats come from a thread of the node; a client alone that waits for long would be taken for dead.
const LeaseOptions kLongLease = {.lease = absl::Hours(10)};
const std::vector<std::string> kTasks = {"chief:0", "worker:0", "worker:1", "worker:2"};

// A process that trains: its client and its copy of the model.
struct Process {
  Process(SimulatedStore& store, const std::string& task, const std::vector<VariableSpec>& variables,
          const RuleSpec& rule, const Partitioning& partitioning = {})
      : model(variables, rule, static_cast<int>(store.addresses().size()), partitioning),
        gradients(variables, rule, static_cast<int>(store.addresses().size()), partitioning),
        client(store.Client(task)) {}

  absl::Status JoinAsChief(double phase = 1) {
    model.Fill(phase);
    return muster::JoinAsChief(*client, model.binding);
  }
  absl::Status JoinAsWorker() { return muster::JoinAsWorker(*client, model.binding); }
  StoreClient::StepResult Push(double phase, const StoreClient::PushPullOptions& options = {}) {
    gradients.Fill(phase);
    const auto result = client->PushPull([this](size_t i) { return ByteSpan(gradients.memory[i]); }, options);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value_or(StoreClient::StepResult());
  }

  WorkerModel model;
  WorkerModel gradients;
  std::unique_ptr<StoreClient> client;
};

nlohmann::json StatusOf(SimulatedStore& store, int ps) {
  return nlohmann::json::parse(StatusJson(store.service(ps).MakeView()));
}

TEST(StoreClientTest, AWorkerThatCameBeforeTheChiefIsToldWhenItMayBegin) {
  SimulatedStore store(2, kTasks, kLongLease);
  Process chief(store, "chief:0", kVariables, {});
  Process worker(store, "worker:0", kVariables, {});
  const absl::Time begin = store.loop.Now();
  store.loop.CallAt(begin + absl::Minutes(17), [&] { EXPECT_EQ(chief.JoinAsChief(), absl::OkStatus()); });
  ASSERT_EQ(worker.client->Join(false), absl::OkStatus());
  EXPECT_FALSE(worker.client->ready());
  worker.client->Bind(worker.model.binding);
  const auto step = worker.client->AwaitReady(absl::InfiniteFuture()).value();
  EXPECT_EQ(step, 0);
  EXPECT_EQ(store.loop.Now(), begin + absl::Minutes(17)) << "not a moment later";
  for (int ps = 0; ps < 2; ++ps) EXPECT_EQ(StatusOf(store, ps)["requests"]["await_ready"], 1) << "no polling";
  ASSERT_EQ(worker.client->Pull(PullWhat::kEverything), absl::OkStatus());
  EXPECT_EQ(worker.model.memory, chief.model.memory) << "frozen variables and buffers too";
}

TEST(StoreClientTest, WhoWaitsForTheModelSaysWhatThePsKnowOfTheChief) {
  SimulatedStore store(2, kTasks, kLongLease);
  Process chief(store, "chief:0", kVariables, {});
  Process worker(store, "worker:0", kVariables, {});
  ASSERT_EQ(worker.client->Join(false), absl::OkStatus());
  worker.client->Bind(worker.model.binding);
  store.loop.CallAt(store.loop.Now() + absl::Seconds(15),
                    [&] { EXPECT_EQ(chief.client->Join(true), absl::OkStatus()); });
  ::testing::internal::CaptureStderr();
  SetUpLog("");
  EXPECT_TRUE(absl::IsUnavailable(worker.client->AwaitReady(store.loop.Now() + absl::Seconds(30)).status()));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("waiting since 10s for the chief to bring ps:0 (ps0:2222) the model: no task has joined "
                             "as the chief; giving up in 20s\n"));
  EXPECT_THAT(log,
              ::testing::ContainsRegex("waiting since 20s for the chief .*: chief:0 is the chief .*, alive; giving"));
}

TEST(StoreClientTest, AwaitReadyKeepsItsDeadline) {
  SimulatedStore store(1, kTasks, kLongLease);
  Process worker(store, "worker:0", kVariables, {});
  ASSERT_EQ(worker.client->Join(false), absl::OkStatus());
  worker.client->Bind(worker.model.binding);
  const absl::Time deadline = store.loop.Now() + absl::Hours(2);
  const auto step = worker.client->AwaitReady(deadline);
  EXPECT_TRUE(absl::IsUnavailable(step.status())) << step.status();
  EXPECT_THAT(step.status().message(), AllOf(HasSubstr("ps:0 (ps0:2222"), HasSubstr("2h")));
  EXPECT_EQ(store.loop.Now(), deadline);
}

// A chief that is stopped in the middle of joining: the first ps has it, the second hasn't heard of it yet. Or none
// has: it is still asking whether all are there.
TEST(StoreClientTest, AChiefThatIsStoppedWhileItJoinsEndsTrainingForAll) {
  for (const auto& [num_ps, at_once] : {std::pair(1, true), {3, false}, {3, true}}) {
    SimulatedStore store(num_ps, {"chief:0", "worker:0"}, kLongLease);
    Process worker(store, "worker:0", kVariables, {});
    Process chief(store, "chief:0", kVariables, {});
    ASSERT_EQ(worker.client->Join(false), absl::OkStatus());
    worker.client->Bind(worker.model.binding);
    chief.client = store.Client("chief:0", {.stop_requested = [&, soon = at_once] {
                                  return soon || StatusOf(store, 0)["chief"]["task"] == "chief:0";
                                }});
    store.loop.CallAt(store.loop.Now() + absl::Seconds(1), [&] {
      EXPECT_TRUE(absl::IsCancelled(chief.client->Join(true)));
      EXPECT_EQ(chief.client->Done(), absl::OkStatus());
    });
    const absl::Time begin = store.loop.Now();
    const absl::Status ended = worker.client->AwaitReady(begin + absl::Hours(1)).status();
    EXPECT_TRUE(absl::IsCancelled(ended)) << ended;
    EXPECT_THAT(ended.message(), HasSubstr("the chief was done before there was a model"));
    // A client that comes later hears it, too.
    EXPECT_TRUE(absl::IsCancelled(worker.client->AwaitReady(begin + absl::Hours(1)).status()));
    EXPECT_EQ(worker.client->Done(), absl::OkStatus());
    store.Pass(absl::Seconds(1));
    for (int ps = 0; ps < num_ps; ++ps) EXPECT_TRUE(store.service(ps).finished()) << ps;
    EXPECT_LE(store.loop.Now() - begin, absl::Seconds(4));
  }
}

TEST(StoreClientTest, WhoWasNeverKnownHasNobodyToTellThatItIsDone) {
  SimulatedStore store(2, kTasks);
  Process worker(store, "worker:0", kVariables, {});
  EXPECT_EQ(worker.client->Done(), absl::OkStatus());
  EXPECT_TRUE(StatusOf(store, 0)["requests"].empty()) << StatusOf(store, 0)["requests"];
}

TEST(StoreClientTest, AStopEndsTheWaitingForTheChief) {
  SimulatedStore store(1, kTasks);
  bool stop = false;
  Process worker(store, "worker:0", kVariables, {});
  worker.client = store.Client("worker:0", {.stop_requested = [&] { return stop; }});
  ASSERT_EQ(worker.client->Join(false), absl::OkStatus());
  worker.client->Bind(worker.model.binding);
  store.loop.CallAt(store.loop.Now() + absl::Seconds(3), [&] { stop = true; });
  const absl::Time begin = store.loop.Now();
  EXPECT_TRUE(absl::IsCancelled(worker.client->AwaitReady(absl::InfiniteFuture()).status()));
  EXPECT_EQ(store.loop.Now(), begin + absl::Seconds(3));
}

TEST(StoreClientTest, AStopEndsTheWaitingForAPs) {
  SimulatedStore store(1, kTasks);
  store.KillPs(0);
  bool stop = false;
  auto client = store.Client("worker:0", {.stop_requested = [&] { return stop; }});
  store.loop.CallAt(store.loop.Now() + absl::Seconds(3), [&] { stop = true; });
  EXPECT_TRUE(absl::IsCancelled(client->Join(false)));
}

struct Layout {
  int num_ps;
  Partitioning partitioning;
  RuleSpec rule;
};

class PushPullTest : public ::testing::TestWithParam<Layout> {};

// Two processes take turns; each update is the rule on the whole variable, whatever ps hold which part of it.
TEST_P(PushPullTest, GivesWhatThePlainRuleGives) {
  const auto& [num_ps, partitioning, rule_spec] = GetParam();
  SimulatedStore store(num_ps, kTasks);
  Process chief(store, "chief:0", kVariables, rule_spec, partitioning);
  Process worker(store, "worker:0", kVariables, rule_spec, partitioning);
  ASSERT_EQ(chief.JoinAsChief(), absl::OkStatus());
  ASSERT_EQ(worker.JoinAsWorker(), absl::OkStatus());
  std::vector<std::vector<std::byte>> expected = chief.model.memory;
  const auto rule = *MakeUpdateRule(rule_spec);
  std::vector<std::vector<std::vector<std::byte>>> slots(kVariables.size());
  for (size_t i = 0; i < slots.size(); ++i)
    slots[i].assign(rule->slots().size(), std::vector<std::byte>(expected[i].size()));

  for (uint64_t t = 1; t <= 12; ++t) {
    Process& process = t % 3 == 0 ? worker : chief;
    const auto result = process.Push(0.1 * static_cast<double>(t));
    EXPECT_EQ(result.global_step, static_cast<int64_t>(t));
    for (size_t i = 0; i < kVariables.size(); ++i) {
      if (kVariables[i].kind == VariableKind::kTrainable) {
        const std::vector<MutableByteSpan> spans(slots[i].begin(), slots[i].end());
        rule->Apply(kVariables[i].dtype, expected[i], spans, process.gradients.memory[i],
                    {.learning_rate = rule_spec.learning_rate, .t = t});
      }
      ASSERT_EQ(process.model.memory[i], expected[i]) << kVariables[i].name << " after update " << t;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, PushPullTest,
    ::testing::Values(Layout{1, {}, {}}, Layout{2, {}, {.kind = RuleKind::kMomentum}},
                      Layout{3, {}, {.kind = RuleKind::kAdam}}, Layout{9, {}, {.kind = RuleKind::kAdam}},
                      Layout{1, {.kind = Partitioning::Kind::kFixed, .shards = 3}, {.kind = RuleKind::kAdam}},
                      Layout{2, {.kind = Partitioning::Kind::kFixed, .shards = 5}, {.kind = RuleKind::kMomentum}},
                      Layout{3, {.kind = Partitioning::Kind::kMaxBytes, .max_shard_bytes = 9000}, {}}),
    [](const auto& info) {
      return RuleName(info.param.rule.kind) + "_on_" + std::to_string(info.param.num_ps) +
             (info.param.partitioning.kind == Partitioning::Kind::kNone ? "" : "_partitioned");
    });

TEST(StoreClientTest, SgdAgainstTheRuleOnPaper) {
  SimulatedStore store(2, kTasks);
  const RuleSpec rule = {.learning_rate = 0.5};
  Process chief(store, "chief:0", kVariables, rule, {.kind = Partitioning::Kind::kFixed, .shards = 4});
  ASSERT_EQ(chief.JoinAsChief(), absl::OkStatus());
  const std::vector<float> before = chief.model.Values<float>(0);
  chief.Push(3);
  const std::vector<float> gradient = chief.gradients.Values<float>(0);
  const std::vector<float> after = chief.model.Values<float>(0);
  for (size_t i = 0; i < before.size(); ++i) ASSERT_EQ(after[i], before[i] - 0.5f * gradient[i]) << i;
}

TEST(StoreClientTest, AVariableWithoutAGradientIsLeftAlone) {
  SimulatedStore store(1, kTasks);
  Process chief(store, "chief:0", kVariables, {.kind = RuleKind::kAdam});
  ASSERT_EQ(chief.JoinAsChief(), absl::OkStatus());
  const std::vector<std::vector<std::byte>> before = chief.model.memory;
  chief.gradients.Fill(2);
  const auto only_second = [&](size_t i) { return i == 1 ? ByteSpan(chief.gradients.memory[1]) : ByteSpan(); };
  ASSERT_TRUE(chief.client->PushPull(only_second, {}).ok());
  EXPECT_EQ(chief.model.memory[0], before[0]);
  EXPECT_NE(chief.model.memory[1], before[1]);
  const PartSnapshot snapshot = store.Snapshot(0);
  // 50,000 elements are four stripes whose counter has not moved.
  EXPECT_THAT(snapshot.steps, ::testing::ElementsAre(0, 0, 0, 0, 1, 0, 0, 0, 0));
}

TEST(StoreClientTest, NWorkersTakingTurnsHaveStalenessNMinusOne) {
  for (const int num_ps : {1, 2}) {
    for (size_t n = 1; n <= 4; ++n) {
      SimulatedStore store(num_ps, kTasks);
      std::vector<std::unique_ptr<Process>> processes;
      for (size_t i = 0; i < n; ++i) {
        processes.push_back(std::make_unique<Process>(store, kTasks[i], kVariables, RuleSpec{}));
        if (i == 0) {
          ASSERT_EQ(processes[0]->JoinAsChief(), absl::OkStatus());
        }
        ASSERT_EQ(processes[i]->JoinAsWorker(), absl::OkStatus());
      }
      for (int round = 0; round < 5; ++round) {
        for (size_t i = 0; i < n; ++i) {
          const auto result = processes[i]->Push(1);
          EXPECT_EQ(result.staleness, round == 0 ? i : n - 1)
              << n << " workers on " << num_ps << " ps, round " << round;
        }
      }
      EXPECT_EQ(StatusOf(store, 0)["staleness"][n - 1], 4 * n + 1);
      EXPECT_EQ(StatusOf(store, 0)["clients"][0]["pushes"], 5);
    }
  }
}

TEST(StoreClientTest, BuffersAreNoUpdatesAndHaveNoStaleness) {
  // Round robin puts the trainable variable on ps 0 and the buffer, alone, on ps 1.
  SimulatedStore store(2, kTasks);
  const std::vector<VariableSpec> variables = {{.name = "w", .shape = {3}},
                                               {.name = "mean", .shape = {3}, .kind = VariableKind::kBuffer}};
  Process chief(store, "chief:0", variables, {});
  ASSERT_EQ(chief.JoinAsChief(), absl::OkStatus());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(chief.Push(1, {.publish_buffers = true}).staleness, 0u);
  EXPECT_EQ(StatusOf(store, 1)["staleness"], nlohmann::json::array());
}

TEST(StoreClientTest, TheChiefPublishesItsBuffersAndWorkersKeepTheirOwn) {
  for (const int num_ps : {1, 3}) {
    SimulatedStore store(num_ps, kTasks);
    const Partitioning partitioning = {.kind = Partitioning::Kind::kFixed, .shards = 2};
    Process chief(store, "chief:0", kVariables, {}, partitioning);
    Process worker(store, "worker:0", kVariables, {}, partitioning);
    ASSERT_EQ(chief.JoinAsChief(), absl::OkStatus());
    ASSERT_EQ(worker.JoinAsWorker(), absl::OkStatus());
    const std::vector<std::byte> frozen = chief.model.memory[4];
    chief.model.memory[4].assign(frozen.size(), std::byte{1});
    chief.model.memory[5].assign(24, std::byte{2});
    chief.model.memory[6].assign(8, std::byte{3});
    worker.model.memory[5].assign(24, std::byte{9});
    worker.Push(1);
    EXPECT_EQ(worker.model.memory[5], std::vector<std::byte>(24, std::byte{9}));
    chief.Push(1, {.publish_buffers = true});
    worker.Push(1);
    EXPECT_EQ(worker.model.memory[5], std::vector<std::byte>(24, std::byte{9})) << "not asked for";
    ASSERT_EQ(worker.client->Pull(PullWhat::kEverything), absl::OkStatus());
    EXPECT_EQ(worker.model.memory[5], std::vector<std::byte>(24, std::byte{2}));
    EXPECT_EQ(worker.model.memory[6], std::vector<std::byte>(8, std::byte{3}));
    EXPECT_EQ(worker.model.memory[4], frozen) << "nothing changes a frozen variable";
  }
}

TEST(StoreClientTest, CountingIsAskedForAndPullingIsNoStep) {
  SimulatedStore store(2, kTasks);
  Process chief(store, "chief:0", kVariables, {});
  ASSERT_EQ(chief.JoinAsChief(), absl::OkStatus());
  EXPECT_EQ(chief.Push(1).global_step, 1);
  EXPECT_EQ(chief.Push(2, {.minibatches = 8}).global_step, 2);
  chief.Push(3, {.minibatches = 0});
  ASSERT_EQ(chief.client->Pull(PullWhat::kEverything), absl::OkStatus());
  EXPECT_EQ(*chief.client->ReadGlobalStep(), 2);
  EXPECT_EQ(StatusOf(store, 0)["minibatches"], 9);
  EXPECT_EQ(StatusOf(store, 0)["version"], 3);
}

TEST(StoreClientTest, AnotherModelThanTheChiefsIsRefusedBeforeAndAfterInitialisation) {
  std::vector<VariableSpec> other = kVariables;
  other[1].shape = {9};
  for (const bool before : {true, false}) {
    SimulatedStore store(2, kTasks);
    Process chief(store, "chief:0", kVariables, {});
    Process worker(store, "worker:0", other, {});
    store.loop.CallAt(store.loop.Now() + absl::Seconds(before ? 5 : 0),
                      [&] { EXPECT_EQ(chief.JoinAsChief(), absl::OkStatus()); });
    if (!before) store.Pass(absl::Seconds(1));
    const absl::Status status = worker.JoinAsWorker();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("worker:0 has 'b' float64[9]"), HasSubstr("the chief has 'b' float64[7]")));
    chief.Push(1);
  }
}

TEST(StoreClientTest, ASecondLivingChiefIsRefusedAndTheHolderNamed) {
  SimulatedStore store(1, kTasks);
  Process chief(store, "worker:0", kVariables, {});
  ASSERT_EQ(chief.JoinAsChief(), absl::OkStatus());
  Process second(store, "worker:1", kVariables, {});
  const absl::Status status = second.JoinAsChief();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), AllOf(HasSubstr("worker:1 says it is the chief"), HasSubstr("worker:0")));
  chief.Push(1);
}

TEST(StoreClientTest, AChiefThatLostItsLeaseCannotInitialiseAnyMore) {
  SimulatedStore store(1, kTasks);
  Process old(store, "worker:0", kVariables, {});
  ASSERT_EQ(old.JoinAsChief(), absl::OkStatus());
  store.Pass(absl::Seconds(11));  // no heartbeats
  Process heir(store, "worker:1", kVariables, {});
  ASSERT_EQ(heir.client->Join(true), absl::OkStatus());
  EXPECT_GT(heir.client->chief_epoch(), old.client->chief_epoch());
  const absl::Status status = old.client->Initialize(0, 0, nullptr);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), AllOf(HasSubstr("worker:0 is not the chief any more"), HasSubstr("worker:1")));
  EXPECT_TRUE(absl::IsFailedPrecondition(CommitCheckpoint(*old.client, "", "")));
}

TEST(StoreClientTest, ARestartedChiefFindsItsModelAndItsPushesCount) {
  SimulatedStore store(2, kTasks);
  std::vector<std::vector<std::byte>> trained;
  {
    Process chief(store, "chief:0", kVariables, {.kind = RuleKind::kAdam});
    ASSERT_EQ(chief.JoinAsChief(), absl::OkStatus());
    for (int i = 0; i < 5; ++i) chief.Push(i);
    trained = chief.model.memory;
  }
  Process again(store, "chief:0", kVariables, {.kind = RuleKind::kAdam});
  ASSERT_EQ(again.client->Join(true), absl::OkStatus());
  EXPECT_TRUE(again.client->ready());
  EXPECT_EQ(again.client->chief_epoch(), 2u);
  again.client->Bind(again.model.binding);
  EXPECT_EQ(*again.client->AwaitReady(absl::InfiniteFuture()), 5);
  ASSERT_EQ(again.client->Pull(PullWhat::kEverything), absl::OkStatus());
  EXPECT_EQ(again.model.memory, trained);
  EXPECT_EQ(again.Push(9).global_step, 6);
  EXPECT_NE(again.model.memory[0], trained[0]) << "its numbers go on where the earlier life's ended";
}

TEST(StoreClientTest, ARestartedTaskWaitsForTheLeaseOfALifeThatStillLooksAlive) {
  SimulatedStore store(1, kTasks);
  Process old(store, "worker:0", kVariables, {});
  ASSERT_EQ(old.client->Join(false), absl::OkStatus());
  const absl::Time begin = store.loop.Now();
  auto hasty = store.Client("worker:0", {.join_patience = absl::Seconds(2)});
  const absl::Status refused = hasty->Join(false);
  EXPECT_TRUE(absl::IsAlreadyExists(refused)) << refused;
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("ps:0"), HasSubstr("worker:0 is already running")));
  auto patient = store.Client("worker:0", {.join_patience = absl::Seconds(12)});
  EXPECT_EQ(patient->Join(false), absl::OkStatus());
  EXPECT_GE(store.loop.Now(), begin + kUnrenewedLease.lease);
  EXPECT_LT(store.loop.Now(), begin + kUnrenewedLease.lease + absl::Seconds(1));
  const absl::Status replaced = old.client->Done();
  EXPECT_TRUE(absl::IsFailedPrecondition(replaced)) << replaced;
}

TEST(StoreClientTest, ATaskThatIsNotOfTheClusterIsNamed) {
  SimulatedStore store(1, kTasks);
  auto client = store.Client("worker:7");
  const absl::Status status = client->Join(false);
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(status.message(), HasSubstr("worker:7"));
}

TEST(StoreClientTest, StateOfAPartComesOverTheWireAndBack) {
  SimulatedStore store(2, kTasks);
  Process chief(store, "chief:0", kVariables, {.kind = RuleKind::kAdam});
  ASSERT_EQ(chief.JoinAsChief(), absl::OkStatus());
  for (int i = 0; i < 3; ++i) chief.Push(i);
  std::vector<RestoredPart> parts(2);
  const auto cut = CutCheckpoint(*chief.client).value();
  for (int ps = 0; ps < 2; ++ps) {
    parts[ps].snapshot = *ExportPart(*chief.client, ps, cut.hold);
    parts[ps].with_slots = true;
  }
  chief.Push(8);
  const std::vector<std::vector<std::byte>> undisturbed = chief.model.memory;

  SimulatedStore other(2, kTasks);
  Process heir(other, "chief:0", kVariables, {.kind = RuleKind::kAdam});
  ASSERT_EQ(heir.client->Join(true), absl::OkStatus());
  heir.client->Bind(heir.model.binding);
  ASSERT_EQ(heir.client->Initialize(3, 30, &parts), absl::OkStatus());
  ASSERT_EQ(heir.JoinAsWorker(), absl::OkStatus());
  EXPECT_EQ(heir.Push(8).global_step, 4);
  EXPECT_EQ(heir.model.memory, undisturbed);
  EXPECT_EQ(StatusOf(other, 0)["minibatches"], 31);
}

TEST(StoreClientTest, TrafficIsCounted) {
  SimulatedStore store(2, kTasks);
  Process chief(store, "chief:0", kVariables, {});
  ASSERT_EQ(chief.JoinAsChief(), absl::OkStatus());
  const Channel::Stats before = TrafficOf(*chief.client);
  chief.Push(1);
  const Channel::Stats after = TrafficOf(*chief.client);
  const uint64_t values = 50000 * 4 + 7 * 8 + 4;
  EXPECT_GE(after.bytes_sent - before.bytes_sent, values);
  EXPECT_LT(after.bytes_sent - before.bytes_sent, values + 1000);
  EXPECT_GE(after.bytes_received - before.bytes_received, values);
  EXPECT_EQ(after.calls - before.calls, 3u) << "one to each ps, and the counting";
}

}  // namespace
}  // namespace muster::store_client_test
