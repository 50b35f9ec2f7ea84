#include "muster/store/direct/direct_apply.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "muster/base/log.h"
#include "muster/base/wrong_configuration.h"
#include "muster/store/direct/arena_listener.h"
#include "muster/store/service/passing_handler.h"
#include "muster/store/testing/direct_worker.h"
#include "muster/store/testing/scripted_moment.h"

namespace muster::direct_apply_test {
namespace {

using ::testing::HasSubstr;

class DirectApplyTest : public ::testing::TestWithParam<int> {};

TEST_P(DirectApplyTest, TheSameBitsAndCountsAsThroughThePs) {
  OptimizerSpec optimizer(
      RuleSpec{.kind = RuleKind::kAdam,
               .learning_rate = 0.1,
               .clip = {ClipKind::kGlobalNorm, 3},
               .schedule = {.kind = ScheduleKind::kStep, .decay_steps = 3, .decay_rate = 0.5}},
      {{.variables = {"b"}, .rule = {.kind = RuleKind::kMomentum, .clip = {ClipKind::kGlobalNorm, 3}}}});
  const Partitioning partitioning = {.kind = Partitioning::Kind::kFixed, .shards = 2};
  SimulatedStore through(GetParam(), {"worker:0", "worker:1"});
  SimulatedStore beside(GetParam(), {"worker:0", "worker:1"}, kUnrenewedLease, nullptr, /*direct=*/true);
  DirectWorker a0(through, "worker:0", true, ApplyChoice::kAuto, optimizer, partitioning);
  DirectWorker a1(through, "worker:1", false, ApplyChoice::kAuto, optimizer, partitioning);
  DirectWorker b0(beside, "worker:0", true, ApplyChoice::kAuto, optimizer, partitioning);
  DirectWorker b1(beside, "worker:1", false, ApplyChoice::kAuto, optimizer, partitioning);
  for (DirectWorker* worker : {&a0, &a1, &b0, &b1}) ASSERT_EQ(worker->ready, absl::OkStatus());
  for (int step = 0; step < 10; ++step) {
    DirectWorker& a = step % 3 == 1 ? a1 : a0;
    DirectWorker& b = step % 3 == 1 ? b1 : b0;
    for (DirectWorker* worker : {&a, &b})  // batch statistics
      std::fill(worker->model.memory[1].begin(), worker->model.memory[1].end(), static_cast<std::byte>(step));
    const auto through_ps = a.Push(step - 3.5), direct = b.Push(step - 3.5);
    ASSERT_TRUE(through_ps.ok() && direct.ok()) << through_ps.status() << direct.status();
    EXPECT_EQ(direct->global_step, through_ps->global_step);
    EXPECT_EQ(direct->staleness, through_ps->staleness) << step;
    for (size_t i = 0; i < kVariables.size(); ++i) EXPECT_EQ(a.model.memory[i], b.model.memory[i]) << step;
  }
  for (int ps = 0; ps < GetParam(); ++ps) {
    const nlohmann::json one = Status(a0, ps), other = Status(b0, ps);
    for (const char* field : {"global_step", "minibatches", "version", "staleness"})
      EXPECT_EQ(one[field], other[field]);
    for (int client : {0, 1}) EXPECT_EQ(one["clients"][client]["pushes"], other["clients"][client]["pushes"]);
    EXPECT_GT(one["requests"]["push_pull"], 10);
    EXPECT_LT(other["requests"].value("push_pull", 0), 2) << "nothing goes over the channel";
  }
}

TEST_P(DirectApplyTest, GoesOnWhenThePsIsKilledAndStartedOnItsMemory) {
  SimulatedStore store(GetParam(), {"worker:0"}, kUnrenewedLease, nullptr, /*direct=*/true);
  DirectWorker worker(store, "worker:0", true, ApplyChoice::kDirect, kPlain);
  ASSERT_EQ(worker.ready, absl::OkStatus());
  const std::vector<float> before = worker.model.Values<float>(3);
  for (int step = 1; step <= 6; ++step) {
    const int ps = step % GetParam();
    store.KillPs(ps);
    store.loop.CallAt(store.loop.Now() + absl::Seconds(2), [&store, ps] { store.StartPs(ps); });
    const auto pushed = worker.Push(-1).value();
    EXPECT_EQ(pushed.global_step, step);
  }
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(worker.model.Values<float>(3)[i], before[i] + 6);
  EXPECT_EQ(Status(worker)["global_step"], 6);
}

TEST_P(DirectApplyTest, UnderABoundOfStalenessThePsApplyAndTheLogSaysSo) {
  SimulatedStore store(GetParam(), {"worker:0"}, kUnrenewedLease, nullptr, /*direct=*/true);
  WorkerModel model(kVariables, kPlain.rule, GetParam());
  model.binding.clock_limit = 3;
  const auto client = store.Client("worker:0", {.task = "worker:0", .apply = ApplyChoice::kAuto});
  ASSERT_EQ(client->Join(true), absl::OkStatus());
  client->Bind(model.binding);
  ASSERT_EQ(client->Initialize(0, 0, nullptr), absl::OkStatus());
  ::testing::internal::CaptureStderr();
  SetUpLog("");
  ASSERT_TRUE(client->AwaitReady(absl::InfiniteFuture()).ok());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("the ps apply the updates of worker:0: by a bound of staleness they make workers wait\n"));
  EXPECT_FALSE(client->applies_own_updates());
}

TEST_P(DirectApplyTest, APsThatLostItsMemoryIsNoticed) {
  SimulatedStore store(GetParam(), {"worker:0"}, kUnrenewedLease, nullptr, /*direct=*/true);
  DirectWorker worker(store, "worker:0", true, ApplyChoice::kAuto, kPlain);
  ASSERT_TRUE(worker.Push(1).ok());
  store.LosePs(GetParam() - 1);
  store.StartPs(GetParam() - 1);
  const absl::Status lost = worker.Push(1).status();
  EXPECT_TRUE(absl::IsAborted(lost)) << lost;
  ASSERT_EQ(worker.Start(), absl::OkStatus());
  EXPECT_EQ(worker.Push(1)->global_step, 1);
}

TEST_P(DirectApplyTest, APsThatStaysAwayEndsTraining) {
  SimulatedStore store(GetParam(), {"worker:0"}, kUnrenewedLease, nullptr, /*direct=*/true);
  DirectWorker worker(store, "worker:0", true, ApplyChoice::kAuto, kPlain);
  store.KillPs(0);
  const absl::Status gone = worker.Push(1).status();
  EXPECT_TRUE(absl::IsUnavailable(gone)) << gone;
  EXPECT_THAT(std::string(gone.message()), HasSubstr("ps:0 (ps0:2222)"));
}

TEST_P(DirectApplyTest, WhatWasComputedFromOlderValuesIsNeitherAppliedNorCounted) {
  SimulatedStore store(GetParam(), {"worker:0", "worker:1"}, kUnrenewedLease, nullptr, /*direct=*/true);
  DirectWorker chief(store, "worker:0", true, ApplyChoice::kAuto, kPlain);
  DirectWorker worker(store, "worker:1", false, ApplyChoice::kAuto, kPlain);
  ASSERT_TRUE(worker.Push(1).ok());
  ASSERT_EQ(chief.client->Initialize(100, 7, nullptr), absl::OkStatus());
  EXPECT_TRUE(absl::IsAborted(worker.Push(1).status()));
  EXPECT_TRUE(absl::IsAborted(worker.client->Pull(PullWhat::kTrainable)));
  EXPECT_EQ(Status(chief)["global_step"], 100);
  EXPECT_EQ(Status(chief)["minibatches"], 7);
  ASSERT_EQ(worker.Start(), absl::OkStatus());
  EXPECT_EQ(worker.model.memory, chief.model.memory);
  EXPECT_EQ(worker.Push(1)->global_step, 101);
}

TEST_P(DirectApplyTest, TrainingThatHasEndedIsNoticed) {
  SimulatedStore store(GetParam(), {"worker:0"}, kUnrenewedLease, nullptr, /*direct=*/true);
  DirectWorker worker(store, "worker:0", true, ApplyChoice::kAuto, kPlain);
  ASSERT_EQ(worker.client->Shutdown("enough"), absl::OkStatus());
  EXPECT_TRUE(absl::IsCancelled(worker.Push(1).status()));
  EXPECT_EQ(worker.client->Pull(PullWhat::kEverything), absl::OkStatus()) << "what a last checkpoint needs still works";
}

INSTANTIATE_TEST_SUITE_P(Ps, DirectApplyTest, ::testing::Values(1, 3));

TEST(DirectApply, FallsBackOrSaysThatItCannot) {
  SimulatedStore store(2, {"worker:0", "worker:1"});
  DirectWorker willing(store, "worker:0", true, ApplyChoice::kAuto, kPlain);
  EXPECT_EQ(willing.ready, absl::OkStatus());
  EXPECT_EQ(willing.Push(1)->global_step, 1);
  DirectWorker insisting(store, "worker:1", false, ApplyChoice::kDirect, kPlain);
  EXPECT_TRUE(absl::IsFailedPrecondition(insisting.ready)) << insisting.ready;
  EXPECT_TRUE(IsWrongConfiguration(insisting.ready)) << insisting.ready;
  EXPECT_THAT(std::string(insisting.ready.message()), HasSubstr("ps:0 (ps0:2222)"));
  EXPECT_THAT(std::string(insisting.ready.message()), HasSubstr("accepted then: server, auto"));
}

// Answers several times with a socket or a ticket that doesn't exist.
class Misleading final : public PassingHandler {
 public:
  Misleading(StoreService& service, OpenDirectReply reply, int times)
      : PassingHandler(service), reply_(std::move(reply)), times_(times) {}
  void Handle(IncomingRequest& request, std::unique_ptr<BulkTarget> bulk, Responder responder) override {
    if (static_cast<StoreMethod>(request.method) == StoreMethod::kOpenDirect && times_-- > 0)
      return responder.Send(Encode(reply_));
    inner_.Handle(request, std::move(bulk), std::move(responder));
  }

