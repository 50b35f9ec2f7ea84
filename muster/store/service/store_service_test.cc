// The life of a ps, from the first join to its end, and what it refuses. What clients do with it step by step is in
// store_client_test.cc.
#include "muster/store/service/store_service.h"

#include <gmock/gmock.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/log.h"
#include "muster/store/client/checkpoint_calls.h"
#include "muster/store/client/cut_leader.h"
#include "muster/store/service/store_status.h"
#include "muster/store/testing/simulated_store.h"

namespace muster::store_service_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr, ::testing::Not;

const std::vector<VariableSpec> kVariables = {{.name = "w", .shape = {4}}, {.name = "b", .shape = {2}}};
const std::vector<std::string> kTasks = {"worker:0", "worker:1"};

class StoreServiceTest : public ::testing::Test {
 protected:
  // A chief that has joined and initialised.
  std::unique_ptr<StoreClient> Chief(SimulatedStore& store) {
    auto chief = store.Client("worker:0");
    EXPECT_EQ(chief->Join(true), absl::OkStatus());
    chief->Bind(model_.binding);
    EXPECT_EQ(chief->Initialize(0, 0, nullptr), absl::OkStatus());
    return chief;
  }
  std::unique_ptr<StoreClient> Worker(SimulatedStore& store, const std::string& task = "worker:1") {
    auto worker = store.Client(task);
    EXPECT_EQ(worker->Join(false), absl::OkStatus());
    worker->Bind(model_.binding);
    if (worker->ready()) {
      EXPECT_TRUE(worker->AwaitReady(absl::InfiniteFuture()).ok());
    }
    return worker;
  }
  absl::StatusOr<StoreClient::StepResult> Push(StoreClient& client) {
    return client.PushPull([this](size_t i) { return ByteSpan(gradients_.memory[i]); }, {});
  }
  nlohmann::json Status(SimulatedStore& store, int ps = 0) {
    return nlohmann::json::parse(StatusJson(store.service(ps).MakeView()));
  }

  WorkerModel model_{kVariables, {}, 1};
  WorkerModel gradients_{kVariables, {}, 1};
};

TEST_F(StoreServiceTest, EndsWhenAllAreDoneAndTellsWhoComesLate) {
  SimulatedStore store(1, kTasks);
  auto chief = Chief(store);
  auto worker = Worker(store);
  EXPECT_EQ(worker->Done(), absl::OkStatus());
  store.Pass(absl::Hours(1) - absl::Hours(1));
  EXPECT_EQ(Status(store)["state"], "ready");
  EXPECT_EQ(chief->Done(), absl::OkStatus());
  EXPECT_EQ(Status(store)["state"], "ended");
  EXPECT_FALSE(store.service(0).finished()) << "it lingers for late questions";
  auto late = store.Client("worker:1");
  EXPECT_EQ(late->Join(false), absl::OkStatus());
  EXPECT_TRUE(late->ended());
  store.Pass(absl::Milliseconds(300));
  EXPECT_TRUE(store.service(0).finished());
  EXPECT_EQ(store.service(0).outcome(), absl::OkStatus());
}

TEST_F(StoreServiceTest, LingersAsLongAsItIsToldUnlessItIsAskedToEnd) {
  SimulatedStore store(1, kTasks);
  store.linger = absl::Minutes(10);
  store.KillPs(0);
  store.StartPs(0);
  auto chief = Chief(store);
  auto worker = Worker(store);
  EXPECT_EQ(worker->Done(), absl::OkStatus());
  EXPECT_EQ(chief->Done(), absl::OkStatus());
  store.Pass(absl::Minutes(9));
  EXPECT_FALSE(store.service(0).finished());
  auto late = store.Client("worker:1");
  EXPECT_EQ(late->Join(false), absl::OkStatus());
  EXPECT_TRUE(late->ended()) << "a worker whose pod was replaced learns that there is nothing to do";
  store.service(0).Shutdown("a signal");
  EXPECT_FALSE(store.service(0).finished());
  store.Pass(absl::Milliseconds(300));
  EXPECT_TRUE(store.service(0).finished());
  EXPECT_EQ(store.service(0).outcome(), absl::OkStatus());
}

