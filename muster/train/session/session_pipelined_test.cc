// Sessions that save, restore and recover while an update is under way: the step's number and the values agree, nothing
// is applied twice and nothing is lost. Every update adds one to every element, so that each element counts the updates
// in it.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/algo/algorithms/pipelined.h"
#include "muster/algo/sources/float_source.h"
#include "muster/base/testing/sanitizer_stride.h"
#include "muster/checkpoint/checkpoint_reader.h"
#include "muster/store/calls/shutdown_wait.h"
#include "muster/store/service/store_status.h"
#include "muster/store/testing/simulated_store.h"
#include "muster/train/session/session.h"

namespace muster::session_pipelined_test {
namespace {

using ::testing::Each, ::testing::HasSubstr;

// Three stripes on one ps, a small variable on the other.
constexpr int64_t kWidth = 40000;
const std::vector<std::string> kTasks = {"chief:0", "worker:0"};

// Each reading is a second after the one before. It doesn't synchronise threads, so that it hides no race.
class HastyClock final : public Clock {
 public:
  absl::Time Now() const override {
    return absl::FromUnixSeconds(1000000000 + looks_.fetch_add(1, std::memory_order_relaxed));
  }

 private:
  mutable std::atomic<int64_t> looks_{0};
};

// A task and its session.
struct Trainee {
  Trainee(SimulatedStore& store, const std::string& task, bool thread, SessionOptions options = {},
          FaultScript* faults = nullptr, const Clock* clock = nullptr)
      : client(faults == nullptr ? store.Client(task, ClientOptions()) : store.Client(task, *faults, ClientOptions())),
        algorithm(source, *PlaceVariables(source.variables(), 2, Placement::kRoundRobin, {}),
                  RuleSpec{.learning_rate = 1}, {.thread = thread}),
        session({.client = client.get(),
                 .algorithm = &algorithm,
                 .loop = &store.loop,
                 .files = &store.files,
                 .clock = clock != nullptr ? clock : &store.clock,
                 .is_chief = task == "chief:0",
                 .metrics = &metrics},
                options, {}) {
    EXPECT_EQ(session.Start(), absl::OkStatus());
  }
  StoreClientOptions ClientOptions() {
    StoreClientOptions options;
    options.stop_requested = [this] { return stop.load(); };
    options.part_bytes = 1;
    return options;
  }
  void Steps(int steps) {
    for (int i = 0; i < steps; ++i) ASSERT_EQ(session.Run(), absl::OkStatus());
  }

  std::atomic<bool> stop{false};  // set as a signal would
  FloatSource source{{{.name = "w", .shape = {kWidth}}, {.name = "b", .shape = {2}}}, /*value=*/0, /*gradient=*/-1};
  std::unique_ptr<StoreClient> client;
  TrainingMetrics metrics;
  PipelinedAlgorithm algorithm;  // its destructor waits for its thread, which uses the client
  Session session;
};

// The parameter: whether updates have a thread of their own.
class SessionPipelinedTest : public ::testing::TestWithParam<bool> {
 protected:
  static SessionOptions SavedEvery(int steps) { return {.checkpoint_dir = "model", .save_checkpoint_steps = steps}; }
  // Expects as many updates as its step in every element of checkpoint `step`.
  void ExpectWhole(int64_t step) {
    const auto checkpoint = CheckpointReader::Open(store_.files, absl::StrCat("model/model.ckpt-", step)).value();
    EXPECT_EQ(checkpoint->manifest().global_step, step);
    std::vector<float> w(kWidth), b(2);
    ASSERT_TRUE(checkpoint->ReadVariable("w", AsMutableBytes(w.data(), w.size())).ok());
    ASSERT_TRUE(checkpoint->ReadVariable("b", AsMutableBytes(b.data(), b.size())).ok());
    EXPECT_THAT(w, Each(static_cast<float>(step)));
    EXPECT_THAT(b, Each(static_cast<float>(step)));
  }
  // Expects `updates` updates in every element on the ps, and the same count there.
  void ExpectOnPs(int64_t updates) {
    EXPECT_EQ(store_.service(0).MakeView().arena->header().counters.global_step, updates);
    for (int ps = 0; ps < 2; ++ps) {
      Arena& arena = *store_.service(ps).MakeView().arena;
      std::vector<float> values(arena.model().slices[0].elements);
      arena.Read(0, AsMutableBytes(values.data(), values.size()));
      EXPECT_THAT(values, Each(static_cast<float>(updates))) << "ps " << ps;
    }
  }