 private:
  const OpenDirectReply reply_;
  int times_;
};

absl::Status StartedDirectly(const OpenDirectReply& misleading, int times) {
  SimulatedStore store(1, {"worker:0"}, kUnrenewedLease, nullptr, /*direct=*/true);
  store.KillPs(0);
  store.wrap = [&](StoreService& service) { return std::make_unique<Misleading>(service, misleading, times); };
  store.StartPs(0);
  const DirectWorker worker(store, "worker:0", true, ApplyChoice::kDirect, kPlain);
  return worker.ready;
}

// A ps that is killed between its answer and the attachment is no mistake in the configuration: whatever started the
// worker must start it again.
TEST(DirectApply, OnlyWhatWillNeverBeHadIsAWrongConfiguration) {
  const std::string ticket(32, 't');
  EXPECT_EQ(StartedDirectly({"muster-of-the-dead", ticket, 1}, 1), absl::OkStatus());
  const absl::Status elsewhere = StartedDirectly({"muster-on-another-host", ticket, 1}, 1000);
  EXPECT_TRUE(IsWrongConfiguration(elsewhere)) << elsewhere;
  const auto port = *ArenaListener::Open();
  const absl::Status refused = StartedDirectly({port->name(), ticket, 1}, 1000);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_FALSE(IsWrongConfiguration(refused)) << refused;
}

// Binds what the client offers as the algorithms do. Returns what keeps the memory alive.
std::vector<std::shared_ptr<void>> TrainInPlace(DirectWorker& worker) {
  std::vector<std::shared_ptr<void>> owners;
  for (size_t i = 0; i < kVariables.size(); ++i) {
    const InPlaceMemory memory = worker.client->InPlace(i);
    if (memory.bytes.empty()) continue;
    worker.model.binding.values[i] = memory.bytes;
    owners.push_back(memory.owner);
  }
  worker.client->Bind(worker.model.binding);
  return owners;
}

float First(const DirectWorker& worker) {
  float value = 0;
  std::memcpy(&value, worker.model.binding.values[0].data(), sizeof value);
  return value;
}

// Answers with a socket that isn't on this host.
class Elsewhere final : public PassingHandler {
 public:
  using PassingHandler::PassingHandler;
  void Handle(IncomingRequest& request, std::unique_ptr<BulkTarget> bulk, Responder responder) override {
    if (static_cast<StoreMethod>(request.method) == StoreMethod::kOpenDirect && inner_.MakeView().arena != nullptr)
      return responder.Send(Encode(OpenDirectReply{"muster-on-another-host", std::string(32, 't'), 2}));
    inner_.Handle(request, std::move(bulk), std::move(responder));
  }
};

// A ps that comes back, on its memory or without, but lets nobody in, or is on another host.
struct NoWayIn {
  const char* name;
  bool elsewhere;
  bool lost;
};

class NoWayInTest : public ::testing::TestWithParam<NoWayIn> {
 protected:
  void Replace(int ps) {
    GetParam().lost ? store_.LosePs(ps) : store_.KillPs(ps);
    if (GetParam().elsewhere) {
      store_.wrap = [](StoreService& service) { return std::make_unique<Elsewhere>(service); };
    } else {
      store_.KeepMemories();
    }
    store_.StartPs(ps);
  }

