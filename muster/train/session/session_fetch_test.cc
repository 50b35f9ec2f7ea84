// A run that trains nothing: it shows the global values, and training goes on as if nobody had looked.
#include <gmock/gmock.h>

#include <any>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/algo/algorithms/commit_pipeline.h"
#include "muster/algo/algorithms/local_variables.h"
#include "muster/algo/algorithms/synchronous.h"
#include "muster/train/hooks/hooks.h"
#include "muster/train/testing/training_process.h"

namespace muster::session_fetch_test {
namespace {

using testing::ElementsAre, testing::HasSubstr;
using Values = std::vector<std::vector<float>>;

Values ValuesOf(QuadraticSource& source) { return {source.values(0), source.values(1)}; }

// Records its calls.
class Story final : public SessionHook {
 public:
  absl::Status BeforeRun(RunContext&) override { return Tell("BeforeRun"); }
  absl::Status AfterRun(RunContext&, const RunValues& values) override {
    staleness = values.staleness;
    return Tell("AfterRun");
  }
  absl::Status AfterFetch(RunContext& context) override {
    return Tell("AfterFetch at " + std::to_string(context.session().global_step));
  }

  std::vector<std::string> told;
  uint64_t staleness = 0;  // of the last run

 private:
  absl::Status Tell(const std::string& word) {
    told.push_back(word);
    return absl::OkStatus();
  }
};

absl::Status Nothing() { return absl::OkStatus(); }

// A chief and a worker, which looks at the global values between two of its steps if `looks`.
struct World {
  World(const UpdateWay& way, bool looks)
      : looks(looks),
        store(2, {"chief:0", "worker:0"}, {.lease = absl::Hours(100)}, nullptr, way.direct()),
        chief_process(store, "chief:0", {.way = way}),
        worker_process(store, "worker:0", {.way = way}),
        chief(chief_process.MakeSession()),
        worker(worker_process.MakeSession({}, {story})) {
    EXPECT_EQ(chief.Start(), absl::OkStatus());
    EXPECT_EQ(worker.Start(), absl::OkStatus());
  }
  void Step(Session& session) { EXPECT_EQ(session.Run(), absl::OkStatus()); }
  // The worker is behind the chief by three steps.
  void Train() {
    Step(worker);
    for (int i = 0; i < 3; ++i) Step(chief);
    if (looks) {
      EXPECT_EQ(worker.Fetch([this] {
        seen = ValuesOf(worker_process.source);
        shown = worker_process.source.shown;
        return absl::OkStatus();
      }),
                absl::OkStatus());
      EXPECT_EQ(worker.global_step(), 4);
    }
    own = ValuesOf(worker_process.source);
    Step(worker);
  }

