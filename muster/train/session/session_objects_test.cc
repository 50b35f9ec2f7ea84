// A session's parts, and what else it offers beside plain runs: creators, scaffolds, step functions, threads, and
// exceptions in each phase.
#include <gmock/gmock.h>

#include <any>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/wrong_configuration.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/summary/summary_values.h"
#include "muster/train/hooks/hooks.h"
#include "muster/train/session/session.h"
#include "muster/train/testing/training_process.h"
#include "muster/train/threads/coordinated_thread.h"
#include "muster/train/threads/error.h"

namespace muster::session_objects_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

const std::vector<std::string> kTasks = {"chief:0", "worker:0"};
constexpr char kClosed[] = "Attempted to use a closed Session.";
constexpr char kStopped[] = "Run called even after should_stop requested.";

// Records its calls, and throws in the given phase.
class Thrower final : public SessionHook {
 public:
  Thrower(std::string name, std::vector<std::string>& story, std::string throws_in = "")
      : name_(std::move(name)), story_(story), throws_in_(std::move(throws_in)) {}

  absl::Status Begin() override { return Note("begin"); }
  absl::Status AfterCreateSession(const SessionContext&) override { return Note("created"); }
  absl::Status BeforeRun(RunContext&) override { return Note("before"); }
  absl::Status AfterRun(RunContext&, const RunValues&) override { return Note("after"); }
  absl::Status End(const SessionContext&) override { return Note("end"); }

 private:
  absl::Status Note(const std::string& phase) {
    story_.push_back(absl::StrCat(name_, " ", phase));
    if (phase == throws_in_) throw std::runtime_error(absl::StrCat("thrown in ", phase));
    return absl::OkStatus();
  }

  const std::string name_;
  std::vector<std::string>& story_;
  const std::string throws_in_;
};

class SessionObjectsTest : public ::testing::Test {
 protected:
  std::shared_ptr<Thrower> NewHook(const std::string& name, const std::string& throws_in = "") {
    return std::make_shared<Thrower>(name, story_, throws_in);
  }
  std::vector<std::string> TakeStory() { return std::exchange(story_, {}); }
  std::vector<std::string> Checkpoints() {
    return ListCheckpoints(store_.files, "model").value_or(std::vector<std::string>());
  }
  bool ChiefIsDone() { return store_.service(0).MakeView().clients->chief_done(); }

  std::vector<std::string> story_;
  std::atomic<bool> thread_fails_ = false;
  SimulatedStore store_{1, kTasks, {.lease = absl::Hours(100)}};
  TrainingProcess chief_{store_, "chief:0", {.files = &store_.files}};
  TrainingProcess worker_{store_, "worker:0"};
};

TEST(SessionOptionsTest, GracePeriodsAndLimitsAreTensorFlows) {
  EXPECT_EQ(SessionOptions().stop_grace_period_secs, 120);
  EXPECT_EQ(SessionOptions().max_wait_secs, 7200);
  EXPECT_EQ(SessionCreatorOptions().max_wait_secs, 1800);
}

// --- after the end ---

TEST_F(SessionObjectsTest, AClosedSessionRunsNothing) {
  Session session = chief_.MakeSession();
  ASSERT_EQ(session.Start(), absl::OkStatus());
  ASSERT_EQ(session.Run(), absl::OkStatus());
  ASSERT_EQ(session.Close(), absl::OkStatus());
  EXPECT_TRUE(session.ShouldStop());
  EXPECT_EQ(session.Run(), absl::FailedPreconditionError(kClosed));
  EXPECT_EQ(session.RunRaw().status(), absl::FailedPreconditionError(kClosed));
  EXPECT_EQ(session.RunStepFn([](StepContext&) { return absl::OkStatus(); }), absl::FailedPreconditionError(kClosed));
  EXPECT_EQ(session.Restore("model/model.ckpt-0"), absl::FailedPreconditionError(kClosed));
  EXPECT_EQ(chief_.source.steps, 1);
}

TEST_F(SessionObjectsTest, BeforeTheStartNothingCanBeRun) {
  Session session = chief_.MakeSession();
  EXPECT_TRUE(absl::IsFailedPrecondition(session.RunRaw().status()));
  EXPECT_EQ(chief_.source.steps, 0);
}