  SimulatedStore store_{2, {"worker:0"}, {.lease = absl::Hours(1)}, nullptr, /*direct=*/true};
};

TEST_P(NoWayInTest, AutoGoesOnThroughThePs) {
  DirectWorker worker(store_, "worker:0", true, ApplyChoice::kAuto, kPlain);
  ASSERT_EQ(worker.ready, absl::OkStatus());
  const std::vector<std::shared_ptr<void>> owners = TrainInPlace(worker);
  const float before = First(worker);
  ASSERT_TRUE(worker.Push(-1).ok());
  const float whole = First(worker);
  EXPECT_EQ(whole, before + 1);
  Replace(1);
  if (GetParam().lost) {
    EXPECT_TRUE(absl::IsAborted(worker.Push(-1).status()));
    EXPECT_EQ(First(worker), whole);
    ASSERT_EQ(worker.client->Join(true), absl::OkStatus());
    ASSERT_EQ(worker.client->Initialize(1, 1, nullptr), absl::OkStatus());
    ASSERT_TRUE(worker.client->AwaitReady(absl::InfiniteFuture()).ok());
    ASSERT_EQ(worker.client->Pull(PullWhat::kEverything), absl::OkStatus());
  }
  for (int step = 2; step < 5; ++step) {
    const auto pushed = worker.Push(-1).value();
    EXPECT_EQ(pushed.global_step, step);
    EXPECT_EQ(pushed.staleness, 0);
    EXPECT_EQ(First(worker), before + static_cast<float>(step));
  }
  for (int ps : {0, 1}) EXPECT_GE(Status(worker, ps)["requests"]["push_pull"], 3) << "now they go over the channel";
  EXPECT_TRUE(worker.client->InPlace(0).bytes.empty());
  EXPECT_EQ(worker.client->Done(), absl::OkStatus());
}

TEST_P(NoWayInTest, DirectIsAnErrorThatSaysSo) {
  DirectWorker worker(store_, "worker:0", true, ApplyChoice::kDirect, kPlain);
  ASSERT_TRUE(worker.Push(-1).ok());
  Replace(1);
  absl::Status refused = worker.Push(-1).status();
  if (GetParam().lost) {
    ASSERT_TRUE(absl::IsAborted(refused)) << refused;
    refused = worker.Start();
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("direct apply was asked for, but isn't possible: ps:1 (ps1:2222)"));
}

INSTANTIATE_TEST_SUITE_P(All, NoWayInTest,
                         ::testing::Values(NoWayIn{"KeepsItsMemory", false, false},
                                           NoWayIn{"KeepsItsNewMemory", false, true}, NoWayIn{"Elsewhere", true, true},
                                           NoWayIn{"NotFound", true, false}),
                         [](const auto& info) { return info.param.name; });

// Others have gone on without it, and whatever it computed is of another time.
TEST(DirectApply, AWorkerThatWasTakenForLostJoinsBeforeItsNextWriteCounts) {
  SimulatedStore store(2, {"worker:0", "worker:1"}, LeaseOptions(), nullptr, /*direct=*/true);
  DirectWorker chief(store, "worker:0", true, ApplyChoice::kAuto, kPlain);
  DirectWorker worker(store, "worker:1", false, ApplyChoice::kAuto, kPlain);
  ASSERT_TRUE(worker.Push(-1).ok());
  const float before = First(worker);
  store.Pass(LeaseOptions().lease + absl::Seconds(1));
  const absl::Status fenced = worker.Push(-1).status();
  EXPECT_TRUE(absl::IsAborted(fenced)) << fenced;
  EXPECT_THAT(std::string(fenced.message()), HasSubstr("taken for lost"));
  EXPECT_EQ(Status(worker, 0)["global_step"], 1);
  ASSERT_EQ(worker.client->Pull(PullWhat::kEverything), absl::OkStatus()) << "it may read";
  EXPECT_EQ(First(worker), before) << "nothing of it was written";
  EXPECT_TRUE(absl::IsAborted(worker.Push(-1).status())) << "that it is heard isn't enough";
  ASSERT_EQ(worker.Start(), absl::OkStatus());
  EXPECT_EQ(worker.Push(-1)->global_step, 2);
  EXPECT_EQ(First(worker), before + 1);
}

// Auto leaves the updates to the ps, and direct is refused.
void ExpectThePsBusiness(const RuleSpec& rule, absl::FunctionRef<void(ModelBinding&)> choose) {
  SimulatedStore store(1, {"worker:0"}, kUnrenewedLease, nullptr, /*direct=*/true);
  WorkerModel model(kVariables, rule, 1);
  choose(model.binding);
  for (const ApplyChoice apply : {ApplyChoice::kAuto, ApplyChoice::kDirect}) {
    const auto client = store.Client("worker:0", {.apply = apply});
    ASSERT_EQ(client->Join(true), absl::OkStatus());
    client->Bind(model.binding);
    if (!client->ready()) {
      ASSERT_EQ(client->Initialize(0, 0, nullptr), absl::OkStatus());
    }
    const absl::Status ready = client->AwaitReady(absl::InfiniteFuture()).status();
    EXPECT_TRUE(client->InPlace(0).bytes.empty());
    if (apply == ApplyChoice::kAuto) {
      EXPECT_EQ(ready, absl::OkStatus());
    } else {
      EXPECT_TRUE(absl::IsFailedPrecondition(ready)) << ready;
      EXPECT_TRUE(IsWrongConfiguration(ready)) << ready;
      EXPECT_THAT(std::string(ready.message()), HasSubstr("accepted then: server, auto"));
    }
  }
}

TEST(DirectApply, ABoundOfStalenessIsThePsBusiness) {
  ExpectThePsBusiness(kPlain.rule, [](ModelBinding& binding) { binding.clock_limit = 1; });
}

TEST(DirectApply, DelayCompensationIsThePsBusiness) {
  ExpectThePsBusiness(kPlain.rule, [](ModelBinding& binding) { binding.compensation = 0.4; });
}

TEST(DirectApply, AScalePerWeightIsThePsBusiness) {
  ExpectThePsBusiness({.kind = RuleKind::kAdd}, [](ModelBinding& binding) { binding.adaptive = 0.4; });
}

TEST(DirectApply, AScaleByStalenessIsThePsBusiness) {
  ExpectThePsBusiness(kPlain.rule, [](ModelBinding& binding) { binding.staleness_scale = StalenessScale::kInverse; });
}

TEST(DirectApply, TheWorkersOrderIsThePsBusiness) {
  ExpectThePsBusiness(kPlain.rule, [](ModelBinding& binding) { binding.ordered = true; });
  ExpectThePsBusiness(kPlain.rule, [](ModelBinding& binding) {
    binding.ordered = true;
    binding.gate = {GateKind::kSynchronous, 1, 1, false};
  });
}

TEST(DirectApply, AnElasticExchangeIsThePsBusiness) {
  ExpectThePsBusiness({.kind = RuleKind::kAdd}, [](ModelBinding& binding) { binding.exchanges = true; });
  // A worker that applies its own updates doesn't take values for gradients either.
  SimulatedStore store(1, {"worker:0"}, kUnrenewedLease, nullptr, /*direct=*/true);
  DirectWorker worker(store, "worker:0", true, ApplyChoice::kDirect, RuleSpec{.kind = RuleKind::kAdd});
  ASSERT_EQ(worker.ready, absl::OkStatus());
  const auto before = worker.model.memory;
  auto moved = before;
  const absl::Status refused = worker.client
                                   ->PushPull([&](size_t i) { return i == 0 ? ByteSpan(before[0]) : ByteSpan(); },
                                              {.pull = PullWhat::kNothing,
                                               .exchange = 0.5,
                                               .moved = [&](size_t i) { return MutableByteSpan(moved[i]); }})
                                   .status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  ASSERT_EQ(worker.client->Pull(PullWhat::kEverything), absl::OkStatus());
  EXPECT_EQ(worker.model.memory, before);
}

TEST(DirectApply, TheChiefHearsThatACheckpointIsToBeLoaded) {
  SimulatedStore store(1, {"worker:0"}, kUnrenewedLease, nullptr, /*direct=*/true);
  DirectWorker chief(store, "worker:0", true, ApplyChoice::kAuto, kPlain);
  SimulatedTransport transport(store.network, store.loop);
  const auto channel = transport.Connect(store.addresses()[0]);
  absl::Status answer = absl::UnknownError("none");
  channel->Call({.method = static_cast<uint16_t>(StoreMethod::kLoadCheckpoint),
                 .control = Encode(LoadCheckpointRequest{"model/checkpoint-7"})},
                [&answer](absl::StatusOr<Reply> reply) { answer = reply.status(); });
  store.Pass(absl::Milliseconds(1));
  ASSERT_TRUE(chief.Push(1).ok());
  EXPECT_EQ(chief.client->TakeLoadRequest(), "model/checkpoint-7");
  ASSERT_EQ(chief.client->Pull(PullWhat::kEverything), absl::OkStatus());  // the new values; ps 0 still asks
  ASSERT_EQ(chief.client->ReportLoad(int64_t{7}), absl::OkStatus());
  store.Pass(absl::Milliseconds(1));
  EXPECT_EQ(answer, absl::OkStatus());
  ASSERT_TRUE(chief.Push(1).ok());
  EXPECT_EQ(chief.client->TakeLoadRequest(), "");
}

TEST(DirectApply, WhatIsNotFiniteIsDroppedAndCounted) {
  SimulatedStore store(1, {"worker:0"}, kUnrenewedLease, nullptr, /*direct=*/true);
  OptimizerSpec optimizer = kPlain;
  optimizer.non_finite = NonFinite::kDrop;
  DirectWorker worker(store, "worker:0", true, ApplyChoice::kAuto, optimizer);
  const std::vector<float> before = worker.model.Values<float>(3);
  const auto dropped = worker.Push(std::numeric_limits<double>::quiet_NaN()).value();
  EXPECT_TRUE(dropped.dropped);
  EXPECT_EQ(worker.model.Values<float>(3), before);
  EXPECT_EQ(Status(worker)["clients"][0]["dropped_non_finite"], 1);
  EXPECT_EQ(worker.Push(1)->global_step, 1);
}

TEST(DirectApply, InPlaceUpdatesOfOthersAreSeenAtOnceUntilOneIsDone) {
  SimulatedStore store(2, {"worker:0", "worker:1"}, kUnrenewedLease, nullptr, /*direct=*/true);
  DirectWorker chief(store, "worker:0", true, ApplyChoice::kDirect, kPlain);
  DirectWorker worker(store, "worker:1", false, ApplyChoice::kAuto, kPlain);
  const InPlaceMemory memory = chief.client->InPlace(0);
  EXPECT_TRUE(chief.client->InPlace(1).bytes.empty()) << "batch statistics are every worker's own";
  EXPECT_TRUE(worker.client->InPlace(0).bytes.empty()) << "auto trains a copy where there are others";
  TrainInPlace(chief);
  const float before = First(chief);
  ASSERT_TRUE(worker.Push(-1).ok());
  EXPECT_EQ(First(chief), before + 1);
  ASSERT_TRUE(chief.Push(-1).ok());
  EXPECT_EQ(First(chief), before + 2);
  EXPECT_EQ(chief.client->Pull(PullWhat::kEverything), absl::OkStatus());
  EXPECT_EQ(First(chief), before + 2);
  ASSERT_EQ(chief.client->Done(), absl::OkStatus());
  ASSERT_TRUE(worker.Push(-1).ok());
  EXPECT_EQ(First(chief), before + 2) << "what it has trained stays as it was when it was done";
}

// If a worker on the ps's host counts an update while the ps copies values for another, the copy may lack it.
TEST(DirectApply, AVersionIsNeverNewerThanTheValuesThatThePsSendsWithIt) {
  ScriptedMoment probe;
  SimulatedStore store(1, {"worker:0", "worker:1"}, {}, &probe, /*direct=*/true);
  DirectWorker beside(store, "worker:0", true, ApplyChoice::kDirect, kPlain);
  DirectWorker through(store, "worker:1", false, ApplyChoice::kServer, kPlain);
  ASSERT_TRUE(beside.ready.ok() && through.ready.ok()) << beside.ready << through.ready;
  const auto come_in_between = [&] {
    probe.stripes = 1;
    probe.does = [&beside] { EXPECT_TRUE(beside.Push(-1).ok()); };
  };
  come_in_between();
  ASSERT_EQ(through.client->Pull(PullWhat::kTrainable), absl::OkStatus());
  ASSERT_EQ(probe.does, nullptr);
  const std::vector<float> got = through.model.Values<float>(0), now = beside.model.Values<float>(0);
  EXPECT_NE(got.front(), now.front());
  EXPECT_EQ(got.back(), now.back());
  come_in_between();
  const auto first = through.Push(-1).value();
  ASSERT_EQ(probe.does, nullptr);
  EXPECT_EQ(first.staleness, 2) << "what was missing in the pull, and what came before this push was counted";
  const auto second = through.Push(-1).value();
  EXPECT_EQ(second.staleness, 1) << "what was missing in the first push's answer";
  EXPECT_EQ(through.Push(-1)->staleness, 0);
}

// Returns how much of that memory is no longer shared with the ps.
uint64_t PrivateBytes(const ArenaMemory& memory) {
  const auto begin = reinterpret_cast<uintptr_t>(memory.data()), end = begin + memory.size();
  uint64_t bytes = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t from = 0, to = 0;
    char dash = 0;
    std::istringstream(line) >> std::hex >> from >> dash >> to;
    if (from < end && to > begin && line.find("muster-arena") == std::string::npos)
      bytes += std::min(to, end) - std::max(from, begin);
  }
  return bytes;
}

