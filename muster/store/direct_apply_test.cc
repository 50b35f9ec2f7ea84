#include "muster/store/direct_apply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "muster/base/status_macros.h"
#include "muster/store/checkpoint_cut.h"
#include "muster/store/passing_handler.h"
#include "muster/store/simulated_store.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

const std::vector<VariableSpec> kVariables = {{.name = "w", .shape = {300, 120}},  // three stripes
                                              {.name = "mean", .shape = {3}, .kind = VariableKind::kBuffer},
                                              {.name = "d", .dtype = DType::kFloat64, .shape = {50}},
                                              {.name = "b", .shape = {7}}};

// Joined, bound, and ready to train with values of phase 1.
struct Worker {
  Worker(SimulatedStore& store, const std::string& task, bool chief, ApplyChoice apply, const OptimizerSpec& optimizer,
         const Partitioning& partitioning = {})
      : model(kVariables, optimizer.rule, static_cast<int>(store.addresses().size()), partitioning),
        client(store.Client(task, {.patience = absl::Seconds(20), .apply = apply})),
        chief(chief) {
    model.binding.optimizer = optimizer;
    model.Fill(1);
    ready = Start();
  }
  absl::Status Start() {
    RETURN_IF_ERROR(client->Join(chief));
    client->Bind(model.binding);
    if (chief && !client->ready()) RETURN_IF_ERROR(client->Initialize(0, 0, nullptr));
    RETURN_IF_ERROR(client->AwaitReady(absl::InfiniteFuture()).status());
    return client->Pull(PullWhat::kEverything);
  }
  // The gradient of every element is `gradient`.
  absl::StatusOr<StorePushResult> Push(double gradient) {
    WorkerModel gradients(kVariables, {}, 1);
    for (size_t i = 0; i < kVariables.size(); ++i) {
      const size_t elements = kVariables[i].elements();
      const std::vector<float> narrow(elements, static_cast<float>(gradient));
      const std::vector<double> wide(elements, gradient);
      const void* from = kVariables[i].dtype == DType::kFloat64 ? static_cast<const void*>(wide.data()) : narrow.data();
      std::memcpy(gradients.memory[i].data(), from, gradients.memory[i].size());
    }
    return client->PushPull(
        [&](size_t i) {
          return kVariables[i].kind == VariableKind::kTrainable ? ByteSpan(gradients.memory[i]) : ByteSpan();
        },
        {.publish_buffers = chief});
  }

  WorkerModel model;
  std::unique_ptr<StoreClient> client;
  const bool chief;
  absl::Status ready;
};

nlohmann::json Status(Worker& worker, int ps = 0) {
  return nlohmann::json::parse(worker.client->PsStatus(ps).value_or("{}"));
}

const OptimizerSpec kPlain = RuleSpec{.kind = RuleKind::kSgd, .learning_rate = 1};

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
  SimulatedStore beside(GetParam(), {"worker:0", "worker:1"}, {}, nullptr, /*direct=*/true);
  Worker a0(through, "worker:0", true, ApplyChoice::kAuto, optimizer, partitioning);
  Worker a1(through, "worker:1", false, ApplyChoice::kAuto, optimizer, partitioning);
  Worker b0(beside, "worker:0", true, ApplyChoice::kAuto, optimizer, partitioning);
  Worker b1(beside, "worker:1", false, ApplyChoice::kAuto, optimizer, partitioning);
  for (Worker* worker : {&a0, &a1, &b0, &b1}) ASSERT_EQ(worker->ready, absl::OkStatus());
  for (int step = 0; step < 10; ++step) {
    Worker& a = step % 3 == 1 ? a1 : a0;
    Worker& b = step % 3 == 1 ? b1 : b0;
    for (Worker* worker : {&a, &b})  // batch statistics
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
  SimulatedStore store(GetParam(), {"worker:0"}, {}, nullptr, /*direct=*/true);
  Worker worker(store, "worker:0", true, ApplyChoice::kDirect, kPlain);
  ASSERT_EQ(worker.ready, absl::OkStatus());
  const std::vector<float> before = worker.model.Values<float>(3);
  for (int step = 1; step <= 6; ++step) {
    const int ps = step % GetParam();
    store.KillPs(ps);
    store.loop.CallAt(store.loop.Now() + absl::Seconds(2), [&store, ps] { store.StartPs(ps); });
    const auto pushed = worker.Push(-1);
    ASSERT_TRUE(pushed.ok()) << pushed.status();
    EXPECT_EQ(pushed->global_step, step);
  }
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(worker.model.Values<float>(3)[i], before[i] + 6);
  EXPECT_EQ(Status(worker)["global_step"], 6);
}

