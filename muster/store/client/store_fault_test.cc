// The store on a bad network: requests and answers lost, cut and duplicated, ps that are gone. A push is applied once,
// or the worker is told which ps can't be reached.
#include <gmock/gmock.h>

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "muster/base/log.h"
#include "muster/store/calls/shutdown_wait.h"
#include "muster/store/client/checkpoint_calls.h"
#include "muster/store/service/store_status.h"
#include "muster/store/testing/simulated_store.h"
#include "muster/store/testing/update_way.h"
#include "muster/store/testing/update_way_push.h"
#include "muster/transport/forwarding_channel.h"

namespace muster::store_fault_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr;

const std::vector<VariableSpec> kVariables = {{.name = "w", .shape = {40, 1000}},
                                              {.name = "b", .dtype = DType::kFloat64, .shape = {7}},
                                              {.name = "mean", .shape = {6}, .kind = VariableKind::kBuffer}};
const std::vector<std::string> kTasks = {"chief:0", "worker:0"};
const RuleSpec kAdam = {.kind = RuleKind::kAdam};
const Partitioning kInThree = {.kind = Partitioning::Kind::kFixed, .shards = 3};

nlohmann::json StatusOf(SimulatedStore& store, int ps) {
  return nlohmann::json::parse(StatusJson(store.service(ps).MakeView()));
}

// The result of a run; equal runs have equal results.
struct Outcome {
  absl::Status status;
  std::vector<std::vector<std::byte>> values;  // as the chief sees them
  std::vector<PartSnapshot> parts;             // as the ps have them
  int64_t global_step = 0;
  std::vector<nlohmann::json> versions;
  uint64_t met = 0;
};

constexpr int kSteps = 4;

StoreClientOptions OptionsOf(const UpdateWay& way) { return {.apply = way.apply, .part_bytes = way.part_bytes()}; }

absl::Status Train(const UpdateWay& way, StoreClient& chief, StoreClient& worker, WorkerModel& model,
                   WorkerModel& copy) {
  WorkerModel gradients(kVariables, kAdam, 2, kInThree);
  absl::Status status = chief.Join(true);
  chief.Bind(model.binding);
  if (status.ok()) status = chief.Initialize(0, 0, nullptr);
  if (status.ok()) status = worker.Join(false);
  worker.Bind(copy.binding);
  // AwaitReady settles which process applies updates.
  if (status.ok()) status = chief.AwaitReady(absl::InfiniteFuture()).status();
  if (status.ok()) status = worker.AwaitReady(absl::InfiniteFuture()).status();
  for (int step = 0; step < kSteps && status.ok(); ++step) {
    gradients.Fill(step);
    const auto gradient = [&](size_t i) { return ByteSpan(gradients.memory[i]); };
    status = PushBy(way, step % 2 == 0 ? chief : worker, gradient, /*publish_buffers=*/step % 2 == 0).status();
  }
  return status.ok() ? chief.Pull(PullWhat::kTrainable) : status;
}

Outcome TrainWith(const UpdateWay& way, const std::vector<Fault>& faults) {
  FaultScript script(faults);
  // Longer than any of the faults keeps a client away.
  SimulatedStore store(2, kTasks, {.lease = absl::Seconds(20), .disconnect_grace = absl::Seconds(20)}, nullptr,
                       way.direct());
  WorkerModel model(kVariables, kAdam, 2, kInThree);
  WorkerModel copy(kVariables, kAdam, 2, kInThree);
  model.Fill(7);
  auto chief = store.Client("chief:0", script, OptionsOf(way));
  auto worker = store.Client("worker:0", script, OptionsOf(way));
  Outcome outcome;
  outcome.status = Train(way, *chief, *worker, model, copy);
  outcome.met = script.met();
  if (!outcome.status.ok()) return outcome;
  outcome.values = model.memory;
  auto observer = store.Client("chief:0");
  chief.reset();
  EXPECT_EQ(observer->Join(true), absl::OkStatus());
  observer->Bind(model.binding);
  for (int ps = 0; ps < 2; ++ps) {
    outcome.parts.push_back(store.Snapshot(ps));
    outcome.versions.push_back(StatusOf(store, ps)["version"]);
  }
  outcome.global_step = observer->ReadGlobalStep().value_or(-1);
  return outcome;
}