// Like the façade's constructor, which throws. A hook whose AfterCreateSession failed can't be ended.
TEST_F(SessionObjectsTest, WhereTheCreationFailedNoHookEndsAndThePsAreTold) {
  Session session = chief_.MakeSession({}, {NewHook("a"), SummarySaver({.save_steps = 1})});
  EXPECT_TRUE(absl::IsFailedPrecondition(session.Start())) << "there is no summary_dir";
  EXPECT_EQ(session.Close(), absl::OkStatus());
  EXPECT_THAT(TakeStory(), ElementsAre("a begin", "a created"));
  EXPECT_TRUE(ChiefIsDone());
}

// Fails with the ps's answers at its first creations.
class RefusedHook final : public SessionHook {
 public:
  explicit RefusedHook(std::vector<absl::Status> answers) : answers_(std::move(answers)) {}
  absl::Status AfterCreateSession(const SessionContext&) override {
    return created < answers_.size() ? answers_[created++] : (++created, absl::OkStatus());
  }
  size_t created = 0;

 private:
  const std::vector<absl::Status> answers_;
};

TEST_F(SessionObjectsTest, AModelThatIsLostWhileHooksHearOfItIsRecovered) {
  auto hook =
      std::make_shared<RefusedHook>(std::vector<absl::Status>(2, absl::AbortedError("ps:0 has lost the model")));
  Session session = chief_.MakeSession({.checkpoint_dir = "model"}, {hook});
  EXPECT_EQ(session.Start(), absl::OkStatus());
  EXPECT_EQ(hook->created, 3u);
  EXPECT_EQ(session.Run(), absl::OkStatus());
  EXPECT_EQ(session.Close(), absl::OkStatus());
  auto other = std::make_shared<RefusedHook>(std::vector<absl::Status>{absl::AbortedError("ps:0 has lost the model")});
  SimulatedStore store(1, kTasks);
  TrainingProcess process(store, "chief:0");
  Session singular = process.MakeSession({.recovers = false}, {other});
  EXPECT_TRUE(absl::IsAborted(singular.Start()));
  EXPECT_EQ(other->created, 1u);
}

TEST_F(SessionObjectsTest, TrainingThatEndsWhileHooksHearOfTheCreationIsACleanEnd) {
  auto hook = std::make_shared<RefusedHook>(std::vector<absl::Status>{absl::CancelledError("training has ended")});
  Session session = chief_.MakeSession({}, {hook});
  EXPECT_EQ(session.Start(), absl::OkStatus());
  EXPECT_TRUE(session.ShouldStop());
  EXPECT_EQ(session.Close(), absl::OkStatus());
}

TEST_F(SessionObjectsTest, OutOfRangeInTheStepIsACleanEnd) {
  Session session = chief_.MakeSession({.checkpoint_dir = "model"}, {NewHook("a")});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  ASSERT_EQ(session.Run(), absl::OkStatus());
  chief_.source.on_step = [](double) { return absl::StatusOr<double>(absl::OutOfRangeError("end of input")); };
  TakeStory();
  EXPECT_EQ(session.Run(), absl::OkStatus());
  EXPECT_TRUE(session.ShouldStop());
  EXPECT_EQ(session.Close(), absl::OkStatus());
  EXPECT_THAT(TakeStory(), ElementsAre("a before", "a end"));
  EXPECT_THAT(Checkpoints(), ElementsAre("model.ckpt-0", "model.ckpt-1"));
}

// --- exceptions of hooks ---

struct Phase {
  const char* name;
  std::vector<std::string> story;  // until the error has left the session
  std::vector<std::string> saved;
};