TEST_F(StoreServiceTest, AShutdownLingersNoLongerThanUsual) {
  SimulatedStore store(1, kTasks);
  store.linger = absl::Minutes(10);
  store.KillPs(0);
  store.StartPs(0);
  store.service(0).Shutdown("a signal");
  store.Pass(absl::Milliseconds(300));
  EXPECT_TRUE(store.service(0).finished());
}

TEST_F(StoreServiceTest, ADeadWorkerHoldsTheEndUpForItsGraceOnly) {
  SimulatedStore store(1, kTasks, {.lease = absl::Hours(1), .disconnect_grace = absl::Seconds(3)});
  auto chief = Chief(store);
  auto worker = Worker(store);
  EXPECT_EQ(chief->Done(), absl::OkStatus());
  worker.reset();  // its connection closes, as the kernel closes a dead process's
  store.Pass(absl::Milliseconds(2900));
  EXPECT_EQ(Status(store)["state"], "ready");
  store.Pass(absl::Milliseconds(100));
  EXPECT_EQ(Status(store)["state"], "ended");
}

TEST_F(StoreServiceTest, WhoNeverCameHoldsTheEndUpForItsGraceOnly) {
  SimulatedStore store(1, kTasks, {.late_join_grace = absl::Seconds(20)});
  auto chief = Chief(store);
  EXPECT_EQ(chief->Done(), absl::OkStatus());
  store.Pass(absl::Seconds(19));
  EXPECT_EQ(Status(store)["state"], "ready");
  ::testing::internal::CaptureStderr();
  SetUpLog("");
  store.Pass(absl::Seconds(1));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("training has ended: every task is done, but for worker:1 (never joined)"));
  EXPECT_EQ(Status(store)["state"], "ended");
}

TEST_F(StoreServiceTest, GivesUpWhenEveryoneHasLeft) {
  SimulatedStore store(1, kTasks, {.abandoned_after = absl::Minutes(5)});
  Chief(store).reset();
  store.Pass(absl::Minutes(4));
  EXPECT_EQ(Status(store)["state"], "ready") << "a restarted chief would find its model";
  store.Pass(absl::Minutes(1) + absl::Seconds(1));
  EXPECT_TRUE(store.service(0).finished());
  EXPECT_TRUE(absl::IsUnavailable(store.service(0).outcome())) << store.service(0).outcome();
}

TEST_F(StoreServiceTest, NobodyCameYetIsNoEnd) {
  SimulatedStore store(1, kTasks);
  store.Pass(absl::Hours(24));
  EXPECT_EQ(Status(store)["state"], "waiting for the chief");
}

TEST_F(StoreServiceTest, ShutdownTellsWhoTrainsAndWaitsForThemToLeave) {
  SimulatedStore store(1, kTasks);
  auto chief = Chief(store);
  auto worker = Worker(store);
  ASSERT_TRUE(Push(*worker).ok());
  EXPECT_EQ(chief->Shutdown("enough"), absl::OkStatus());
  store.Pass(absl::Seconds(2));
  const auto pushed = Push(*worker);
  EXPECT_TRUE(absl::IsCancelled(pushed.status())) << pushed.status();
  EXPECT_THAT(pushed.status().message(), HasSubstr("training has ended: shut down: enough"));
  // What the last checkpoint needs still works.
  EXPECT_EQ(*chief->ReadGlobalStep(), 1);
  EXPECT_EQ(chief->Pull(PullWhat::kEverything), absl::OkStatus());
  const auto cut = CutCheckpoint(*chief).value();
  EXPECT_TRUE(ExportPart(*chief, 0, cut.hold).ok());
  EXPECT_EQ(chief->Done(), absl::OkStatus());
  EXPECT_FALSE(store.service(0).finished());
  EXPECT_EQ(worker->Done(), absl::OkStatus());
  store.Pass(absl::Milliseconds(300));
  EXPECT_TRUE(store.service(0).finished());
  EXPECT_EQ(store.service(0).outcome(), absl::OkStatus());
}