TEST(DirectApply, OnlyWhatWasTrainedInPlaceIsCopiedWhenOneIsDone) {
  SimulatedStore store(1, {"worker:0", "worker:1"}, kUnrenewedLease, nullptr, /*direct=*/true);
  DirectWorker worker(store, "worker:0", true, ApplyChoice::kDirect, kPlain);
  ASSERT_EQ(worker.ready, absl::OkStatus());
  const InPlaceMemory small = worker.client->InPlace(3);
  // A ps that comes back on its memory has the same arena.
  store.KillPs(0);
  store.StartPs(0);
  ASSERT_TRUE(worker.Push(-1).ok());
  const auto arena = std::static_pointer_cast<ArenaMemory>(small.owner);
  EXPECT_EQ(PrivateBytes(*arena), 0);
  const std::vector<std::byte> before(small.bytes.begin(), small.bytes.end());
  ASSERT_EQ(worker.client->Done(), absl::OkStatus());
  EXPECT_EQ(PrivateBytes(*arena), 4096);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), small.bytes.begin()));
}

TEST(DirectApply, OneWorkerAloneTrainsInPlaceAndAPartitionedVariableAsACopy) {
  SimulatedStore store(1, {"worker:0"}, kUnrenewedLease, nullptr, /*direct=*/true);
  OptimizerSpec optimizer = kPlain;
  optimizer.non_finite = NonFinite::kDrop;
  DirectWorker worker(store, "worker:0", true, ApplyChoice::kAuto, optimizer,
                      {.kind = Partitioning::Kind::kFixed, .shards = 2});
  EXPECT_TRUE(worker.client->InPlace(0).bytes.empty());
  SimulatedStore other(1, {"worker:0"}, kUnrenewedLease, nullptr, /*direct=*/true);
  DirectWorker whole(other, "worker:0", true, ApplyChoice::kAuto, optimizer);
  TrainInPlace(whole);
  const float before = First(whole);
  for (const double gradient : {-1.0, std::numeric_limits<double>::infinity(), -1.0}) {
    ASSERT_TRUE(worker.Push(gradient).ok());
    ASSERT_TRUE(whole.Push(gradient).ok());
    EXPECT_EQ(First(whole), First(worker));
  }
  EXPECT_EQ(First(whole), before + 2);
}

TEST(ArenaMemory, NeverGetsShorterUnderThoseWhoHaveItMapped) {
  const auto memory = *ArenaMemory::Create();
  ASSERT_EQ(memory->Reset(8 << 12), absl::OkStatus());
  const auto other = *ArenaMemory::Adopt(memory->fd());
  other->data()[7 << 12] = std::byte{5};
  ASSERT_EQ(memory->Reset(1 << 12), absl::OkStatus());
  EXPECT_EQ(other->data()[7 << 12], std::byte{0}) << "dropped, and still there to be read";
}

}  // namespace
}  // namespace muster::direct_apply_test