TEST_P(DirectApplyTest, APsThatLostItsMemoryIsNoticed) {
  SimulatedStore store(GetParam(), {"worker:0"}, {}, nullptr, /*direct=*/true);
  Worker worker(store, "worker:0", true, ApplyChoice::kAuto, kPlain);
  ASSERT_TRUE(worker.Push(1).ok());
  store.LosePs(GetParam() - 1);
  store.StartPs(GetParam() - 1);
  const absl::Status lost = worker.Push(1).status();
  EXPECT_TRUE(absl::IsAborted(lost)) << lost;
  ASSERT_EQ(worker.Start(), absl::OkStatus());
  EXPECT_EQ(worker.Push(1)->global_step, 1);
}

TEST_P(DirectApplyTest, APsThatStaysAwayEndsTraining) {
  SimulatedStore store(GetParam(), {"worker:0"}, {}, nullptr, /*direct=*/true);
  Worker worker(store, "worker:0", true, ApplyChoice::kAuto, kPlain);
  store.KillPs(0);
  const absl::Status gone = worker.Push(1).status();
  EXPECT_TRUE(absl::IsUnavailable(gone)) << gone;
  EXPECT_THAT(std::string(gone.message()), HasSubstr("ps:0 (ps0:2222)"));
}

TEST_P(DirectApplyTest, WhatWasComputedFromOlderValuesIsNeitherAppliedNorCounted) {
  SimulatedStore store(GetParam(), {"worker:0", "worker:1"}, {}, nullptr, /*direct=*/true);
  Worker chief(store, "worker:0", true, ApplyChoice::kAuto, kPlain);
  Worker worker(store, "worker:1", false, ApplyChoice::kAuto, kPlain);
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
  SimulatedStore store(GetParam(), {"worker:0"}, {}, nullptr, /*direct=*/true);
  Worker worker(store, "worker:0", true, ApplyChoice::kAuto, kPlain);
  ASSERT_EQ(worker.client->Shutdown("enough"), absl::OkStatus());
  EXPECT_TRUE(absl::IsCancelled(worker.Push(1).status()));
  EXPECT_EQ(worker.client->Pull(PullWhat::kEverything), absl::OkStatus()) << "what a last checkpoint needs still works";
}

INSTANTIATE_TEST_SUITE_P(Ps, DirectApplyTest, ::testing::Values(1, 3));

TEST(DirectApply, FallsBackOrSaysThatItCannot) {
  SimulatedStore store(2, {"worker:0", "worker:1"});
  Worker willing(store, "worker:0", true, ApplyChoice::kAuto, kPlain);
  EXPECT_EQ(willing.ready, absl::OkStatus());
  EXPECT_EQ(willing.Push(1)->global_step, 1);
  Worker insisting(store, "worker:1", false, ApplyChoice::kDirect, kPlain);
  EXPECT_TRUE(absl::IsFailedPrecondition(insisting.ready)) << insisting.ready;
  EXPECT_THAT(std::string(insisting.ready.message()), HasSubstr("ps:0 (ps0:2222)"));
  EXPECT_THAT(std::string(insisting.ready.message()), HasSubstr("accepted then: server, auto"));
}