  SimulatedStore store_{2, kTasks, {.lease = absl::Hours(100)}};
};

INSTANTIATE_TEST_SUITE_P(Threads, SessionPipelinedTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Thread" : "NoThread"; });

TEST_P(SessionPipelinedTest, ACheckpointHasTheUpdateThatIsUnderWayAndIsOfItsStep) {
  Trainee chief(store_, "chief:0", GetParam(), SavedEvery(3));
  for (int step = 1; step <= 9; ++step) {
    chief.Steps(1);
    EXPECT_EQ(chief.session.global_step(), step);
    EXPECT_EQ(chief.algorithm.busy(), step % 3 != 0) << "step " << step;
  }
  for (const int64_t step : {0, 3, 6, 9}) ExpectWhole(step);
  chief.Steps(2);
  EXPECT_EQ(chief.session.Close(), absl::OkStatus());
  ExpectWhole(11);
  ExpectOnPs(11);
}

TEST_P(SessionPipelinedTest, ARestoreIsAfterTheUpdateThatIsUnderWayAndLeavesNothingOfIt) {
  Trainee chief(store_, "chief:0", GetParam(), SavedEvery(2));
  chief.Steps(5);
  ASSERT_TRUE(chief.algorithm.busy());
  ASSERT_EQ(chief.session.Restore("model/model.ckpt-2"), absl::OkStatus());
  EXPECT_FALSE(chief.algorithm.busy());
  EXPECT_EQ(chief.session.global_step(), 2);
  ExpectOnPs(2);
  EXPECT_THAT(chief.source.values(0), Each(2.0f));
  chief.Steps(3);
  EXPECT_EQ(chief.session.global_step(), 5);
  EXPECT_EQ(chief.session.Close(), absl::OkStatus());
  ExpectOnPs(5);
  ExpectWhole(5);
}

TEST_P(SessionPipelinedTest, AnotherProcessGoesOnFromIt) {
  {
    Trainee chief(store_, "chief:0", GetParam(), SavedEvery(4));
    chief.Steps(7);
    ASSERT_TRUE(chief.algorithm.busy());  // killed here: the checkpoint of step 4 is what remains
  }
  for (int ps = 0; ps < 2; ++ps) store_.LosePs(ps), store_.StartPs(ps);
  Trainee again(store_, "chief:0", GetParam(), SavedEvery(4));
  EXPECT_EQ(again.session.global_step(), 4);
  EXPECT_THAT(again.source.values(0), Each(4.0f));
  again.Steps(4);
  EXPECT_EQ(again.session.global_step(), 8);
  ExpectWhole(8);
  ExpectOnPs(8);
}

// It hears of the loss at its next step; the update that was under way is lost with the rest.
TEST_P(SessionPipelinedTest, APsThatComesBackEmptyIsLoadedAndTheStepsAgreeAgain) {
  Trainee chief(store_, "chief:0", GetParam(), SavedEvery(4));
  chief.Steps(6);
  ASSERT_EQ(chief.algorithm.FinishPending(*chief.client), absl::OkStatus());
  store_.LosePs(1);
  store_.StartPs(1);
  chief.Steps(2);  // the second one continues from step 4
  EXPECT_EQ(chief.session.global_step(), 5);
  chief.Steps(3);
  EXPECT_EQ(chief.session.global_step(), 8);
  ExpectWhole(8);
  ExpectOnPs(8);
}

TEST_P(SessionPipelinedTest, WithoutACheckpointItSaysWhatIsMissing) {
  Trainee chief(store_, "chief:0", GetParam());
  store_.LosePs(0);
  store_.StartPs(0);
  chief.Steps(1);
  const absl::Status status = chief.session.Run();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("give the session a checkpoint_dir"));
}

// Whichever message of the run is lost or doubled, the messages of the saves among them.
TEST_P(SessionPipelinedTest, LostAndDoubledMessagesAreInTheCheckpointOnce) {
  for (const FaultKind kind : {FaultKind::kCutRequest, FaultKind::kCutReply, FaultKind::kDuplicateRequest}) {
    for (uint64_t first = 1;; first += kSanitizerStride) {
      SCOPED_TRACE(absl::StrCat("fault ", static_cast<int>(kind), " at message ", first));
      SimulatedStore store(2, {"chief:0"}, {.lease = absl::Hours(100)});
      FaultScript script({{.kind = kind, .first = first}});
      Trainee chief(store, "chief:0", GetParam(), SavedEvery(2), &script);
      chief.Steps(4);
      EXPECT_EQ(chief.session.global_step(), 4);
      EXPECT_EQ(chief.session.Close(), absl::OkStatus());
      for (int ps = 0; ps < 2; ++ps) {
        Arena& arena = *store.service(ps).MakeView().arena;
        std::vector<float> values(arena.model().slices[0].elements);
        arena.Read(0, AsMutableBytes(values.data(), values.size()));
        EXPECT_THAT(values, Each(4.0f)) << "ps " << ps;
      }
      if (HasFailure()) return;
      if (script.met() == 0) break;
    }
  }
}

// A ps is gone when a stop is requested: the update under way can't be finished any more.
TEST_P(SessionPipelinedTest, InterruptedWithAnUpdateUnderWayItLeavesAndTheOtherPsIsTold) {
  for (const bool closes : {true, false}) {
    SCOPED_TRACE(closes ? "Close" : "Run");
    SimulatedStore store(2, {"chief:0"}, {.lease = absl::Hours(100)});
    Trainee chief(store, "chief:0", GetParam(), {.checkpoint_dir = absl::StrCat("model", closes)});
    chief.Steps(2);
    ASSERT_EQ(chief.algorithm.FinishPending(*chief.client), absl::OkStatus());
    store.KillPs(1);
    chief.stop = true;
    chief.Steps(1);
    ASSERT_TRUE(chief.algorithm.busy());
    const absl::Status status = closes ? chief.session.Close() : chief.session.Run();
    EXPECT_TRUE(IsInterrupted(status)) << status;
    EXPECT_FALSE(chief.algorithm.busy());
    const nlohmann::json ps0 = nlohmann::json::parse(StatusJson(store.service(0).MakeView()));
    EXPECT_EQ(ps0["clients"][0]["state"], "done");
    EXPECT_EQ(ps0["global_step"], 2) << "an update that not every ps has was counted";
    EXPECT_EQ(chief.session.last_checkpoint(), absl::StrCat("model", closes, "/model.ckpt-0")) << "no hook's End runs";
    EXPECT_EQ(chief.session.Close(), absl::OkStatus()) << "it is closed";
  }
}

// The traffic is read after each step, while the update's thread uses the channels: for the thread sanitizer.
TEST_P(SessionPipelinedTest, WhatIsShownWhileAnUpdateIsUnderWayIsRightInTheEnd) {
  const HastyClock clock;
  Trainee chief(store_, "chief:0", GetParam(), {}, nullptr, &clock);
  chief.Steps(50);
  EXPECT_EQ(chief.session.Close(), absl::OkStatus());
  const Channel::Stats traffic = TrafficOf(*chief.client);
  EXPECT_GT(traffic.bytes_sent, 0u);
  EXPECT_EQ(chief.metrics.bytes_sent.value(), traffic.bytes_sent);
  EXPECT_EQ(chief.metrics.bytes_received.value(), traffic.bytes_received);
  EXPECT_EQ(chief.metrics.links.Get(), std::vector<std::string>(2, "loopback"));
}

// On one loop none of them has a thread. Each one's update is under way at some moment when the chief saves.
TEST(SessionPipelinedWorkersTest, ACheckpointHasTheUpdatesOfOthersThatItsStepCounts) {
  SimulatedStore store(2, kTasks, {.lease = absl::Hours(100)});
  Trainee chief(store, "chief:0", false, {.checkpoint_dir = "model", .save_checkpoint_steps = 5});
  Trainee worker(store, "worker:0", false);
  for (int i = 0; i < 12; ++i) (i % 3 == 2 ? worker : chief).Steps(1);
  EXPECT_EQ(worker.session.Close(), absl::OkStatus());
  EXPECT_EQ(chief.session.Close(), absl::OkStatus());
  int64_t saved = 0;
  for (int64_t step = 0; step <= 12; ++step) {
    const std::string path = absl::StrCat("model/model.ckpt-", step);
    const auto checkpoint = CheckpointReader::Open(store.files, path);
    if (!checkpoint.ok()) continue;
    ++saved;
    std::vector<float> w(kWidth);
    ASSERT_TRUE((*checkpoint)->ReadVariable("w", AsMutableBytes(w.data(), w.size())).ok());
    EXPECT_THAT(w, Each(static_cast<float>(step))) << path;
  }
  EXPECT_GE(saved, 3);
}

}  // namespace
}  // namespace muster::session_pipelined_test