TEST_F(StoreServiceTest, ShutdownWaitsNoLongerThanItsGrace) {
  SimulatedStore store(1, kTasks, {.lease = absl::Hours(1)});
  auto chief = Chief(store);
  store.service(0).Shutdown("a signal");
  store.Pass(absl::Seconds(20));
  EXPECT_FALSE(store.service(0).finished());
  store.Pass(absl::Milliseconds(300));
  EXPECT_TRUE(store.service(0).finished());
}

TEST_F(StoreServiceTest, ShutdownOfAPsThatNobodyUsesIsImmediate) {
  SimulatedStore store(1, kTasks);
  store.service(0).Shutdown("a signal");
  store.Pass(absl::Milliseconds(300));
  EXPECT_TRUE(store.service(0).finished());
}

TEST_F(StoreServiceTest, IsInUseWhileSomebodyTrains) {
  SimulatedStore store(1, kTasks);
  EXPECT_FALSE(store.service(0).IsInUse());
  auto chief = Chief(store);
  EXPECT_TRUE(store.service(0).IsInUse());
  ASSERT_EQ(chief->Done(), absl::OkStatus());
  EXPECT_FALSE(store.service(0).IsInUse());
  auto worker = Worker(store);
  EXPECT_TRUE(store.service(0).IsInUse());
  worker.reset();
  store.Pass(absl::Milliseconds(10));
  EXPECT_FALSE(store.service(0).IsInUse()) << "its connection is closed";
}

TEST_F(StoreServiceTest, ShutdownFreesWhoWaitsForTheChief) {
  SimulatedStore store(1, kTasks);
  auto worker = Worker(store);
  store.loop.CallAt(store.loop.Now() + absl::Seconds(1), [&] { store.service(0).Shutdown("enough"); });
  const auto ready = worker->AwaitReady(absl::InfiniteFuture());
  EXPECT_TRUE(absl::IsCancelled(ready.status())) << ready.status();
  const auto again = worker->AwaitReady(store.loop.Now() + absl::Seconds(5));
  EXPECT_TRUE(absl::IsCancelled(again.status())) << "and nobody waits after it: " << again.status();
}

TEST_F(StoreServiceTest, StatusSaysWhoWaitsForWhat) {
  SimulatedStore store(1, kTasks);
  auto worker = Worker(store);
  store.loop.CallAt(store.loop.Now() + absl::Seconds(1), [&] {
    const auto client = Status(store)["clients"][1];
    EXPECT_EQ(client["waiting_for"], "the chief to initialise the model");
    EXPECT_EQ(client["state"], "alive");
    EXPECT_EQ(Status(store)["clients"][0]["state"], "not joined");
    Chief(store);
  });
  ASSERT_TRUE(worker->AwaitReady(absl::InfiniteFuture()).ok());
  EXPECT_EQ(Status(store)["clients"][1]["waiting_for"], "");
  const auto table = StatusTable(StatusJson(store.service(0).MakeView())).value();
  EXPECT_THAT(table, Not(HasSubstr("staleness (updates"))) << "nothing was pushed: a heading without a line";
  EXPECT_THAT(table, AllOf(HasSubstr("worker:1"), HasSubstr("float32[4]"), HasSubstr("rule sgd")));
  EXPECT_FALSE(StatusTable("[1, 2").ok());
  EXPECT_FALSE(StatusTable("{}").ok());
}