void ExpectSame(const Outcome& outcome, const Outcome& undisturbed) {
  ASSERT_EQ(outcome.status, absl::OkStatus());
  EXPECT_EQ(outcome.global_step, kSteps);
  EXPECT_EQ(outcome.versions, undisturbed.versions);
  ASSERT_EQ(outcome.parts.size(), undisturbed.parts.size());
  for (size_t ps = 0; ps < outcome.parts.size(); ++ps) {
    EXPECT_TRUE(outcome.parts[ps].bytes == undisturbed.parts[ps].bytes) << "ps " << ps;
    EXPECT_EQ(outcome.parts[ps].steps, undisturbed.parts[ps].steps);
  }
  EXPECT_TRUE(outcome.values == undisturbed.values);
}

// By the fault, and the way that updates go.
class RetryTest : public ::testing::TestWithParam<std::tuple<Fault, UpdateWay>> {
 protected:
  static const UpdateWay& way() { return std::get<UpdateWay>(GetParam()); }
  static const Outcome& Undisturbed() {
    static auto* const kOutcomes = new std::map<std::string, Outcome>;
    auto at = kOutcomes->find(way().name);
    if (at == kOutcomes->end()) at = kOutcomes->emplace(way().name, TrainWith(way(), {})).first;
    return at->second;
  }
};

// The fault strikes each request of the whole run in turn, including the joins and the initialisation.
TEST_P(RetryTest, WhicheverRequestItMeetsEveryPushIsAppliedOnce) {
  ASSERT_EQ(Undisturbed().status, absl::OkStatus());
  Fault fault = std::get<Fault>(GetParam());
  int struck = 0;
  for (fault.first = 1;; ++fault.first) {
    SCOPED_TRACE(fault.first);
    const Outcome outcome = TrainWith(way(), {fault});
    if (outcome.met == 0) break;
    ++struck;
    ExpectSame(outcome, Undisturbed());
    if (HasFailure()) return;
  }
  // At least joins, initialisations and await_ready of both ps; four pushes with their counts and the last pull, unless
  // they are made in the ps's own memory.
  EXPECT_GE(struck, 4 + 2 + 4 + (way().direct() ? 0 : kSteps * 3 + 2));
}

TEST_P(RetryTest, AndWhenItMeetsEveryThirdRequest) {
  std::vector<Fault> faults;
  for (uint64_t first = 1; first < 60; first += 3) {
    faults.push_back(std::get<Fault>(GetParam()));
    faults.back().first = first;
  }
  ExpectSame(TrainWith(way(), faults), Undisturbed());
}

TEST_P(RetryTest, AndThreeTimesInARow) {
  Fault fault = std::get<Fault>(GetParam());
  fault.times = 3;
  for (fault.first = 1; fault.first < 22; ++fault.first) {
    SCOPED_TRACE(fault.first);
    ExpectSame(TrainWith(way(), {fault}), Undisturbed());
    if (HasFailure()) return;
  }
}

// The result of a run is the same whichever way its updates went.
TEST(WaysTest, LeaveTheSameBits) {
  const Outcome first = TrainWith(kStoreWays[0], {});
  for (const UpdateWay& way : kStoreWays) {
    SCOPED_TRACE(way.name);
    ExpectSame(TrainWith(way, {}), first);
  }
}

std::string NameOf(const Fault& fault) {
  const char* const names[] = {"DropRequest",      "DropReply",  "DelayRequest", "DelayReply",
                               "DuplicateRequest", "CutRequest", "CutReply",     "Refuse"};
  return names[static_cast<int>(fault.kind)] + std::to_string(fault.bytes);
}

INSTANTIATE_TEST_SUITE_P(
    All, RetryTest,
    ::testing::Combine(::testing::Values(Fault{.kind = FaultKind::kCutReply},
                                         Fault{.kind = FaultKind::kDuplicateRequest},
                                         Fault{.kind = FaultKind::kCutRequest, .bytes = 0},
                                         Fault{.kind = FaultKind::kCutRequest, .bytes = 60000},
                                         Fault{.kind = FaultKind::kDelayRequest, .delay = absl::Seconds(2)},
                                         Fault{.kind = FaultKind::kDelayReply, .delay = absl::Seconds(2)},
                                         Fault{.kind = FaultKind::kRefuse, .delay = absl::Seconds(2)}),
                       ::testing::ValuesIn(kStoreWays)),
    [](const auto& info) { return NameOf(std::get<Fault>(info.param)) + "By" + std::get<UpdateWay>(info.param).name; });

// Receives that many bytes per second all the time.
class TricklingChannel final : public ForwardingChannel {
 public:
  TricklingChannel(std::unique_ptr<Channel> inner, EventLoop& loop, double bytes_per_second)
      : ForwardingChannel(std::move(inner)), loop_(loop), bytes_per_second_(bytes_per_second) {}
  Stats stats() const override {
    Stats stats = inner_->stats();
    stats.bytes_received += static_cast<uint64_t>(bytes_per_second_ * absl::ToDoubleSeconds(loop_.Now() - begin_));
    return stats;
  }