// The program then destroys the session: no hook's End, no further save, no "done" to the ps.
TEST_F(SessionObjectsTest, AnExceptionOfAHookIsTheErrorOfEveryPhase) {
  const std::vector<Phase> phases = {
      {"begin", {"a begin"}, {}},
      {"created", {"a begin", "b begin", "a created"}, {"model.ckpt-0"}},
      {"before", {"a begin", "b begin", "a created", "b created", "a before"}, {"model.ckpt-0"}},
      {"after", {"a begin", "b begin", "a created", "b created", "a before", "b before", "a after"}, {"model.ckpt-0"}},
  };
  for (const Phase& phase : phases) {
    SimulatedStore store(1, kTasks);
    TrainingProcess chief(store, "chief:0");
    {
      Session session = chief.MakeSession({.checkpoint_dir = "model"}, {NewHook("a", phase.name), NewHook("b")});
      absl::Status status = session.Start();
      if (status.ok()) status = session.Run();
      EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("thrown in ", phase.name)));
      EXPECT_EQ(ExitCodeOf(status), ExitCode::kFailed);
    }
    EXPECT_EQ(TakeStory(), phase.story);
    EXPECT_EQ(ListCheckpoints(store.files, "model").value_or(std::vector<std::string>()), phase.saved) << phase.name;
    EXPECT_FALSE(store.service(0).MakeView().clients->chief_done()) << phase.name;
  }
}

TEST_F(SessionObjectsTest, AnExceptionInEndIsReturnedWhenAllElseHasEnded) {
  Session session = chief_.MakeSession({.checkpoint_dir = "model"}, {NewHook("a", "end"), NewHook("b")});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  ASSERT_EQ(session.Run(), absl::OkStatus());
  TakeStory();
  EXPECT_THAT(std::string(session.Close().message()), HasSubstr("thrown in end"));
  EXPECT_THAT(TakeStory(), ElementsAre("a end", "b end"));
  EXPECT_THAT(Checkpoints(), ElementsAre("model.ckpt-0", "model.ckpt-1"));
  EXPECT_TRUE(ChiefIsDone());
  EXPECT_EQ(session.Close(), absl::OkStatus()) << "once";
}

// --- creators ---

class NotingCreator final : public SessionCreator {
 public:
  explicit NotingCreator(std::vector<std::string>& story) : story_(story) {}
  SessionCreatorOptions options() const override { return chief_.options(); }
  std::optional<bool> is_chief() const override { return true; }
  absl::StatusOr<int64_t> CreateSession(SessionManager& manager) override {
    story_.push_back("creates");
    return chief_.CreateSession(manager);
  }

 private:
  std::vector<std::string>& story_;
  ChiefSessionCreator chief_{{.checkpoint_dir = "model"}};
};

TEST_F(SessionObjectsTest, AProgramsOwnCreatorIsAskedAtTheStartAndAtEveryRecovery) {
  Session session = chief_.MakeSession({.creator = std::make_shared<NotingCreator>(story_), .default_hooks = false},
                                       {NewHook("a"), CheckpointSaver({.save_steps = 1})});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  ASSERT_EQ(session.Run(), absl::OkStatus());
  EXPECT_THAT(TakeStory(), ElementsAre("a begin", "creates", "a created", "a before", "a after"));
  store_.LosePs(0);
  store_.StartPs(0);
  ASSERT_EQ(session.Run(), absl::OkStatus());
  EXPECT_THAT(TakeStory(), ElementsAre("a before", "creates", "a created", "a before", "a after"));
  EXPECT_EQ(session.global_step(), 2);
}

TEST_F(SessionObjectsTest, TheCreatorSaysWhoIsTheChief) {
  const auto as_worker = std::make_shared<WorkerSessionCreator>(SessionCreatorOptions{.max_wait_secs = 5});
  Session waiting = chief_.MakeSession({.creator = as_worker, .default_hooks = false});
  EXPECT_FALSE(waiting.is_chief());
  EXPECT_TRUE(absl::IsDeadlineExceeded(waiting.Start()));
  Session preparing = worker_.MakeSession({.creator = std::make_shared<ChiefSessionCreator>(), .default_hooks = false});
  EXPECT_TRUE(preparing.is_chief());
  EXPECT_EQ(preparing.Start(), absl::OkStatus());
}