  const bool looks;
  const std::shared_ptr<Story> story = std::make_shared<Story>();
  SimulatedStore store;
  TrainingProcess chief_process, worker_process;
  Session chief, worker;
  Values seen, shown, own;
};

class SessionFetchTest : public ::testing::TestWithParam<UpdateWay> {};

TEST_P(SessionFetchTest, ShowsWhatThePsHold) {
  World world(GetParam(), /*looks=*/true);
  world.Train();
  EXPECT_EQ(world.seen, ValuesOf(world.chief_process.source)) << "the chief made the last step before";
  EXPECT_EQ(world.seen, world.shown);
  EXPECT_NE(world.seen, world.own);
}

TEST_P(SessionFetchTest, TrainingGoesOnAsIfNobodyHadLooked) {
  World looks(GetParam(), true);
  World trains(GetParam(), false);
  looks.Train();
  trains.Train();
  EXPECT_EQ(looks.own, trains.own);
  EXPECT_EQ(ValuesOf(looks.worker_process.source), ValuesOf(trains.worker_process.source));
  EXPECT_EQ(looks.story->staleness, 3);
  EXPECT_EQ(trains.story->staleness, 3);
  EXPECT_EQ(looks.worker.global_step(), 5);
}

// Pipelined training finishes what it has under way first, as before a checkpoint, and goes on from newer values.
INSTANTIATE_TEST_SUITE_P(Ways, SessionFetchTest, ::testing::ValuesIn(Without(kSimulatedWays, {"ServerPipelined"})),
                         NameOfWay);

TEST(SessionFetchPipelinedTest, FinishesWhatIsUnderWay) {
  const UpdateWay way{.name = "ServerPipelined", .sending = Sending::kPipelined};
  World world(way, /*looks=*/true);
  world.Train();
  EXPECT_EQ(world.chief.Close(), absl::OkStatus());
  EXPECT_EQ(world.worker.Close(), absl::OkStatus());
  EXPECT_EQ(world.worker.global_step(), 5);
}

TEST(SessionFetchHooksTest, HooksSeeItAsNoStep) {
  SimulatedStore store(1, {"chief:0"});
  TrainingProcess process(store, "chief:0");
  const auto story = std::make_shared<Story>();
  Session session = process.MakeSession({}, {LoggingTensor({.tensors = {"loss"}, .every_n_iter = 1}), story,
                                             FeedFn([]() -> std::map<std::string, std::any> {
                                               return {{"rate", 0.5}};
                                             })});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  EXPECT_EQ(session.Fetch(Nothing), absl::OkStatus());
  EXPECT_EQ(session.Run(), absl::OkStatus());
  EXPECT_TRUE(session.Fed<double>("rate").ok());
  EXPECT_EQ(session.Fetch([&session] {
    EXPECT_TRUE(absl::IsNotFound(session.Fed<double>("rate").status()));
    return absl::OkStatus();
  }),
            absl::OkStatus());
  EXPECT_EQ(session.FetchRaw(Nothing), absl::OkStatus());
  EXPECT_THAT(story->told, ElementsAre("AfterFetch at 0", "BeforeRun", "AfterRun", "AfterFetch at 1"));
  EXPECT_EQ(session.global_step(), 1);
  EXPECT_EQ(process.source.steps, 1);
}

TEST(SessionFetchHooksTest, AWorkerThatOnlyLooksEndsWithTheTraining) {
  SimulatedStore store(1, {"chief:0", "worker:0"});
  TrainingProcess chief_process(store, "chief:0"), worker_process(store, "worker:0");
  Session chief = chief_process.MakeSession({}, {StopAtStep({.last_step = 3})});
  Session onlooker = worker_process.MakeSession({}, {StopAtStep({.last_step = 3})});
  ASSERT_EQ(chief.Start(), absl::OkStatus());
  ASSERT_EQ(onlooker.Start(), absl::OkStatus());
  std::vector<int64_t> steps;
  while (!chief.ShouldStop()) {
    ASSERT_EQ(chief.Run(), absl::OkStatus());
    ASSERT_FALSE(onlooker.ShouldStop());
    ASSERT_EQ(onlooker.Fetch(Nothing), absl::OkStatus());
    steps.push_back(onlooker.global_step());
  }
  EXPECT_THAT(steps, ElementsAre(1, 2, 3));
  EXPECT_TRUE(onlooker.ShouldStop());
  EXPECT_EQ(onlooker.Fetch(Nothing).message(), "Run called even after should_stop requested.");
}

// Else the ps would take it for one that hangs.
TEST(SessionFetchHooksTest, ThePsIsToldWhatKeepsTheWorkerFromTraining) {
  SimulatedStore store(1, {"chief:0"});
  TrainingProcess process(store, "chief:0");
  Session session = process.MakeSession();
  ASSERT_EQ(session.Start(), absl::OkStatus());
  const auto keeps_it = [&] { return process.client->progress().busy(); };
  EXPECT_EQ(session.Fetch([&] {
    EXPECT_EQ(keeps_it(), "looking at the global values");
    return absl::OkStatus();
  }),
            absl::OkStatus());
  {
    const auto busy = session.Busy("reading another corpus");
    EXPECT_EQ(keeps_it(), "reading another corpus");
  }
  EXPECT_EQ(keeps_it(), "") << "it trains again";
}

TEST(SessionFetchErrorsTest, OnlyBetweenStepsOfAnOpenSession) {
  SimulatedStore store(1, {"chief:0"});
  TrainingProcess process(store, "chief:0");
  Session session = process.MakeSession();
  ASSERT_EQ(session.Start(), absl::OkStatus());
  absl::Status in_step, in_fetch;
  process.source.on_step = [&](double loss) {
    in_step = session.Fetch(Nothing);
    return loss;
  };
  EXPECT_EQ(session.Run(), absl::OkStatus());
  EXPECT_EQ(session.Fetch([&] {
    in_fetch = session.Run();
    return absl::OkStatus();
  }),
            absl::OkStatus());
  EXPECT_THAT(in_step.message(), HasSubstr("Fetch within a step"));
  EXPECT_THAT(in_fetch.message(), HasSubstr("Run within a step"));
  EXPECT_EQ(session.Close(), absl::OkStatus());
  EXPECT_EQ(session.Fetch(Nothing).message(), "Attempted to use a closed Session.");
}

TEST(SessionFetchErrorsTest, ItsErrorIsTheRunsAndTheWorkersValuesAreBack) {
  SimulatedStore store(1, {"chief:0"});
  TrainingProcess process(store, "chief:0");
  Session session = process.MakeSession();
  ASSERT_EQ(session.Start(), absl::OkStatus());
  ASSERT_EQ(session.Run(), absl::OkStatus());
  const Values own = ValuesOf(process.source);
  EXPECT_EQ(session.Fetch([&] {
    process.source.values(0) = {9, 9, 9};
    return absl::DataLossError("the test set is damaged");
  }),
            absl::DataLossError("the test set is damaged"));
  EXPECT_EQ(ValuesOf(process.source), own);
  EXPECT_EQ(session.Fetch([] { return absl::OutOfRangeError("no more to look at"); }), absl::OkStatus());
  EXPECT_TRUE(session.ShouldStop());
}

TEST(SessionFetchErrorsTest, AModelThatIsLostIsRestoredAndLookedAtAgain) {
  SimulatedStore store(1, {"chief:0"});
  TrainingProcess process(store, "chief:0");
  Session session = process.MakeSession({.checkpoint_dir = "model", .save_checkpoint_steps = 1});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  for (int i = 0; i < 2; ++i) ASSERT_EQ(session.Run(), absl::OkStatus());
  const Values trained = ValuesOf(process.source);
  store.LosePs(0);
  store.StartPs(0);
  int looks = 0;
  EXPECT_EQ(session.Fetch([&] {
    ++looks;
    EXPECT_EQ(ValuesOf(process.source), trained);
    return absl::OkStatus();
  }),
            absl::OkStatus());
  EXPECT_EQ(looks, 1);
  EXPECT_EQ(session.global_step(), 2);
}

const std::vector<VariableSpec> kVariables = {{.name = "w", .shape = {3}}, {.name = "b", .shape = {2}}};

// A process with an algorithm of the test's choice.
template <typename Algorithm>
struct Process {
  template <typename... Arguments>
  Process(SimulatedStore& store, const std::string& task, Arguments&&... arguments)
      : algorithm(source, *PlaceVariables(kVariables, 1, Placement::kRoundRobin, {}),
                  std::forward<Arguments>(arguments)...),
        client(store.Client(task)),
        session({.client = client.get(),
                 .algorithm = &algorithm,
                 .loop = &store.loop,
                 .files = &store.files,
                 .clock = &store.clock,
                 .is_chief = task == "chief:0",
                 .target = "muster://here:1"},
                {}, {}) {
    EXPECT_EQ(session.Start(), absl::OkStatus());
  }