 private:
  EventLoop& loop_;
  const double bytes_per_second_;
  const absl::Time begin_ = loop_.Now();
};

// Faults that last longer than a retry's patience.
class FaultTest : public ::testing::TestWithParam<UpdateWay> {
 protected:
  void Start() {
    ASSERT_EQ(chief_->Join(true), absl::OkStatus());
    chief_->Bind(model_.binding);
    ASSERT_EQ(chief_->Initialize(0, 0, nullptr), absl::OkStatus());
    ASSERT_TRUE(chief_->AwaitReady(absl::InfiniteFuture()).ok());  // settles which process applies updates
  }
  absl::Status Push() {
    return PushBy(
               GetParam(), *chief_, [this](size_t i) { return ByteSpan(gradients_.memory[i]); },
               /*publish_buffers=*/false)
        .status();
  }
  // `action` gives up with Unavailable, names ps 1, and takes exactly the patience for it.
  void ExpectGivesUpOnPs1(const std::function<absl::Status()>& action) {
    const absl::Time begin = store_.loop.Now();
    const absl::Status status = action();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(status.message(), AllOf(HasSubstr("ps:1"), HasSubstr("ps1:2222")));
    EXPECT_GE(store_.loop.Now() - begin, absl::Seconds(60));
    EXPECT_LE(store_.loop.Now() - begin, absl::Seconds(61));  // in parts, a second is for last words
  }

  StoreClientOptions Options() {
    StoreClientOptions options = OptionsOf(GetParam());
    options.stop_requested = [this] { return stop_; };
    return options;
  }

  bool stop_ = false;
  FaultScript script_;
  SimulatedStore store_{2, kTasks, {.lease = absl::Hours(10)}, nullptr, GetParam().direct()};  // no heartbeats here
  WorkerModel model_{kVariables, kAdam, 2, kInThree};
  WorkerModel gradients_{kVariables, kAdam, 2, kInThree};
  std::unique_ptr<StoreClient> chief_ = store_.Client("chief:0", script_, Options());
};

INSTANTIATE_TEST_SUITE_P(Ways, FaultTest, ::testing::ValuesIn(kStoreWays), NameOfWay);

// Faults that only an update that is sent can meet.
class SentFaultTest : public FaultTest {};

INSTANTIATE_TEST_SUITE_P(Ways, SentFaultTest, ::testing::ValuesIn(Without(kStoreWays, {"Direct"})), NameOfWay);

TEST_P(FaultTest, APsThatWasNeverThereIsNamedWithinThePatience) {
  store_.KillPs(1);
  ExpectGivesUpOnPs1([&] { return chief_->Join(true); });
}

TEST_P(FaultTest, ATaskThatStartsWaitsLongerIfItIsTold) {
  StoreClientOptions options = Options();
  options.first_patience = absl::Minutes(30);
  auto early = store_.Client("chief:0", script_, options);
  store_.KillPs(1);
  const absl::Time begin = store_.loop.Now();
  store_.loop.CallAt(begin + absl::Minutes(29), [this] { store_.StartPs(1); });
  ASSERT_EQ(early->Join(true), absl::OkStatus());
  EXPECT_GE(store_.loop.Now(), begin + absl::Minutes(29));
  store_.KillPs(1);
  ExpectGivesUpOnPs1([&] { return early->Join(true); });
}

TEST_P(FaultTest, APsThatDiesInTrainingIsNamedWithinThePatience) {
  Start();
  ASSERT_EQ(Push(), absl::OkStatus());
  store_.KillPs(1);
  ExpectGivesUpOnPs1([&] { return Push(); });
  EXPECT_EQ(*chief_->ReadGlobalStep(), 1) << "what didn't reach every ps isn't counted";
}

TEST_P(FaultTest, WhoIsToStopGivesAPsThatIsGoneAFewSecondsAndNamesIt) {
  Start();
  ASSERT_EQ(Push(), absl::OkStatus());
  store_.KillPs(1);
  absl::Time stopped;
  store_.loop.CallAt(store_.loop.Now() + absl::Seconds(20), [&] { stop_ = true, stopped = store_.loop.Now(); });
  const absl::Status status = Push();
  EXPECT_TRUE(IsInterrupted(status)) << status;
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_THAT(status.message(), AllOf(HasSubstr("interrupted"), HasSubstr("ps:1 (ps1:2222)")));
  EXPECT_GT(store_.loop.Now() - stopped, absl::Seconds(5));
  EXPECT_LT(store_.loop.Now() - stopped, absl::Seconds(7));
  const absl::Time gone = store_.loop.Now();
  EXPECT_EQ(chief_->Done(), absl::OkStatus());
  EXPECT_LT(store_.loop.Now() - gone, absl::Seconds(1)) << "ps 0 is told, nobody waits for ps 1 again";
}