// Binds what the client offers as the algorithms do. Returns what keeps the memory there.
std::vector<std::shared_ptr<void>> TrainInPlace(Worker& worker) {
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

float First(const Worker& worker) {
  float value = 0;
  std::memcpy(&value, worker.model.binding.values[0].data(), sizeof value);
  return value;
}

// Says that the way in is a socket which isn't on this host.
class Elsewhere final : public PassingHandler {
 public:
  using PassingHandler::PassingHandler;
  void Handle(IncomingRequest request, std::unique_ptr<BulkTarget> bulk, Responder responder) override {
    if (static_cast<StoreMethod>(request.method) == StoreMethod::kOpenDirect && inner_.MakeView().arena != nullptr)
      return responder.Send(Encode(OpenDirectReply{"muster-on-another-host", std::string(32, 't'), 2}));
    inner_.Handle(std::move(request), std::move(bulk), std::move(responder));
  }
};

// A ps that comes back, on its memory or without, and lets nobody in, or is on another host.
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
  Worker worker(store_, "worker:0", true, ApplyChoice::kAuto, kPlain);
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
    const auto pushed = worker.Push(-1);
    ASSERT_TRUE(pushed.ok()) << pushed.status();
    EXPECT_EQ(pushed->global_step, step);
    EXPECT_EQ(pushed->staleness, 0);
    EXPECT_EQ(First(worker), before + static_cast<float>(step));
  }
  for (int ps : {0, 1}) EXPECT_GE(Status(worker, ps)["requests"]["push_pull"], 3) << "now they go over the channel";
  EXPECT_TRUE(worker.client->InPlace(0).bytes.empty());
  EXPECT_EQ(worker.client->Done(), absl::OkStatus());
}

TEST_P(NoWayInTest, DirectIsAnErrorThatSaysSo) {
  Worker worker(store_, "worker:0", true, ApplyChoice::kDirect, kPlain);
  ASSERT_TRUE(worker.Push(-1).ok());
  Replace(1);
  absl::Status refused = worker.Push(-1).status();
  if (GetParam().lost) {
    ASSERT_TRUE(absl::IsAborted(refused)) << refused;
    refused = worker.Start();
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("direct apply is asked for, but can't be had: ps:1 (ps1:2222)"));
}

INSTANTIATE_TEST_SUITE_P(All, NoWayInTest,
                         ::testing::Values(NoWayIn{"KeepsItsMemory", false, false},
                                           NoWayIn{"KeepsItsNewMemory", false, true}, NoWayIn{"Elsewhere", true, true},
                                           NoWayIn{"NotFound", true, false}),
                         [](const auto& info) { return info.param.name; });

