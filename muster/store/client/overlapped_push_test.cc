#include "muster/store/client/overlapped_push.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "muster/store/client/checkpoint_calls.h"
#include "muster/store/client/cut_leader.h"
#include "muster/store/service/passing_handler.h"
#include "muster/store/service/store_status.h"
#include "muster/store/testing/joining.h"
#include "muster/store/testing/simulated_store.h"

namespace muster::overlapped_push_test {
namespace {

// Three stripes, one, one of another type, and two that take no part.
const std::vector<VariableSpec> kVariables = {
    {.name = "w", .shape = {40, 1000}},
    {.name = "b", .shape = {7}},
    {.name = "frozen", .shape = {3}, .kind = VariableKind::kFrozen},
    {.name = "mean", .shape = {6}, .kind = VariableKind::kBuffer},
    {.name = "unused", .shape = {5}},
    {.name = "d", .dtype = DType::kFloat64, .shape = {20000}},
};
constexpr size_t kW = 0;
constexpr size_t kUnused = 4;
constexpr size_t kD = 5;
const std::vector<std::string> kTasks = {"chief:0", "worker:0"};
const RuleSpec kAdam = {.kind = RuleKind::kAdam};
const Partitioning kInTwo = {.kind = Partitioning::Kind::kFixed, .shards = 2};
constexpr int kSteps = 4;

// A worker with its own gradients, which are filled anew for each step.
struct Worker {
  Worker(SimulatedStore& store, int num_ps, const std::string& task, FaultScript* script = nullptr,
         size_t part_bytes = 1)
      : model(kVariables, kAdam, num_ps, kInTwo),
        gradients(kVariables, kAdam, num_ps, kInTwo),
        client(script == nullptr ? store.Client(task, {.part_bytes = part_bytes})
                                 : store.Client(task, *script, {.part_bytes = part_bytes})),
        push(*client) {
    model.Fill(7);
  }
  ByteSpan Gradient(size_t i) const { return i == kUnused ? ByteSpan() : ByteSpan(gradients.memory[i]); }
  // The gradients that `announced` names are ready in time, the last one first.
  absl::StatusOr<StorePushResult> StepInParts(int step, const std::vector<bool>& announced) {
    Begin(step);
    for (size_t i = kVariables.size(); i-- > 0;)
      if (announced[i]) push.Ready(i, Gradient(i));
    return Finish();
  }
  void Begin(int step) {
    gradients.Fill(step);
    push.Begin();
  }
  absl::StatusOr<StorePushResult> Finish() {
    return push.Finish([this](size_t i) { return Gradient(i); }, /*publish_buffers=*/true);
  }
  absl::StatusOr<StorePushResult> StepWhole(int step) {
    gradients.Fill(step);
    return client->PushPull([this](size_t i) { return Gradient(i); }, {.publish_buffers = true});
  }