TEST_P(FaultTest, WhoIsToStopFinishesWithAPsThatComesBackSoon) {
  Start();
  store_.KillPs(1);
  store_.loop.CallAt(store_.loop.Now() + absl::Seconds(8), [&] { stop_ = true; });
  store_.loop.CallAt(store_.loop.Now() + absl::Seconds(12), [&] { store_.StartPs(1); });
  EXPECT_EQ(Push(), absl::OkStatus());
  EXPECT_EQ(*chief_->ReadGlobalStep(), 1);
}

TEST_P(FaultTest, APsThatDiesWhileTheWholeModelMovesIsNamedWithinThePatienceToo) {
  Start();
  store_.KillPs(1);
  ExpectGivesUpOnPs1([&] { return ExportPart(*chief_, 1, 1).status(); });
  ExpectGivesUpOnPs1([&] { return SavePart(*chief_, 1, "model", "a", "part", 1).status(); });
  ExpectGivesUpOnPs1([&] { return chief_->Initialize(0, 0, nullptr); });
}

TEST_P(FaultTest, MovingTheWholeModelMayTakeLongerThanThePatience) {
  script_.Add({.kind = FaultKind::kDelayReply,
               .times = 100,
               .method = static_cast<uint16_t>(StoreMethod::kInitialize),
               .delay = absl::Minutes(20)});
  Start();
}

TEST_P(SentFaultTest, WhoIsToStopWaitsForAPsThatIsThereAndSlow) {
  Start();
  script_.Add({.kind = FaultKind::kDelayReply,
               .method = static_cast<uint16_t>(StoreMethod::kPushPull),
               .peer = store_.addresses()[1],
               .delay = absl::Seconds(40)});
  store_.loop.CallAt(store_.loop.Now() + absl::Seconds(1), [&] { stop_ = true; });
  EXPECT_EQ(Push(), absl::OkStatus());
  EXPECT_EQ(StatusOf(store_, 0)["global_step"], 1);
}

// The answer to a push comes piece by piece, and any question meanwhile waits behind it.
TEST_P(SentFaultTest, WhoIsToStopWaitsForAPsWhoseAnswerIsOnItsWay) {
  SimulatedTransport faults(store_.network, store_.loop, &script_);
  for (const bool moves : {true, false}) {
    SCOPED_TRACE(moves);
    stop_ = false;
    WrappingTransport transport(faults, [&](std::unique_ptr<Channel> channel) {
      return std::make_unique<TricklingChannel>(std::move(channel), store_.loop, moves ? 1000 : 0);
    });
    StoreClientOptions options = Options();
    options.task = "chief:0";
    options.incarnation = moves ? 1000 : 1001;
    chief_ = std::make_unique<StoreClient>(transport, store_.addresses(), std::move(options));
    Start();
    script_.Add({.kind = FaultKind::kDelayReply,
                 .method = static_cast<uint16_t>(StoreMethod::kPushPull),
                 .peer = store_.addresses()[1],
                 .delay = absl::Seconds(25)});
    script_.Add({.kind = FaultKind::kDelayRequest,
                 .times = 5,
                 .method = static_cast<uint16_t>(StoreMethod::kStatus),
                 .peer = store_.addresses()[1],
                 .delay = absl::Seconds(25)});
    store_.loop.CallAt(store_.loop.Now() + absl::Seconds(1), [&] { stop_ = true; });
    const absl::Status status = Push();
    EXPECT_EQ(IsInterrupted(status), !moves) << status;
    EXPECT_EQ(status.ok(), moves) << status;
    chief_.reset();
  }
}

TEST_P(SentFaultTest, WhoIsToStopWithTwoPsGoneTellsNeitherThatItIsDone) {
  Start();
  ASSERT_EQ(Push(), absl::OkStatus());
  store_.KillPs(0);
  store_.KillPs(1);
  store_.loop.CallAt(store_.loop.Now() + absl::Seconds(1), [&] { stop_ = true; });
  const absl::Status status = Push();
  EXPECT_TRUE(IsInterrupted(status)) << status;
  const absl::Time gone = store_.loop.Now();
  EXPECT_EQ(chief_->Done(), absl::OkStatus());
  EXPECT_LT(store_.loop.Now() - gone, absl::Seconds(1)) << "somebody was waited for again";
}