// Auto leaves it to the ps, and direct is refused.
void ExpectThePsBusiness(const RuleSpec& rule, absl::FunctionRef<void(ModelBinding&)> choose) {
  SimulatedStore store(1, {"worker:0"}, {}, nullptr, /*direct=*/true);
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

TEST(DirectApply, AnElasticExchangeIsThePsBusiness) {
  ExpectThePsBusiness({.kind = RuleKind::kAdd}, [](ModelBinding& binding) { binding.exchanges = true; });
  // Nor does a worker that applies itself take values for gradients.
  SimulatedStore store(1, {"worker:0"}, {}, nullptr, /*direct=*/true);
  Worker worker(store, "worker:0", true, ApplyChoice::kDirect, RuleSpec{.kind = RuleKind::kAdd});
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
  SimulatedStore store(1, {"worker:0"}, {}, nullptr, /*direct=*/true);
  Worker chief(store, "worker:0", true, ApplyChoice::kAuto, kPlain);
  LoopbackTransport transport(store.network, store.loop);
  const auto channel = transport.Connect(store.addresses()[0]);
  absl::Status answer = absl::UnknownError("none");
  channel->Call({.method = static_cast<uint16_t>(StoreMethod::kLoadCheckpoint),
                 .control = Encode(LoadCheckpointRequest{"model/checkpoint-7"})},
                [&answer](absl::StatusOr<Reply> reply) { answer = reply.status(); });
  store.Pass(absl::Milliseconds(1));
  ASSERT_TRUE(chief.Push(1).ok());
  EXPECT_EQ(chief.client->TakeLoadRequest(), "model/checkpoint-7");
  ASSERT_EQ(chief.client->ReportLoad(int64_t{7}), absl::OkStatus());
  store.Pass(absl::Milliseconds(1));
  EXPECT_EQ(answer, absl::OkStatus());
  ASSERT_TRUE(chief.Push(1).ok());
  EXPECT_EQ(chief.client->TakeLoadRequest(), "");
}

TEST(DirectApply, WhatIsNotFiniteIsDroppedAndCounted) {
  SimulatedStore store(1, {"worker:0"}, {}, nullptr, /*direct=*/true);
  OptimizerSpec optimizer = kPlain;
  optimizer.non_finite = NonFinite::kDrop;
  Worker worker(store, "worker:0", true, ApplyChoice::kAuto, optimizer);
  const std::vector<float> before = worker.model.Values<float>(3);
  const auto dropped = worker.Push(std::numeric_limits<double>::quiet_NaN());
  ASSERT_TRUE(dropped.ok());
  EXPECT_TRUE(dropped->dropped);
  EXPECT_EQ(worker.model.Values<float>(3), before);
  EXPECT_EQ(Status(worker)["clients"][0]["dropped_non_finite"], 1);
  EXPECT_EQ(worker.Push(1)->global_step, 1);
}

TEST(DirectApply, InPlaceUpdatesOfOthersAreSeenAtOnceUntilOneIsDone) {
  SimulatedStore store(2, {"worker:0", "worker:1"}, {}, nullptr, /*direct=*/true);
  Worker chief(store, "worker:0", true, ApplyChoice::kDirect, kPlain);
  Worker worker(store, "worker:1", false, ApplyChoice::kAuto, kPlain);
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

// Of that memory, how much is no longer the ps's.
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
  SimulatedStore store(1, {"worker:0", "worker:1"}, {}, nullptr, /*direct=*/true);
  Worker worker(store, "worker:0", true, ApplyChoice::kDirect, kPlain);
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
  SimulatedStore store(1, {"worker:0"}, {}, nullptr, /*direct=*/true);
  OptimizerSpec optimizer = kPlain;
  optimizer.non_finite = NonFinite::kDrop;
  Worker worker(store, "worker:0", true, ApplyChoice::kAuto, optimizer,
                {.kind = Partitioning::Kind::kFixed, .shards = 2});
  EXPECT_TRUE(worker.client->InPlace(0).bytes.empty());
  SimulatedStore other(1, {"worker:0"}, {}, nullptr, /*direct=*/true);
  Worker whole(other, "worker:0", true, ApplyChoice::kAuto, optimizer);
  TrainInPlace(whole);
  const float before = First(whole);
  for (const double gradient : {-1.0, std::numeric_limits<double>::infinity(), -1.0}) {
    ASSERT_TRUE(worker.Push(gradient).ok());
    ASSERT_TRUE(whole.Push(gradient).ok());
    EXPECT_EQ(First(whole), First(worker));
  }
  EXPECT_EQ(First(whole), before + 2);
}

// The chief's messages of a cut, one by one, to ps that a worker of their host updates itself.
class DirectCutTest : public ::testing::Test {
 protected:
  DirectCutTest() {
    for (const std::string& address : store_.addresses()) channels_.push_back(transport_.Connect(address));
  }
  // The reply, once it is there.
  std::shared_ptr<absl::StatusOr<std::string>> Send(int ps, StoreMethod method, std::string control) {
    auto answer = std::make_shared<absl::StatusOr<std::string>>(absl::UnknownError("none yet"));
    channels_[ps]->Call({.method = static_cast<uint16_t>(method), .control = std::move(control)},
                        [answer](absl::StatusOr<Reply> reply) {
                          *answer = reply.ok() ? absl::StatusOr<std::string>(reply->control) : reply.status();
                        });
    return answer;
  }
  auto Hold(int ps) {
    return Send(ps, StoreMethod::kHold,
                Encode(HoldRequest{chief_.client->MakeStamp(ps, kNumber), chief_.client->chief_epoch(ps)}));
  }
  auto Mark(int ps, const std::vector<uint64_t>& through) {
    return Send(ps, StoreMethod::kMark,
                Encode(MarkRequest{.stamp = chief_.client->MakeStamp(ps, kNumber),
                                   .chief_epoch = chief_.client->chief_epoch(ps),
                                   .hold = kNumber,
                                   .through = through}));
  }
  void At(absl::Duration after, absl::AnyInvocable<void()> what) {
    store_.loop.CallAt(store_.loop.Now() + after, std::move(what));
  }
  // The first element of the part of ps 0, which has `w`.
  float Part() {
    const auto part = chief_.client->ExportPart(0, kNumber);
    EXPECT_TRUE(part.ok()) << part.status();
    float value = 0;
    if (part.ok()) std::memcpy(&value, part->bytes.data(), sizeof value);
    return value;
  }

  static constexpr uint64_t kNumber = 1000;
  SimulatedStore store_{2, {"worker:0", "worker:1"}, {.lease = absl::Hours(1)}, nullptr, /*direct=*/true};
  Worker chief_{store_, "worker:0", true, ApplyChoice::kAuto, kPlain};
  Worker worker_{store_, "worker:1", false, ApplyChoice::kAuto, kPlain};
  LoopbackTransport transport_{store_.network, store_.loop};
  std::vector<std::unique_ptr<Channel>> channels_;
};

TEST_F(DirectCutTest, AnUpdateThatBeginsWhileThePsAreHeldIsOutside) {
  const float before = worker_.model.Values<float>(0)[0];
  Hold(0), Hold(1);
  store_.Pass(absl::Milliseconds(10));
  std::shared_ptr<absl::StatusOr<std::string>> marked;
  At(absl::Milliseconds(50), [&] { Mark(1, {0, 0}), marked = Mark(0, {0, 0}); });
  const absl::Time began = store_.loop.Now();
  EXPECT_EQ(worker_.Push(-1)->global_step, 1);
  EXPECT_GE(store_.loop.Now() - began, absl::Milliseconds(50));
  store_.Pass(absl::Milliseconds(10));
  ASSERT_TRUE(marked->ok()) << marked->status();
  EXPECT_EQ(worker_.model.Values<float>(0)[0], before + 1);
  EXPECT_EQ(Part(), before);
}

TEST_F(DirectCutTest, AnUpdateThatOnePsKnowsOfIsWaitedForByAll) {
  const float before = worker_.model.Values<float>(0)[0];
  Hold(1);
  store_.Pass(absl::Milliseconds(10));
  std::vector<std::shared_ptr<absl::StatusOr<std::string>>> answers;
  // ps 1 was held before it began, ps 0 after.
  At(absl::Milliseconds(20), [&] { answers.push_back(Hold(0)); });
  At(absl::Milliseconds(40), [&] {
    HoldReply reply;
    ASSERT_EQ(Decode(**answers[0], reply), absl::OkStatus());
    EXPECT_GT(reply.begun[1], 0);
    answers.push_back(Mark(0, {0, reply.begun[1]}));
    answers.push_back(Mark(1, {0, reply.begun[1]}));
  });
  EXPECT_EQ(worker_.Push(-1)->global_step, 1);
  store_.Pass(absl::Milliseconds(10));
  ASSERT_EQ(answers.size(), 3);
  for (size_t i = 0; i < answers.size(); ++i) ASSERT_TRUE(answers[i]->ok()) << answers[i]->status() << i;
  MarkReply reply;
  ASSERT_EQ(Decode(**answers[1], reply), absl::OkStatus());
  EXPECT_EQ(reply.global_step, 1);
  ASSERT_TRUE(worker_.Push(-1).ok());
  EXPECT_EQ(Part(), before + 1);
}

// It stands between telling one ps of its update and telling the other.
TEST_F(DirectCutTest, AnUpdateThatAPsHearsOfLateIsWaitedFor) {
  ASSERT_TRUE(worker_.Push(-1).ok());
  const auto record = [&](int ps) -> ClientRecord& { return store_.service(ps).MakeView().arena->client(1); };
  const uint64_t next = record(0).direct_begun + 1;
  record(0).direct_begun = next;
  Hold(0), Hold(1);
  store_.Pass(absl::Milliseconds(10));
  const auto marked = Mark(1, {0, next});
  Mark(0, {0, next});
  store_.Pass(absl::Milliseconds(10));
  ASSERT_FALSE(marked->ok());
  ASSERT_TRUE(worker_.Push(-1).ok());
  ASSERT_EQ(record(1).direct_begun, next);
  store_.Pass(absl::Milliseconds(10));
  EXPECT_TRUE(marked->ok()) << marked->status();
}

TEST_F(DirectCutTest, AnUpdateWhoseCountWasInterruptedIsInTheStep) {
  ASSERT_TRUE(worker_.Push(-1).ok());
  // As if its process had died between writing its numbers and writing the counters.
  Arena& arena = *store_.service(0).MakeView().arena;
  ArenaHeader& header = arena.header();
  ASSERT_EQ(header.counters.global_step, 1);
  header.journal = {
      .valid = 1, .client = 1, .numbers = arena.client(1).numbers, .counters = header.counters, .gate = header.gate};
  header.counters.global_step = 0;
  const auto cut = CutCheckpoint(*chief_.client);
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ(cut->global_step, 1);
}

// It has been announced as begun, and goes through the ps under the same number.
TEST_F(DirectCutTest, APsThatComesBackWithoutAWayInWhileAnUpdateWaitsForIt) {
  const float before = worker_.model.Values<float>(0)[0];
  Hold(0), Hold(1);
  store_.Pass(absl::Milliseconds(10));
  At(absl::Milliseconds(20), [&] {
    store_.KillPs(1);
    store_.KeepMemories();
    store_.StartPs(1);
  });
  const uint64_t number = worker_.client->NextNumbers().sequence;
  const auto pushed = worker_.Push(-1);
  ASSERT_TRUE(pushed.ok()) << pushed.status();
  EXPECT_EQ(pushed->global_step, 1);
  EXPECT_EQ(worker_.model.Values<float>(0)[0], before + 1);
  EXPECT_EQ(worker_.client->NextNumbers().sequence, number + 2) << "a number was left out";
}

// Nobody ends it, as of a ps that is stopped in the middle of it.
TEST_F(DirectCutTest, AHoldThatDoesNotEndIsThePatiencesBusiness) {
  store_.service(1).MakeView().arena->header().held = 1;
  const absl::Time began = store_.loop.Now();
  const absl::Status held = worker_.Push(-1).status();
  EXPECT_TRUE(absl::IsUnavailable(held)) << held;
  EXPECT_THAT(std::string(held.message()), HasSubstr("ps:1 (ps1:2222)"));
  EXPECT_GE(store_.loop.Now() - began, absl::Seconds(20));
  EXPECT_LE(store_.loop.Now() - began, absl::Seconds(21));
  EXPECT_EQ(store_.service(0).MakeView().arena->client(1).direct_begun, 0) << "nothing is under way";
}

TEST_F(DirectCutTest, WhoIsToStopWaitsForNoHold) {
  bool stop = false;
  worker_.client = store_.Client("worker:1", {.stop_requested = [&stop] { return stop; }, .apply = ApplyChoice::kAuto});
  store_.Pass(absl::Seconds(5));  // its earlier life's connections have closed
  ASSERT_EQ(worker_.Start(), absl::OkStatus());
  store_.service(0).MakeView().arena->header().held = 1;
  At(absl::Seconds(1), [&] { stop = true; });
  const absl::Time began = store_.loop.Now();
  const absl::Status stopped = worker_.Push(-1).status();
  EXPECT_TRUE(absl::IsCancelled(stopped)) << stopped;
  EXPECT_LE(store_.loop.Now() - began, absl::Seconds(2));
}

TEST_F(DirectCutTest, AChiefThatDiesHoldsNobodyForLong) {
  Hold(0), Hold(1);
  store_.Pass(absl::Milliseconds(10));
  const absl::Time began = store_.loop.Now();
  EXPECT_TRUE(worker_.Push(-1).ok());
  EXPECT_LE(store_.loop.Now() - began, absl::Seconds(3));
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
}  // namespace muster