  WorkerModel model;
  WorkerModel gradients;
  std::unique_ptr<StoreClient> client;
  OverlappedPush push;
};

const std::vector<bool> kAll(kVariables.size(), true);

// The result of a training.
struct Outcome {
  absl::Status status;
  std::vector<std::vector<std::byte>> values;
  std::vector<PartSnapshot> parts;
  std::vector<uint64_t> versions;
  int64_t global_step = 0;
  uint64_t met = 0;
};

Outcome Leave(SimulatedStore& store, Worker& chief, int num_ps) {
  Outcome outcome{.values = chief.model.memory};
  for (int ps = 0; ps < num_ps; ++ps) {
    outcome.versions.push_back(nlohmann::json::parse(StatusJson(store.service(ps).MakeView()))["version"]);
    outcome.parts.push_back(store.Snapshot(ps));
  }
  outcome.global_step = chief.client->ReadGlobalStep().value_or(-1);
  return outcome;
}

void ExpectSame(const Outcome& outcome, const Outcome& other) {
  ASSERT_EQ(outcome.status, absl::OkStatus());
  EXPECT_EQ(outcome.global_step, kSteps);
  EXPECT_EQ(outcome.versions, other.versions);
  EXPECT_EQ(outcome.values, other.values);
  for (size_t ps = 0; ps < other.parts.size(); ++ps) {
    EXPECT_EQ(outcome.parts[ps].bytes, other.parts[ps].bytes) << "ps " << ps;
    EXPECT_EQ(outcome.parts[ps].steps, other.parts[ps].steps) << "ps " << ps;
  }
}

// `announced`: null: in one message.
Outcome Train(int num_ps, const std::vector<bool>* announced, const std::vector<Fault>& faults = {},
              size_t part_bytes = 1) {
  SimulatedStore store(num_ps, kTasks);
  FaultScript script(faults);
  Worker chief(store, num_ps, "chief:0", &script, part_bytes);
  absl::Status status = JoinToTrain(*chief.client, chief.model.binding, true);
  for (int step = 0; step < kSteps && status.ok(); ++step) {
    const auto result = announced != nullptr ? chief.StepInParts(step, *announced) : chief.StepWhole(step);
    status = result.status();
    if (!status.ok()) break;
    EXPECT_EQ(result->global_step, step + 1);
    EXPECT_EQ(result->staleness, 0u);
  }
  Outcome outcome;
  if (status.ok()) outcome = Leave(store, chief, num_ps);
  outcome.status = std::move(status);
  outcome.met = script.met();
  return outcome;
}

class OverlappedPushTest : public ::testing::TestWithParam<int> {};

TEST_P(OverlappedPushTest, LeavesTheSameBitsAsOneMessage) {
  const Outcome plain = Train(GetParam(), nullptr);
  for (const size_t part_bytes : {size_t{1}, size_t{100'000}, size_t{1} << 30}) {
    ExpectSame(Train(GetParam(), &kAll, {}, part_bytes), plain);
    ExpectSame(Train(GetParam(), std::vector<std::vector<bool>>{{true, false, true, true, true, false}}.data(), {},
                     part_bytes),
               plain);
    const std::vector<bool> none(kVariables.size(), false);
    ExpectSame(Train(GetParam(), &none, {}, part_bytes), plain);
  }
}

TEST_P(OverlappedPushTest, PartsThatAreLostCutDoubledOrLateAreAppliedOnce) {
  const Outcome plain = Train(GetParam(), nullptr);
  for (const FaultKind kind : {FaultKind::kCutRequest, FaultKind::kCutReply, FaultKind::kDuplicateRequest,
                               FaultKind::kDelayRequest, FaultKind::kDelayReply}) {
    uint64_t met = 0;
    for (uint64_t first = 1; first <= 24; ++first) {
      SCOPED_TRACE(absl::StrCat("fault ", static_cast<int>(kind), " at push_pull ", first));
      const Outcome outcome = Train(
          GetParam(), &kAll,
          {{.kind = kind, .first = first, .method = static_cast<uint16_t>(StoreMethod::kPushPull), .bytes = 70'000}});
      met += outcome.met;
      ExpectSame(outcome, plain);
    }
    EXPECT_EQ(met, 24u);
  }
}

TEST_P(OverlappedPushTest, APsThatIsRestartedBetweenPartsKeepsWhatItHas) {
  const Outcome plain = Train(GetParam(), nullptr);
  SimulatedStore store(GetParam(), kTasks);
  Worker chief(store, GetParam(), "chief:0");
  ASSERT_EQ(JoinToTrain(*chief.client, chief.model.binding, true), absl::OkStatus());
  for (int step = 0; step < kSteps; ++step) {
    chief.Begin(step);
    chief.push.Ready(kD, chief.Gradient(kD));
    store.Pass(absl::Milliseconds(10));
    const int ps = step % GetParam();
    store.KillPs(ps);
    store.StartPs(ps);
    chief.push.Ready(kW, chief.Gradient(kW));
    const auto result = chief.Finish().value();
    EXPECT_EQ(result.global_step, step + 1);
  }
  ExpectSame(Leave(store, chief, GetParam()), plain);
}

TEST_P(OverlappedPushTest, APsThatLosesTheFirstPartsAbortsTheUpdate) {
  SimulatedStore store(GetParam(), kTasks);
  Worker chief(store, GetParam(), "chief:0");
  ASSERT_EQ(JoinToTrain(*chief.client, chief.model.binding, true), absl::OkStatus());
  chief.Begin(0);
  chief.push.Ready(kD, chief.Gradient(kD));
  store.Pass(absl::Milliseconds(10));
  store.LosePs(0);
  store.StartPs(0);
  EXPECT_EQ(chief.Finish().status().code(), absl::StatusCode::kAborted);
  ASSERT_EQ(JoinToTrain(*chief.client, chief.model.binding, true), absl::OkStatus());
  EXPECT_EQ(chief.StepInParts(1, kAll)->global_step, 1);
}

TEST_P(OverlappedPushTest, AnUpdateWithoutItsLastPartCountsNothingAndHoldsNobody) {
  SimulatedStore store(GetParam(), kTasks);
  Worker chief(store, GetParam(), "chief:0");
  ASSERT_EQ(JoinToTrain(*chief.client, chief.model.binding, true), absl::OkStatus());
  {
    Worker worker(store, GetParam(), "worker:0");
    ASSERT_EQ(JoinToTrain(*worker.client, worker.model.binding, false), absl::OkStatus());
    worker.Begin(1);
    worker.push.Ready(kD, worker.Gradient(kD));
    store.Pass(absl::Milliseconds(10));
    worker.push.Begin();  // what was answered is forgotten, as with the process
  }
  EXPECT_EQ(*chief.client->ReadGlobalStep(), 0);
  // The sender's connections have closed, so it is soon taken for dead.
  const auto cut = CutCheckpoint(*chief.client).value();
  EXPECT_EQ(cut.global_step, 0);
  Worker again(store, GetParam(), "worker:0");
  ASSERT_EQ(JoinToTrain(*again.client, again.model.binding, false), absl::OkStatus());
  EXPECT_EQ(again.StepInParts(2, kAll)->global_step, 1);
  EXPECT_EQ(CutCheckpoint(*chief.client)->global_step, 1);
}

// The chief's cut begins when part of a worker's update is there, and the rest comes `later`.
void ExpectTheCutToWait(int num_ps, absl::Duration later) {
  SimulatedStore store(num_ps, kTasks);
  Worker chief(store, num_ps, "chief:0");
  Worker worker(store, num_ps, "worker:0");
  ASSERT_EQ(JoinToTrain(*chief.client, chief.model.binding, true), absl::OkStatus());
  ASSERT_EQ(JoinToTrain(*worker.client, worker.model.binding, false), absl::OkStatus());
  worker.Begin(1);
  worker.push.Ready(kD, worker.Gradient(kD));
  store.Pass(absl::Milliseconds(10));
  absl::StatusOr<StorePushResult> pushed = absl::UnknownError("not pushed");
  absl::StatusOr<StorePushResult> next = pushed;
  store.loop.CallAt(store.loop.Now() + later, [&] {
    pushed = worker.Finish();
    next = worker.StepInParts(2, kAll);
  });
  const auto cut = CutCheckpoint(*chief.client).value();
  EXPECT_EQ(cut.global_step, 1);
  store.Pass(absl::Seconds(1));
  ASSERT_EQ(next.status(), absl::OkStatus());
  EXPECT_EQ(next->global_step, 2);
  // The checkpoint's parts have the whole first update, and nothing of the second.
  SimulatedStore other(num_ps, kTasks);
  Worker reference(other, num_ps, "chief:0");
  ASSERT_EQ(JoinToTrain(*reference.client, reference.model.binding, true), absl::OkStatus());
  ASSERT_EQ(reference.StepWhole(1).status(), absl::OkStatus());
  for (int ps = 0; ps < num_ps; ++ps) {
    const auto part = ExportPart(*chief.client, ps, cut.hold);
    const auto expected = ExportPart(*reference.client, ps, CutCheckpoint(*reference.client)->hold);
    ASSERT_EQ(part.status(), absl::OkStatus());
    EXPECT_EQ(part->bytes, expected->bytes) << "ps " << ps;
    EXPECT_EQ(part->steps, expected->steps) << "ps " << ps;
  }
}

TEST_P(OverlappedPushTest, ACutBetweenPartsLetsTheUpdateInWholly) {
  ExpectTheCutToWait(GetParam(), absl::Milliseconds(100));
}

TEST_P(OverlappedPushTest, ACutWaitsForABackwardPassThatTakesLong) {
  ExpectTheCutToWait(GetParam(), 3 * CutFollower::kLimit);
}

TEST_P(OverlappedPushTest, AnUpdateThatIsGivenUpCountsNothing) {
  SimulatedStore store(GetParam(), kTasks);
  Worker chief(store, GetParam(), "chief:0");
  ASSERT_EQ(JoinToTrain(*chief.client, chief.model.binding, true), absl::OkStatus());
  chief.Begin(1);
  chief.push.Ready(kD, chief.Gradient(kD));
  chief.push.Abandon();
  EXPECT_EQ(*chief.client->ReadGlobalStep(), 0);
  EXPECT_EQ(CutCheckpoint(*chief.client)->global_step, 0);
  EXPECT_EQ(chief.StepInParts(2, kAll)->global_step, 1);
}

TEST_P(OverlappedPushTest, AGradientOfAnotherShapeEndsTheUpdate) {
  SimulatedStore store(GetParam(), kTasks);
  Worker chief(store, GetParam(), "chief:0");
  ASSERT_EQ(JoinToTrain(*chief.client, chief.model.binding, true), absl::OkStatus());
  chief.Begin(1);
  chief.push.Ready(kD, chief.Gradient(kD));
  const auto result = chief.push.Finish(
      [&](size_t i) { return i == kW ? ByteSpan(chief.gradients.memory[kW]).first(8) : chief.Gradient(i); }, false);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(chief.StepInParts(2, kAll)->global_step, 1);
}

TEST_P(OverlappedPushTest, StalenessIsMeasuredOnceAndCountsWhatCameBetweenParts) {
  SimulatedStore store(GetParam(), kTasks);
  Worker chief(store, GetParam(), "chief:0");
  Worker worker(store, GetParam(), "worker:0");
  ASSERT_EQ(JoinToTrain(*chief.client, chief.model.binding, true), absl::OkStatus());
  ASSERT_EQ(JoinToTrain(*worker.client, worker.model.binding, false), absl::OkStatus());
  worker.Begin(1);
  worker.push.Ready(kD, worker.Gradient(kD));
  store.Pass(absl::Milliseconds(10));
  EXPECT_EQ(chief.StepInParts(1, kAll)->staleness, 0u) << "what isn't whole yet isn't counted";
  EXPECT_EQ(worker.Finish()->staleness, 1u);
  // What it pulled with its first part lacks the chief's update.
  EXPECT_EQ(worker.StepInParts(2, kAll)->staleness, 1u);
  EXPECT_EQ(worker.StepInParts(3, kAll)->staleness, 0u);
}

// The pieces that came to a ps, in order: slice, and its first stripe.
using Arrivals = std::vector<std::pair<uint32_t, uint32_t>>;

class Watching final : public PassingHandler {
 public:
  Watching(StoreService& inner, Arrivals& arrivals) : PassingHandler(inner), arrivals_(arrivals) {}
  void Handle(IncomingRequest& request, std::unique_ptr<BulkTarget> bulk, Responder responder) override {
    if (request.method == static_cast<uint16_t>(StoreMethod::kPushPull)) Note(request.control);
    PassingHandler::Handle(request, std::move(bulk), std::move(responder));
  }

 private:
  void Note(const std::string& control) {
    PushPullRequest message;
    ASSERT_EQ(Decode(control, message), absl::OkStatus());
    for (size_t i = 0; i < message.pushed.size(); ++i)
      arrivals_.emplace_back(message.pushed[i], message.ranges.empty() ? 0 : message.ranges[2 * i]);
  }

  Arrivals& arrivals_;
};

// Returns the arrivals of one update at each ps.
std::vector<Arrivals> ArrivalsOf(int num_ps, const std::vector<bool>& announced, size_t part_bytes) {
  std::vector<Arrivals> arrivals(num_ps);
  SimulatedStore store(num_ps, kTasks);
  for (int ps = 0; ps < num_ps; ++ps) {
    store.KillPs(ps);
    store.wrap = [&mine = arrivals[ps]](StoreService& service) { return std::make_unique<Watching>(service, mine); };
    store.StartPs(ps);
  }
  Worker chief(store, num_ps, "chief:0", nullptr, part_bytes);
  EXPECT_EQ(JoinToTrain(*chief.client, chief.model.binding, true), absl::OkStatus());
  chief.Begin(0);
  for (size_t i = kVariables.size(); i-- > 0;)
    if (announced[i]) chief.push.Ready(i, chief.Gradient(i));
  // Buffers go with the last part, whatever their place in the model.
  EXPECT_EQ(chief.push.Finish([&](size_t i) { return chief.Gradient(i); }, /*publish_buffers=*/false).status(),
            absl::OkStatus());
  return arrivals;
}

// Each answer follows its part, so the values that the next minibatch needs first come first.
TEST_P(OverlappedPushTest, WhatIsNeededFirstGoesFirst) {
  // Pipelined training has all gradients when it begins to send.
  const std::vector<bool> none(kVariables.size(), false);
  for (const Arrivals& parts : ArrivalsOf(GetParam(), none, /*part_bytes=*/1))
    EXPECT_TRUE(std::is_sorted(parts.begin(), parts.end()));
  EXPECT_GT(ArrivalsOf(GetParam(), none, /*part_bytes=*/1)[0].size(), 1u);
  // In one part, though announced in the order of the backward pass.
  for (const Arrivals& whole : ArrivalsOf(GetParam(), kAll, size_t{1} << 30))
    EXPECT_TRUE(std::is_sorted(whole.begin(), whole.end()));
}

INSTANTIATE_TEST_SUITE_P(Ps, OverlappedPushTest, ::testing::Values(1, 2, 3));

TEST(OverlappedPushPossibleTest, NotWhereOneGradientDependsOnAll) {
  SimulatedStore store(1, kTasks);
  const auto possible = [&](const std::function<void(ModelBinding&)>& change, size_t part_bytes = 1) {
    WorkerModel model(kVariables, kAdam, 1);
    change(model.binding);
    auto client = store.Client("chief:0", {.part_bytes = part_bytes});
    client->Bind(model.binding);
    return OverlappedPush(*client).Possible();
  };
  EXPECT_TRUE(possible([](ModelBinding&) {}));
  EXPECT_FALSE(possible([](ModelBinding&) {}, 0));
  EXPECT_FALSE(possible([](ModelBinding& b) { b.optimizer.non_finite = NonFinite::kDrop; }));
  EXPECT_FALSE(possible([](ModelBinding& b) { b.optimizer.rule.clip = {ClipKind::kGlobalNorm, 1}; }));
  EXPECT_TRUE(possible([](ModelBinding& b) { b.optimizer.rule.clip = {ClipKind::kValue, 1}; }));
  EXPECT_FALSE(possible([](ModelBinding& b) { b.clock_limit = 2; }));
  EXPECT_FALSE(possible([](ModelBinding& b) { b.exchanges = true; }));
  EXPECT_FALSE(possible([](ModelBinding& b) { b.compensation = 0.1; }));
  EXPECT_FALSE(possible([](ModelBinding& b) { b.adaptive = 0.1; }));
  EXPECT_FALSE(possible([](ModelBinding& b) { b.staleness_scale = StalenessScale::kInverse; }));
  EXPECT_FALSE(possible([](ModelBinding& b) { b.ordered = true; }));
  EXPECT_FALSE(possible([](ModelBinding& b) { b.gate.kind = GateKind::kSynchronous; }));
}

// A ps refuses senseless parts.
TEST(OverlappedPushPossibleTest, PartsThatCannotBeMeantAreRefused) {
  SimulatedStore store(1, kTasks);
  WorkerModel model(kVariables, kAdam, 1);
  auto client = store.Client("chief:0");
  ASSERT_EQ(JoinToTrain(*client, model.binding, true), absl::OkStatus());
  const auto refused = [&](PushPullRequest message, size_t bytes = 0) {
    const StoreNumbers numbers = client->NextNumbers();
    message.stamp = client->MakeStamp(0, numbers.sequence);
    message.generation = numbers.generation;
    const std::vector<std::byte> bulk(bytes);
    std::vector<StoreCall> calls(1);
    calls[0].method = StoreMethod::kPushPull;
    calls[0].control = Encode(message);
    if (bytes > 0) calls[0].bulk = {bulk};
    return client->ps_calls().Ask(calls).code() == absl::StatusCode::kInvalidArgument;
  };
  constexpr UpdatePart kOpen = UpdatePart::kOpen;
  EXPECT_FALSE(refused({.pushed = {1}, .update = true, .part = kOpen, .ranges = {0, 1}}, 28));
  EXPECT_TRUE(refused({.pushed = {1}, .update = true, .part = kOpen, .ranges = {0, 2}}, 28));
  EXPECT_TRUE(refused({.pushed = {1}, .update = true, .part = kOpen, .ranges = {1, 1}}, 28));
  EXPECT_TRUE(refused({.pushed = {1}, .update = true, .part = kOpen, .ranges = {0, 0}}, 0));
  EXPECT_TRUE(refused({.pushed = {1}, .update = true, .part = kOpen, .ranges = {0}}, 28));
  EXPECT_TRUE(refused({.pushed = {1}, .update = true, .part = kOpen, .ranges = {0, 1}}, 27));
  EXPECT_TRUE(refused({.pushed = {1}, .part = kOpen, .ranges = {0, 1}}, 28)) << "no update";
  EXPECT_TRUE(refused({.pushed = {1}, .minibatches = 1, .update = true, .part = kOpen, .ranges = {0, 1}}, 28));
  EXPECT_TRUE(refused({.pushed = {1}, .update = true, .ranges = {0, 1}}, 28)) << "whole, with a range";
  EXPECT_TRUE(refused({.update = true, .part = UpdatePart::kClosing, .earlier = {6}}));
  EXPECT_TRUE(refused({.update = true, .part = UpdatePart::kClosing, .earlier = {1, 1}}));
  EXPECT_TRUE(refused({.update = true, .part = static_cast<UpdatePart>(4)}));
  EXPECT_TRUE(refused({.pushed = {1}, .update = true, .part = UpdatePart::kGivenUp, .ranges = {0, 1}}, 28));
  EXPECT_TRUE(refused({.pushed = {1}, .scales = {1}, .update = true, .part = kOpen, .ranges = {0, 1}}, 28));
  EXPECT_TRUE(refused({.clock = 1, .update = true, .part = UpdatePart::kClosing}));
}

}  // namespace
}  // namespace muster::overlapped_push_test