TEST_P(SentFaultTest, APsThatIsSilentIsNamedWithinThePatience) {
  Start();
  script_.Add({.kind = FaultKind::kDropReply,
               .times = 100,
               .method = static_cast<uint16_t>(StoreMethod::kPushPull),
               .peer = store_.addresses()[1]});
  ExpectGivesUpOnPs1([&] { return Push(); });
}

TEST_P(FaultTest, AWaitForAPsNamesItAndTheLastErrorLessAndLessOften) {
  store_.KillPs(1);
  store_.loop.CallAt(store_.loop.Now() + absl::Seconds(50), [&] { store_.StartPs(1); });
  ::testing::internal::CaptureStderr();
  SetUpLog("");
  EXPECT_EQ(chief_->Join(true), absl::OkStatus());
  std::vector<std::string> waits;
  for (const absl::string_view line : absl::StrSplit(::testing::internal::GetCapturedStderr(), '\n'))
    if (absl::StrContains(line, "waiting since")) waits.emplace_back(line);
  const std::string whom = " for ps:1 (ps1:2222): connection refused; giving up in ";
  EXPECT_THAT(waits, ::testing::ElementsAre(HasSubstr("waiting since 5s" + whom + "55s"),
                                            HasSubstr("waiting since 15s" + whom + "45s"),
                                            HasSubstr("waiting since 35s" + whom + "25s")));
}

TEST_P(FaultTest, APsThatComesLateIsWaitedFor) {
  store_.KillPs(1);
  store_.loop.CallAt(store_.loop.Now() + absl::Seconds(40), [&] { store_.StartPs(1); });
  Start();
  EXPECT_EQ(Push(), absl::OkStatus());
}

TEST_P(FaultTest, APsThatWasRestartedWithoutItsModelIsNamed) {
  Start();
  store_.LosePs(1);
  store_.StartPs(1);
  const absl::Status status = Push();
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_THAT(status.message(), AllOf(HasSubstr("ps:1"), HasSubstr("ps1:2222"), HasSubstr("restarted")));
}

TEST_P(SentFaultTest, AStepIsCountedOnlyWhenEveryPsHasIt) {
  Start();
  script_.Add({.kind = FaultKind::kDelayReply,
               .method = static_cast<uint16_t>(StoreMethod::kPushPull),
               .peer = store_.addresses()[1],
               .delay = absl::Seconds(5)});
  bool looked = false;
  store_.loop.CallAt(store_.loop.Now() + absl::Seconds(4), [&] {
    looked = true;
    EXPECT_EQ(StatusOf(store_, 0)["version"], 1) << "ps 0 has applied its part";
    EXPECT_EQ(StatusOf(store_, 0)["global_step"], 0);
  });
  EXPECT_EQ(Push(), absl::OkStatus());
  EXPECT_TRUE(looked);
  EXPECT_EQ(StatusOf(store_, 0)["global_step"], 1);
}

TEST_P(FaultTest, AnInitialisationThatIsSentAgainDoesNotUndoTraining) {
  // The answer to the first is lost, the second is late, and a worker trains meanwhile.
  const Fault initialize = {.method = static_cast<uint16_t>(StoreMethod::kInitialize), .peer = store_.addresses()[0]};
  Fault lost = initialize;
  lost.kind = FaultKind::kCutReply;
  script_.Add(lost);
  Fault late = initialize;
  late.kind = FaultKind::kDelayRequest;
  late.first = 2;
  late.delay = absl::Seconds(2);
  script_.Add(late);
  auto worker = store_.Client("worker:0");
  WorkerModel copy(kVariables, kAdam, 2, kInThree);
  store_.loop.CallAt(store_.loop.Now() + absl::Seconds(1), [&] {
    ASSERT_EQ(worker->Join(false), absl::OkStatus());
    worker->Bind(copy.binding);
    ASSERT_TRUE(worker->AwaitReady(absl::InfiniteFuture()).ok());
    ASSERT_TRUE(worker->PushPull([&](size_t i) { return ByteSpan(gradients_.memory[i]); }, {}).ok());
  });
  Start();
  EXPECT_EQ(script_.met(), 2u);
  EXPECT_EQ(*chief_->ReadGlobalStep(), 1);
}

}  // namespace
}  // namespace muster::store_fault_test