// What a peer that is of the job but means no good can send.
class HostileTest : public StoreServiceTest {
 protected:
  template <typename T>
  absl::Status Send(StoreMethod method, const T& message, const std::vector<std::byte>& bulk = {}) {
    return SendBytes(static_cast<uint16_t>(method), Encode(message), bulk);
  }
  absl::Status SendBytes(uint16_t method, const std::string& control, const std::vector<std::byte>& bulk = {}) {
    std::optional<absl::Status> answer;
    Request request{.method = method, .control = control, .deadline = store_.loop.Now() + absl::Seconds(5)};
    if (!bulk.empty()) request.bulk = {bulk};
    channel_->Call(request, [&](const absl::StatusOr<Reply>& reply) { answer = reply.status(); });
    store_.loop.RunUntil([&] { return answer.has_value(); }, absl::InfiniteFuture());
    return *answer;
  }
  Stamp Join(uint64_t incarnation = 5) {
    EXPECT_EQ(Send(StoreMethod::kJoin, JoinRequest{"worker:1", incarnation, false, "x"}), absl::OkStatus());
    return {1, incarnation, 1};
  }

  SimulatedStore store_{1, kTasks};
  SimulatedTransport transport_{store_.network, store_.loop};
  std::unique_ptr<Channel> channel_ = transport_.Connect(store_.addresses()[0]);
};

TEST_F(HostileTest, GarbageIsAnsweredWithAnError) {
  for (uint16_t method = 0; method <= kStoreMethods + 1; ++method) {
    if (method == static_cast<uint16_t>(StoreMethod::kStatus)) continue;  // takes no message
    EXPECT_FALSE(SendBytes(method, "\xff\xff\xff").ok()) << method;
    EXPECT_FALSE(SendBytes(method, "\xff\xff\xff", std::vector<std::byte>(10)).ok()) << method;
  }
  EXPECT_TRUE(absl::IsUnimplemented(SendBytes(99, "")));
  EXPECT_EQ(Status(store_)["state"], "waiting for the chief");
}

TEST_F(HostileTest, RequestsOfStrangersAreRefused) {
  const Stamp stranger = {1, 5, 1};
  EXPECT_TRUE(absl::IsAborted(Send(StoreMethod::kHeartbeat, HeartbeatRequest{stranger})));
  EXPECT_TRUE(absl::IsAborted(Send(StoreMethod::kDone, DoneRequest{{4000000000u, 5, 1}})));
  EXPECT_TRUE(absl::IsAborted(Send(StoreMethod::kAwaitReady, AwaitReadyRequest{stranger, {}})));
  EXPECT_TRUE(absl::IsAborted(Send(StoreMethod::kInitialize, InitializeRequest{.stamp = stranger})));
  EXPECT_TRUE(absl::IsAborted(Send(StoreMethod::kSavePart, SavePartRequest{.stamp = stranger})));
  auto chief = Chief(store_);
  EXPECT_TRUE(absl::IsAborted(Send(StoreMethod::kPushPull, PushPullRequest{.stamp = stranger})));
  EXPECT_TRUE(absl::IsAborted(Send(StoreMethod::kExportPart, ExportPartRequest{stranger})));
  EXPECT_TRUE(absl::IsAborted(Send(StoreMethod::kFetchPart, FetchPartRequest{.stamp = stranger})));
  EXPECT_TRUE(absl::IsAborted(Send(StoreMethod::kSeesDirectory, SeesDirectoryRequest{.stamp = stranger})));
}

TEST_F(HostileTest, OnlyTheChiefInitialisesSavesAndCommits) {
  const Stamp stamp = Join();
  auto chief = Chief(store_);
  for (const uint64_t epoch : {uint64_t{0}, chief->chief_epoch()}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(
        Send(StoreMethod::kInitialize, InitializeRequest{.stamp = stamp, .chief_epoch = epoch})));
    EXPECT_TRUE(absl::IsFailedPrecondition(
        Send(StoreMethod::kSavePart, SavePartRequest{.stamp = stamp, .chief_epoch = epoch})));
    EXPECT_TRUE(absl::IsFailedPrecondition(
        Send(StoreMethod::kExportPart, ExportPartRequest{.stamp = stamp, .chief_epoch = epoch})));
    EXPECT_TRUE(absl::IsFailedPrecondition(
        Send(StoreMethod::kFetchPart, FetchPartRequest{.stamp = stamp, .chief_epoch = epoch})));
    EXPECT_TRUE(absl::IsFailedPrecondition(
        Send(StoreMethod::kSeesDirectory, SeesDirectoryRequest{.stamp = stamp, .chief_epoch = epoch})));
    EXPECT_TRUE(absl::IsFailedPrecondition(
        Send(StoreMethod::kCommitCheckpoint, CommitCheckpointRequest{.stamp = stamp, .chief_epoch = epoch})));
  }
}