TEST_F(SessionObjectsTest, ACreatorsCheckpointIsRestoredAtTheStartAndAtEveryRecovery) {
  Session before = chief_.MakeSession({.checkpoint_dir = "model", .save_checkpoint_steps = 1});
  ASSERT_EQ(before.Start(), absl::OkStatus());
  for (int i = 0; i < 3; ++i) ASSERT_EQ(before.Run(), absl::OkStatus());
  SimulatedStore store(1, kTasks, {.lease = absl::Hours(100)});
  TrainingProcess process(store, "chief:0", {.files = &store_.files});
  Session session = process.MakeSession({.creator = std::make_shared<ChiefSessionCreator>(SessionCreatorOptions{
                                             .checkpoint_filename_with_path = "model/model.ckpt-2"}),
                                         .default_hooks = false});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  EXPECT_EQ(session.global_step(), 2);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(session.Run(), absl::OkStatus());
  store.LosePs(0);
  store.StartPs(0);
  ASSERT_EQ(session.Run(), absl::OkStatus());
  EXPECT_EQ(session.global_step(), 3);
}

TEST_F(SessionObjectsTest, ADirectoryTogetherWithACheckpointIsAnErrorBeforeAnythingIsStarted) {
  const auto creator = std::make_shared<ChiefSessionCreator>(
      SessionCreatorOptions{.checkpoint_dir = "model", .checkpoint_filename_with_path = "model/model.ckpt-2"});
  Session session = chief_.MakeSession({.creator = creator, .default_hooks = false}, {NewHook("a")});
  EXPECT_EQ(session.Start(), WrongOptionError("give one of checkpoint_dir ('model') and checkpoint_filename_with_path "
                                              "('model/model.ckpt-2'), not both"));
  EXPECT_THAT(TakeStory(), IsEmpty());
  EXPECT_EQ(chief_.joined, 0);
}

TEST_F(SessionObjectsTest, WithoutDefaultHooksNothingIsSaved) {
  const auto creator = std::make_shared<ChiefSessionCreator>(SessionCreatorOptions{.checkpoint_dir = "model"});
  Session session = chief_.MakeSession({.creator = creator, .default_hooks = false});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  ASSERT_EQ(session.Run(), absl::OkStatus());
  ASSERT_EQ(session.Close(), absl::OkStatus());
  EXPECT_THAT(Checkpoints(), IsEmpty());
}

TEST_F(SessionObjectsTest, ASingularSessionRecoversFromNothing) {
  const auto creator = std::make_shared<ChiefSessionCreator>(SessionCreatorOptions{.checkpoint_dir = "model"});
  Session session = chief_.MakeSession({.creator = creator, .default_hooks = false, .recovers = false},
                                       {CheckpointSaver({.save_steps = 1}), NewHook("a")});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  ASSERT_EQ(session.Run(), absl::OkStatus());
  store_.LosePs(0);
  store_.StartPs(0);
  TakeStory();
  EXPECT_TRUE(absl::IsAborted(session.Run()));
  EXPECT_THAT(TakeStory(), ElementsAre("a before"));
}

// --- scaffolds ---

TEST_F(SessionObjectsTest, TheScaffoldIsFinalizedBetweenBeginAndTheCreation) {
  const auto scaffold = std::make_shared<Scaffold>();
  class Changer final : public SessionHook {
   public:
    explicit Changer(Scaffold& scaffold) : scaffold_(scaffold) {}
    absl::Status Begin() override { return Change(); }
    absl::Status AfterCreateSession(const SessionContext&) override { return Change(); }

   private:
    absl::Status Change() {
      return scaffold_.Change([](ScaffoldOptions& options) { options.init = [] { return absl::OkStatus(); }; });
    }
    Scaffold& scaffold_;
  };
  Session session = chief_.MakeSession({.scaffold = scaffold}, {std::make_shared<Changer>(*scaffold)});
  EXPECT_EQ(session.Start(), absl::FailedPreconditionError("Graph is finalized and cannot be modified."));
  EXPECT_TRUE(scaffold->options().init != nullptr) << "Begin could";
}