  QuadraticSource source{kVariables};
  Algorithm algorithm;
  std::unique_ptr<StoreClient> client;
  Session session;
};

// Its gradient was computed from values that are put back: it mustn't count as one of the round that it has seen.
TEST(SessionFetchAlgorithmsTest, ALateGradientStaysLate) {
  SimulatedStore store(1, {"chief:0", "worker:0"});
  const SynchronousOptions one_of_two{.replicas_to_aggregate = 1, .total_replicas = 2};
  Process<SynchronousAlgorithm> chief(store, "chief:0", RuleSpec{.learning_rate = 0.1}, one_of_two);
  Process<SynchronousAlgorithm> worker(store, "worker:0", RuleSpec{.learning_rate = 0.1}, one_of_two);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(chief.session.Run(), absl::OkStatus());
  EXPECT_EQ(worker.session.Fetch([&] {
    EXPECT_EQ(ValuesOf(worker.source), ValuesOf(chief.source));
    return absl::OkStatus();
  }),
            absl::OkStatus());
  EXPECT_EQ(worker.session.Run(), absl::OkStatus());
  EXPECT_EQ(worker.algorithm.dropped(), 1);
}

TEST(SessionFetchAlgorithmsTest, AWindowGoesOn) {
  const auto train = [](bool looks) {
    SimulatedStore store(1, {"chief:0"});
    Process<CommitPipeline> chief(
        store, "chief:0", RuleSpec{.kind = RuleKind::kAdd},
        CommitSpec{.kind = CommitKind::kDelta, .window = 4, .worker_rule = RuleSpec{.learning_rate = 0.1}});
    Values committed = ValuesOf(chief.source);
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(chief.session.Run(), absl::OkStatus());
      if (i % 4 == 3) committed = ValuesOf(chief.source);
      if (!looks) continue;
      EXPECT_EQ(chief.session.Fetch([&] {
        EXPECT_EQ(ValuesOf(chief.source), committed) << "after minibatch " << i;
        return absl::OkStatus();
      }),
                absl::OkStatus());
    }
    EXPECT_EQ(chief.session.Close(), absl::OkStatus());
    return ValuesOf(chief.source);
  };
  EXPECT_EQ(train(/*looks=*/true), train(false));
}

TEST(SessionFetchAlgorithmsTest, LocalVariablesStayTheProgramsOwn) {
  SimulatedStore store(1, {"chief:0"});
  float* local = nullptr;
  Process<LocalVariablesAlgorithm> chief(store, "chief:0", RuleSpec{.kind = RuleKind::kAdd},
                                         [&local]() -> absl::StatusOr<double> {
                                           *local += 1;
                                           return 0.0;
                                         });
  local = &chief.source.values(0)[0];
  ASSERT_EQ(chief.session.Run(), absl::OkStatus());
  EXPECT_EQ(chief.session.Fetch([&] {
    EXPECT_EQ(*local, 0) << "nothing was pushed";
    return absl::OkStatus();
  }),
            absl::OkStatus());
  EXPECT_EQ(*local, 1);
}

}  // namespace
}  // namespace muster::session_fetch_test