TEST_F(HostileTest, NoNameFromOutsideLeavesTheModelDir) {
  auto chief = Chief(store_);
  const std::string part = "model.ckpt-1.part-00000-of-00001.a1.safetensors";
  for (const std::string& file :
       {"/elsewhere/" + part, "../" + part, "model.ckpt-1/../../" + part, std::string("checkpoint"), std::string(),
        std::string("model.ckpt-1.manifest.json"), part + std::string("\0.safetensors", 13)}) {
    const absl::Status status = SavePart(*chief, 0, "model", "a1", file, 1).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << file << ": " << status;
  }
  for (const std::string& id : {std::string("../a"), std::string(), std::string("A"), std::string(65, 'a')}) {
    const absl::Status status = SavePart(*chief, 0, "model", id, part, 1).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << id << ": " << status;
    EXPECT_TRUE(absl::IsInvalidArgument(FindPsElsewhere(*chief, "model", id).status())) << id;
  }
  EXPECT_TRUE(absl::IsNotFound(SavePart(*chief, 0, "model", "a1", part, 1).status()));
}

TEST_F(HostileTest, WhatAPeerSaysOfItselfIsShortAndHasNoControlCharacters) {
  const std::string words = "host\n00:00:00.000 E [ps:0] all is lost\x1b[2J" + std::string(1 << 20, 'x');
  EXPECT_EQ(Send(StoreMethod::kJoin, JoinRequest{"worker:1", 5, false, words}), absl::OkStatus());
  const std::string shown = Status(store_)["clients"][1]["where"];
  EXPECT_THAT(shown, ::testing::StartsWith("host\\x0a00:00:00.000 E [ps:0] all is lost\\x1b[2Jxx"));
  EXPECT_LT(shown.size(), 300u);
  EXPECT_EQ(Send(StoreMethod::kShutdown, ShutdownRequest{words}), absl::OkStatus());
  EXPECT_LT(store_.service(0).MakeView().ending.size(), 300u);
}