TEST_F(SessionObjectsTest, AScaffoldTogetherWithASaverIsAnError) {
  const auto scaffold = std::make_shared<Scaffold>(ScaffoldOptions{.saver = ScaffoldSaver{.keep_checkpoint_max = 2}});
  const Saveable saveable = {"x", [] { return std::string(); }, [](const std::string&) { return absl::OkStatus(); }};
  const std::vector<SessionOptions> both = {
      {.checkpoint_dir = "model", .scaffold = scaffold, .keep_checkpoint_max = 3},
      {.checkpoint_dir = "model", .scaffold = scaffold, .keep_checkpoint_every_n_hours = 1},
      {.checkpoint_dir = "model", .scaffold = scaffold, .allow_older_checkpoint = true},
      {.checkpoint_dir = "model", .scaffold = scaffold, .saveables = {saveable}}};
  for (const SessionOptions& options : both) {
    Session session = chief_.MakeSession(options, {NewHook("a")});
    const absl::Status status = session.Start();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_TRUE(IsWrongConfiguration(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("You cannot provide both saver and scaffold"));
    EXPECT_THAT(TakeStory(), IsEmpty());
  }
  Session session = chief_.MakeSession({.checkpoint_dir = "model", .scaffold = scaffold});
  EXPECT_EQ(session.Start(), absl::OkStatus());
}

TEST_F(SessionObjectsTest, TheScaffoldsSaverIsCheckedAsTheSessionsOwn) {
  const auto scaffold =
      std::make_shared<Scaffold>(ScaffoldOptions{.saver = ScaffoldSaver{.keep_checkpoint_every_n_hours = 0}});
  Session session = chief_.MakeSession({.checkpoint_dir = "model", .scaffold = scaffold});
  EXPECT_EQ(session.Start(), WrongOptionError("keep_checkpoint_every_n_hours is 0; accepted: more than 0"));
}

TEST_F(SessionObjectsTest, TheScaffoldsSummaryIsWrittenWhenSummariesAreDue) {
  int calls = 0;
  const auto scaffold = std::make_shared<Scaffold>(ScaffoldOptions{.summary = [&calls] {
    std::string summary;
    AppendScalar(summary, "accuracy", static_cast<float>(++calls));
    return summary;
  }});
  const SessionOptions options = {.scaffold = scaffold, .summary_dir = "logs", .save_summaries_steps = 2};
  Session chief = chief_.MakeSession(options);
  Session worker = worker_.MakeSession(options);
  ASSERT_EQ(chief.Start(), absl::OkStatus());
  ASSERT_EQ(worker.Start(), absl::OkStatus());
  for (int i = 0; i < 3; ++i) ASSERT_EQ(chief.Run(), absl::OkStatus());
  EXPECT_EQ(calls, 2) << "steps 1 and 3";
  ASSERT_EQ(worker.Run(), absl::OkStatus());
  EXPECT_EQ(calls, 2);
}

// --- step functions ---

TEST_F(SessionObjectsTest, AStepFunctionChoosesWhatHooksSee) {
  Session session = chief_.MakeSession({}, {NewHook("a")});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  TakeStory();
  ASSERT_EQ(session.RunStepFn([this](StepContext& context) -> absl::Status {
    const auto raw = context.Run();
    if (!raw.ok()) return raw.status();
    story_.push_back(absl::StrCat("raw ", raw->global_step));
    return context.RunWithHooks();
  }),
            absl::OkStatus());
  EXPECT_THAT(TakeStory(), ElementsAre("raw 1", "a before", "a after"));
  EXPECT_EQ(session.global_step(), 2);
}

TEST_F(SessionObjectsTest, AStepFunctionMayEndTheTraining) {
  Session session = chief_.MakeSession({}, {NewHook("a")});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  TakeStory();
  absl::Status after;
  EXPECT_EQ(session.RunStepFn([&after](StepContext& context) {
    const absl::Status stop = context.RequestStop();
    after = context.RunWithHooks();
    return stop;
  }),
            absl::OkStatus());
  EXPECT_EQ(after, absl::FailedPreconditionError(kStopped));
  EXPECT_TRUE(session.ShouldStop());
  EXPECT_EQ(session.RunStepFn([](StepContext&) { return absl::OkStatus(); }), absl::FailedPreconditionError(kStopped));
  EXPECT_EQ(session.Close(), absl::OkStatus());
  EXPECT_THAT(TakeStory(), ElementsAre("a end"));
}

TEST_F(SessionObjectsTest, AfterARecoveryTheStepFunctionIsCalledFromItsBeginning) {
  Session session = chief_.MakeSession({.checkpoint_dir = "model", .save_checkpoint_steps = 1}, {NewHook("a")});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  ASSERT_EQ(session.Run(), absl::OkStatus());
  store_.LosePs(0);
  store_.StartPs(0);
  TakeStory();
  EXPECT_EQ(session.RunStepFn([this](StepContext& context) {
    story_.push_back("step_fn");
    return context.RunWithHooks();
  }),
            absl::OkStatus());
  EXPECT_THAT(TakeStory(), ElementsAre("step_fn", "a before", "a created", "step_fn", "a before", "a after"));
}

TEST_F(SessionObjectsTest, AnErrorOfTheStepFunctionIsTheRuns) {
  Session session = chief_.MakeSession();
  ASSERT_EQ(session.Start(), absl::OkStatus());
  EXPECT_EQ(session.RunStepFn([](StepContext&) { return absl::DataLossError("bad image"); }),
            absl::DataLossError("bad image"));
  EXPECT_FALSE(session.ShouldStop());
}

// As in TensorFlow's raw session: the loss registers its summaries all the same, and nothing is fed.
TEST_F(SessionObjectsTest, AStepThatNoHookSeesRegistersSummariesForNobody) {
  Session session = chief_.MakeSession({.checkpoint_dir = "model", .save_summaries_steps = 1}, {FeedFn([] {
                                         return std::map<std::string, std::any>{{"rate", 0.5}};
                                       })});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  std::vector<bool> fed, wanted;
  chief_.source.on_step = [&](double loss) -> absl::StatusOr<double> {
    const absl::StatusOr<StepSummaries*> summaries = StepSummaries::Current("Scalar");
    if (!summaries.ok()) return summaries.status();
    (*summaries)->AddScalar("loss", loss);
    wanted.push_back((*summaries)->wanted());
    fed.push_back(session.Fed<double>("rate").ok());
    return loss;
  };
  ASSERT_EQ(session.Run(), absl::OkStatus());
  EXPECT_EQ(session.RunRaw().status(), absl::OkStatus());
  EXPECT_THAT(wanted, ElementsAre(true, false));
  EXPECT_THAT(fed, ElementsAre(true, false));
}

// --- the session's threads ---

// Runs `work` on a thread of the session's coordinator, from every creation on.
class ThreadHook final : public SessionHook {
 public:
  explicit ThreadHook(std::function<absl::Status(Coordinator&)> work) : work_(std::move(work)) {}
  absl::Status AfterCreateSession(const SessionContext& session) override {
    ++started;
    Coordinator& coordinator = *session.coordinator;
    thread_.reset();
    thread_ =
        std::make_unique<CoordinatedThread>(coordinator, "reader", [this, &coordinator] { return work_(coordinator); });
    return absl::OkStatus();
  }
  absl::Status End(const SessionContext& session) override {
    threads_ran_at_end = !session.coordinator->ShouldStop();
    return absl::OkStatus();
  }
  int started = 0;
  bool threads_ran_at_end = false;

 private:
  const std::function<absl::Status(Coordinator&)> work_;
  std::unique_ptr<CoordinatedThread> thread_;
};

TEST_F(SessionObjectsTest, CloseEndsTheThreadsAfterTheHooks) {
  bool ended = false;
  auto hook = std::make_shared<ThreadHook>([&ended](Coordinator& coordinator) {
    coordinator.WaitForStop();
    ended = true;
    return absl::OkStatus();
  });
  Session session = chief_.MakeSession({}, {hook});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  ASSERT_EQ(session.Run(), absl::OkStatus());
  EXPECT_EQ(session.Close(), absl::OkStatus());
  EXPECT_TRUE(hook->threads_ran_at_end);
  EXPECT_TRUE(ended);
}

TEST_F(SessionObjectsTest, AFailedThreadStopsTheSessionAndIsItsErrorAndNoHookEnds) {
  auto hook = std::make_shared<ThreadHook>([](Coordinator&) { return absl::DataLossError("bad record"); });
  Session session = chief_.MakeSession({.checkpoint_dir = "model"}, {hook, NewHook("a")});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  session.coordinator().WaitForStop();
  EXPECT_TRUE(session.ShouldStop());
  TakeStory();
  EXPECT_EQ(session.Run(), absl::DataLossError("bad record")) << "also if the program doesn't call ShouldStop";
  EXPECT_EQ(chief_.source.steps, 0);
  EXPECT_EQ(session.Close(), absl::DataLossError("bad record"));
  EXPECT_THAT(TakeStory(), IsEmpty());
  EXPECT_TRUE(ChiefIsDone());
}

TEST_F(SessionObjectsTest, AThreadWhoseInputIsUsedUpIsACleanEnd) {
  auto hook = std::make_shared<ThreadHook>([](Coordinator&) { return absl::OutOfRangeError("end of input"); });
  Session session = chief_.MakeSession({}, {hook, NewHook("a")});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  session.coordinator().WaitForStop();
  EXPECT_TRUE(session.ShouldStop());
  TakeStory();
  EXPECT_EQ(session.Close(), absl::OkStatus());
  EXPECT_THAT(TakeStory(), ElementsAre("a end"));
}

TEST_F(SessionObjectsTest, AThreadThatMeetsAnEmptyPsMakesTheSessionRecover) {
  auto hook = std::make_shared<ThreadHook>([this](Coordinator& coordinator) -> absl::Status {
    if (thread_fails_.exchange(false)) return absl::AbortedError("ps:0 was restarted");
    coordinator.WaitForStop();
    return absl::OkStatus();
  });
  Session session = chief_.MakeSession({.checkpoint_dir = "model", .save_checkpoint_steps = 1}, {hook});
  thread_fails_ = true;
  ASSERT_EQ(session.Start(), absl::OkStatus());
  session.coordinator().WaitForStop();
  EXPECT_FALSE(session.ShouldStop()) << "the next run recovers";
  EXPECT_EQ(session.Run(), absl::OkStatus());
  EXPECT_EQ(hook->started, 2);
  EXPECT_EQ(session.Close(), absl::OkStatus());
}

// The old thread would run beside the thread that is started in its place.
TEST_F(SessionObjectsTest, ARecoveryIsNotMadeBesideAThreadThatDoesNotEnd) {
  Mutex mutex;
  CondVar changed;
  bool released = false;
  auto hook = std::make_shared<ThreadHook>([&](Coordinator&) {
    const MutexLock lock(mutex);
    while (!released) changed.Wait(mutex);
    return absl::OkStatus();
  });
  Session session =
      chief_.MakeSession({.checkpoint_dir = "model", .save_checkpoint_steps = 1, .stop_grace_period_secs = 0}, {hook});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  store_.LosePs(0);
  store_.StartPs(0);
  const absl::Status status = session.Run();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(hook->started, 1);
  const MutexLock lock(mutex);
  released = true;
  changed.NotifyAll();
}

TEST_F(SessionObjectsTest, AThreadThatDoesNotEndIsLeftAfterTheGracePeriod) {
  SimulatedWaitClock clock;
  Mutex mutex;
  CondVar changed;
  bool released = false;
  {
    SessionEnvironment environment = chief_.Environment();
    environment.wait_clock = &clock;
    auto hook = std::make_shared<ThreadHook>([&](Coordinator&) {
      const MutexLock lock(mutex);
      while (!released) changed.Wait(mutex);
      return absl::OkStatus();
    });
    Session session(environment, {.stop_grace_period_secs = 7}, {hook});
    ASSERT_EQ(session.Start(), absl::OkStatus());
    const absl::Time begin = clock.Now();
    std::thread time([&] {
      clock.AwaitWaiters(1);
      clock.Advance(absl::Seconds(7));
    });
    EXPECT_EQ(session.Close(), absl::OkStatus());
    time.join();
    EXPECT_EQ(clock.Now() - begin, absl::Seconds(7));
    EXPECT_TRUE(ChiefIsDone());
    const MutexLock lock(mutex);
    released = true;
    changed.NotifyAll();
  }
}

}  // namespace
}  // namespace muster::session_objects_test