TEST_F(HostileTest, PushesThatCannotBeMeantAreRefusedAndChangeNothing) {
  auto chief = Chief(store_);
  const Stamp stamp = Join();
  const std::vector<std::byte> bulk(16);
  const auto push = [&](const PushPullRequest& message, const std::vector<std::byte>& bytes) {
    const absl::Status status = Send(StoreMethod::kPushPull, message, bytes);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(push({.stamp = stamp, .pushed = {2}}, bulk), HasSubstr("slice 2 of 2"));
  EXPECT_THAT(push({.stamp = stamp, .pushed = {4294967295u}}, bulk), HasSubstr("slice 4294967295"));
  push({.stamp = stamp, .pushed = {0, 0}}, std::vector<std::byte>(32));
  push({.stamp = stamp, .pushed = {1, 0}}, std::vector<std::byte>(24));
  EXPECT_THAT(push({.stamp = stamp, .pushed = {0}}, std::vector<std::byte>(15)), HasSubstr("takes 16 bytes, but 15"));
  push({.stamp = stamp, .pushed = {0}}, {});
  push({.stamp = stamp}, bulk);
  push({.stamp = stamp, .pull = static_cast<PullWhat>(9)}, {});
  EXPECT_EQ(Status(store_)["version"], 0);
}

TEST_F(HostileTest, OnlyPsZeroCounts) {
  SimulatedStore store(2, kTasks);
  WorkerModel model(kVariables, {}, 2);
  auto chief = store.Client("worker:0");
  ASSERT_EQ(chief->Join(true), absl::OkStatus());
  chief->Bind(model.binding);
  ASSERT_EQ(chief->Initialize(0, 0, nullptr), absl::OkStatus());
  SimulatedTransport transport(store.network, store.loop);
  const auto channel = transport.Connect(store.addresses()[1]);
  std::optional<absl::Status> answer;
  channel->Call({.method = static_cast<uint16_t>(StoreMethod::kPushPull),
                 .control = Encode(PushPullRequest{.stamp = chief->MakeStamp(1, 0), .minibatches = 1})},
                [&](const absl::StatusOr<Reply>& reply) { answer = reply.status(); });
  store.loop.RunUntil([&] { return answer.has_value(); }, absl::InfiniteFuture());
  EXPECT_TRUE(absl::IsInvalidArgument(*answer)) << *answer;
}

TEST_F(HostileTest, ModelsThatCannotBeMeantAreRefused) {
  EXPECT_EQ(Send(StoreMethod::kJoin, JoinRequest{"worker:0", 5, true, "x"}), absl::OkStatus());
  StoreModel unknown_type = ModelOn(kVariables, {});
  unknown_type.variables[0].dtype = static_cast<DType>(77);
  StoreModel huge = ModelOn({{.name = "w", .shape = {int64_t{1} << 43}}}, {});
  StoreModel bad_rule = ModelOn(kVariables, {.learning_rate = -1});
  for (const StoreModel& model : {unknown_type, huge, bad_rule}) {
    for (const size_t bytes : {0, 8, 24}) {
      const absl::Status status =
          Send(StoreMethod::kInitialize, InitializeRequest{.stamp = {0, 5, 1}, .chief_epoch = 1, .model = model},
               std::vector<std::byte>(bytes));
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    }
  }
  const absl::Status steps = Send(
      StoreMethod::kInitialize,
      InitializeRequest{
          .stamp = {0, 5, 1}, .chief_epoch = 1, .model = ModelOn(kVariables, {}), .with_slots = true, .steps = {1}},
      std::vector<std::byte>(24));
  EXPECT_TRUE(absl::IsInvalidArgument(steps)) << steps;
  EXPECT_EQ(Status(store_)["state"], "waiting for the chief");
  EXPECT_TRUE(absl::IsInvalidArgument(Send(StoreMethod::kAwaitReady, AwaitReadyRequest{{0, 5, 0}, unknown_type})));
}

TEST_F(HostileTest, APushWhoseValuesWereLoadedAnewWhileItCameInIsRefused) {
  auto chief = Chief(store_);
  const Stamp stamp = Join();
  StoreService& service = store_.service(0);
  IncomingRequest request{.connection = ConnectionId{99},
                          .method = static_cast<uint16_t>(StoreMethod::kPushPull),
                          .control = Encode(PushPullRequest{.stamp = stamp, .pushed = {0}, .generation = 1}),
                          .bulk_bytes = 16};
  auto bulk = service.PrepareBulk(request).value();
  // While the bytes are on their way, the chief loads other values.
  ASSERT_EQ(chief->Initialize(0, 0, nullptr), absl::OkStatus());
  struct Sink final : Responder::Sink {
    explicit Sink(absl::Status& into) : into(into) {}
    void Send(uint64_t, absl::Status status, absl::string_view, absl::Span<const ByteSpan>,
              std::shared_ptr<const void>) override {
      into = std::move(status);
    }
    absl::Status& into;
  };
  absl::Status answer;
  service.Handle(request, std::move(bulk), Responder(std::make_unique<Sink>(answer)));
  EXPECT_TRUE(absl::IsAborted(answer)) << answer;
}

}  // namespace
}  // namespace muster::store_service_test
