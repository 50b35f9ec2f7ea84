#include "muster/train/session/session.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/wrong_configuration.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/store/service/store_status.h"
#include "muster/summary/event_file_reader.h"
#include "muster/train/hooks/hooks.h"
#include "muster/train/saving/saver.h"
#include "muster/train/testing/training_process.h"

namespace muster::session_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

const std::vector<std::string> kTasks = {"chief:0", "worker:0"};

// Records its calls, and does what a test wants meanwhile.
class Recorder final : public SessionHook {
 public:
  Recorder(std::string name, std::vector<std::string>& story) : name_(std::move(name)), story_(story) {}

  absl::Status Begin() override { return Note("begin"); }
  absl::Status AfterCreateSession(const SessionContext& session) override {
    return Note(absl::StrCat("created at ", session.global_step));
  }
  absl::Status BeforeRun(RunContext& context) override {
    if (on_before) on_before(context);
    return Note("before");
  }
  absl::Status AfterRun(RunContext& context, const RunValues& values) override {
    if (on_after) on_after(context, values);
    return Note(absl::StrCat("after ", values.global_step));
  }
  absl::Status End(const SessionContext& session) override {
    return Note(absl::StrCat("end at ", session.global_step));
  }

  std::function<void(RunContext&)> on_before;
  std::function<void(RunContext&, const RunValues&)> on_after;
  std::string fails_at;  // the beginning of the note at which it fails

 private:
  absl::Status Note(const std::string& what) {
    story_.push_back(absl::StrCat(name_, " ", what));
    if (!fails_at.empty() && absl::StartsWith(what, fails_at))
      return absl::InternalError(absl::StrCat("failed ", what));
    return absl::OkStatus();
  }

  const std::string name_;
  std::vector<std::string>& story_;
};

class SessionTest : public ::testing::TestWithParam<UpdateWay> {
 protected:
  std::shared_ptr<Recorder> NewHook(const std::string& name) { return std::make_shared<Recorder>(name, story_); }
  std::vector<std::string> TakeStory() { return std::exchange(story_, {}); }
  std::vector<std::string> Checkpoints(const std::string& directory = "model") {
    return ListCheckpoints(store_.files, directory).value_or(std::vector<std::string>());
  }
  // The events in the directory's event files.
  std::vector<std::string> Events(const std::string& directory = "model") {
    std::vector<std::string> events;
    for (const SummaryEvent& event : ReadEventFiles(store_.files, directory)) events.push_back(event.ToString());
    return events;
  }

  std::vector<std::string> story_;
  SimulatedStore store_{2, kTasks, {.lease = absl::Hours(100)}, nullptr, GetParam().direct()};
  TrainingProcess chief_{store_, "chief:0", {.way = GetParam()}};
  TrainingProcess worker_{store_, "worker:0", {.way = GetParam()}};
};

INSTANTIATE_TEST_SUITE_P(Ways, SessionTest, ::testing::ValuesIn(kSimulatedWays), NameOfWay);

TEST_P(SessionTest, HooksAreCalledInTensorFlowsOrder) {
  auto a = NewHook("a");
  auto b = NewHook("b");
  // A stop takes effect when all hooks have seen the run.
  a->on_after = [](RunContext& context, const RunValues& values) {
    if (values.global_step == 2) context.RequestStop();
  };
  chief_.source.on_step = [this](double loss) {
    story_.push_back("step");
    return loss;
  };
  Session session = chief_.MakeSession({}, {a, b});
  EXPECT_THAT(TakeStory(), IsEmpty());
  ASSERT_EQ(session.Start(), absl::OkStatus());
  EXPECT_THAT(TakeStory(), ElementsAre("a begin", "b begin", "a created at 0", "b created at 0"));
  ASSERT_EQ(session.Run(), absl::OkStatus());
  EXPECT_FALSE(session.ShouldStop());
  EXPECT_THAT(TakeStory(), ElementsAre("a before", "b before", "step", "a after 1", "b after 1"));
  ASSERT_EQ(session.Run(), absl::OkStatus());
  EXPECT_TRUE(session.ShouldStop());
  EXPECT_THAT(TakeStory(), ElementsAre("a before", "b before", "step", "a after 2", "b after 2"));
  ASSERT_EQ(session.Close(), absl::OkStatus());
  EXPECT_THAT(TakeStory(), ElementsAre("a end at 2", "b end at 2"));
  EXPECT_EQ(session.Close(), absl::OkStatus());
  EXPECT_THAT(TakeStory(), IsEmpty()) << "once";
}

TEST_P(SessionTest, ARunHasOneContextThatMovesWithTheStep) {
  auto hook = NewHook("a");
  absl::Time began;
  hook->on_before = [&](RunContext& context) {
    EXPECT_EQ(context.session().global_step, 0);
    began = context.session().now;
    context.WantSummaries();
  };
  hook->on_after = [&](RunContext& context, const RunValues&) {
    EXPECT_EQ(context.session().global_step, 1);
    EXPECT_GE(context.session().now - began, absl::Seconds(4));
    EXPECT_TRUE(context.summaries_wanted()) << "what BeforeRun has said";
  };
  chief_.source.on_step = [this](double loss) {
    store_.Pass(absl::Seconds(4));
    return loss;
  };
  Session session = chief_.MakeSession({}, {hook});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  ASSERT_EQ(session.Run(), absl::OkStatus());
  EXPECT_EQ(session.Close(), absl::OkStatus());
}

TEST_P(SessionTest, WithinAStepNoOtherCanBeRunNorCanTheSessionBeClosed) {
  auto hook = NewHook("a");
  Session session = chief_.MakeSession({}, {hook});
  std::vector<absl::Status> refused;
  const auto call_all = [&] {
    refused.push_back(session.Run());
    refused.push_back(session.RunRaw().status());
    refused.push_back(session.RunStepFn([](StepContext&) { return absl::OkStatus(); }));
    refused.push_back(session.Restore("model/model.ckpt-0"));
    refused.push_back(session.Close());
  };
  hook->on_before = [&](RunContext&) { call_all(); };
  chief_.source.on_step = [&](double loss) { return call_all(), loss; };
  ASSERT_EQ(session.Start(), absl::OkStatus());
  EXPECT_EQ(session.Run(), absl::OkStatus());
  EXPECT_EQ(session.RunRaw().status(), absl::OkStatus());
  EXPECT_EQ(session.global_step(), 2);
  EXPECT_EQ(refused.size(), 15u);
  for (const absl::Status& status : refused) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("within a step"));
  }
  EXPECT_EQ(session.Close(), absl::OkStatus());
}

TEST_P(SessionTest, AHookThatIsNullIsNamed) {
  Session session = chief_.MakeSession({}, {NewHook("a"), nullptr});
  const absl::Status status = session.Start();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(status.message(), "hook 2 of the list is null");
  EXPECT_THAT(TakeStory(), IsEmpty());
  Session chiefs = chief_.MakeSession({.chief_only_hooks = {nullptr}});
  EXPECT_EQ(chiefs.Start().message(), "hook 1 of chief_only_hooks is null");
}

TEST_P(SessionTest, RunAfterTheStopIsRefusedInTensorFlowsWords) {
  Session session = chief_.MakeSession();
  ASSERT_EQ(session.Start(), absl::OkStatus());
  session.RequestStop();
  EXPECT_TRUE(session.ShouldStop());
  EXPECT_EQ(session.Run(), absl::FailedPreconditionError("Run called even after should_stop requested."));
  EXPECT_EQ(chief_.source.steps, 0);
}

TEST_P(SessionTest, AStopAskedForBeforeTheRunStillRunsIt) {
  auto hook = NewHook("a");
  hook->on_before = [](RunContext& context) { context.RequestStop(); };
  Session session = chief_.MakeSession({}, {hook});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  ASSERT_EQ(session.Run(), absl::OkStatus());
  EXPECT_TRUE(session.ShouldStop());
  EXPECT_EQ(session.global_step(), 1);
}

TEST_P(SessionTest, ASignalBetweenTheQuestionAndTheRunIsNoMistake) {
  Session session = chief_.MakeSession();
  ASSERT_EQ(session.Start(), absl::OkStatus());
  ASSERT_FALSE(session.ShouldStop());
  chief_.stop = true;
  EXPECT_EQ(session.Run(), absl::OkStatus());
  EXPECT_TRUE(session.ShouldStop());
  EXPECT_EQ(session.Close(), absl::OkStatus());
}

// As in a pod of a node that is drained: the task begins again elsewhere.
TEST_P(SessionTest, ATaskThatIsStartedAgainLeavesAtASignalWithoutAnEndOfTraining) {
  chief_.leaves_on_signal = true;
  Session session = chief_.MakeSession({.checkpoint_dir = "model"});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  ASSERT_EQ(session.Run(), absl::OkStatus());
  chief_.stop = true;
  const absl::Status left = session.Close();
  EXPECT_TRUE(absl::IsUnavailable(left)) << left;
  EXPECT_THAT(left.message(), HasSubstr("it leaves training to its next start"));
  EXPECT_EQ(session.last_checkpoint(), "model/model.ckpt-1");
  const auto status = nlohmann::json::parse(StatusJson(store_.service(0).MakeView()));
  EXPECT_NE(status["clients"][0]["state"], "done");
  EXPECT_EQ(session.Close(), absl::OkStatus()) << "it is closed";
}

TEST_P(SessionTest, AnErrorInTheStepSkipsAfterRunAndIsGivenOn) {
  Session session = chief_.MakeSession({}, {NewHook("a")});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  chief_.source.on_step = [](double) { return absl::StatusOr<double>(absl::DataLossError("bad image")); };
  TakeStory();
  EXPECT_EQ(session.Run(), absl::DataLossError("bad image"));
  EXPECT_THAT(TakeStory(), ElementsAre("a before"));
}

TEST_P(SessionTest, AnErrorInAHookEndsTheCallThere) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"begin", {"a begin"}},
      {"created", {"a begin", "b begin", "a created at 0"}},
      {"before", {"a begin", "b begin", "a created at 0", "b created at 0", "a before"}},
      {"after", {"a begin", "b begin", "a created at 0", "b created at 0", "a before", "b before", "a after 1"}},
  };
  for (const auto& [where, story] : cases) {
    SimulatedStore store(1, kTasks, {}, nullptr, GetParam().direct());
    TrainingProcess chief(store, "chief:0", {.way = GetParam()});
    auto hook = NewHook("a");
    hook->fails_at = where;
    Session session = chief.MakeSession({}, {hook, NewHook("b")});
    absl::Status status = session.Start();
    if (status.ok()) status = session.Run();
    EXPECT_TRUE(absl::IsInternal(status)) << where;
    EXPECT_EQ(TakeStory(), story);
  }
}

TEST_P(SessionTest, WithoutCloseNoHookEndsAndThePsAreNotToldDone) {
  {
    Session session = chief_.MakeSession({}, {NewHook("a")});
    ASSERT_EQ(session.Start(), absl::OkStatus());
    TakeStory();
  }
  EXPECT_THAT(TakeStory(), IsEmpty());
  EXPECT_FALSE(store_.service(0).MakeView().clients->chief_done());
}

TEST_P(SessionTest, AWorkerWaitsForTheChiefAndBothEndTheTraining) {
  const auto stop = [] { return StopAtStep({.last_step = 4}); };
  Session chief = chief_.MakeSession({}, {stop()});
  Session worker = worker_.MakeSession({}, {NewHook("w"), stop()});
  store_.loop.CallAt(store_.loop.Now() + absl::Seconds(9), [&] {
    EXPECT_EQ(worker_.joined, 1) << "heartbeats begin before the waiting";
    EXPECT_EQ(chief.Start(), absl::OkStatus());
    EXPECT_EQ(chief.Run(), absl::OkStatus());
  });
  ASSERT_EQ(worker.Start(), absl::OkStatus());
  EXPECT_FALSE(worker.is_chief());
  while (!worker.ShouldStop() || !chief.ShouldStop()) {
    for (Session* session : {&worker, &chief}) {
      if (session->ShouldStop()) continue;
      ASSERT_EQ(session->Run(), absl::OkStatus());
    }
  }
  EXPECT_GE(worker.global_step(), 4);
  EXPECT_EQ(worker.Close(), absl::OkStatus());
  EXPECT_EQ(chief.Close(), absl::OkStatus());
  store_.Pass(absl::Seconds(1));
  for (int ps = 0; ps < 2; ++ps) EXPECT_TRUE(store_.service(ps).finished());
}

TEST_P(SessionTest, WhoComesAfterTheEndHasNothingToDo) {
  {
    Session chief = chief_.MakeSession({}, {StopAtStep({.last_step = 1})});
    ASSERT_EQ(chief.Start(), absl::OkStatus());
    ASSERT_EQ(chief.Run(), absl::OkStatus());
    ASSERT_EQ(chief.Close(), absl::OkStatus());
  }
  store_.Pass(absl::Seconds(20));  // the other never came
  Session late = worker_.MakeSession({}, {NewHook("w")});
  EXPECT_EQ(late.Start(), absl::OkStatus());
  EXPECT_TRUE(late.ShouldStop());
  EXPECT_EQ(late.Close(), absl::OkStatus());
  EXPECT_THAT(TakeStory(), ElementsAre("w begin")) << "there never was a session";
}

TEST_P(SessionTest, AStopWhileWaitingForTheChiefIsACleanEndWithoutASession) {
  // Also with hooks that can be ended only in a session that was created.
  Session worker = worker_.MakeSession({}, {CheckpointSaver({.save_steps = 1}), SummarySaver({.save_steps = 1})});
  store_.loop.CallAt(store_.loop.Now() + absl::Seconds(9), [&] { worker_.stop = true; });
  EXPECT_EQ(worker.Start(), absl::OkStatus());
  EXPECT_TRUE(worker.ShouldStop());
  EXPECT_EQ(worker.Close(), absl::OkStatus());
  EXPECT_TRUE(store_.service(0).MakeView().clients->clients()[1].done);
}

class SessionStopTest : public ::testing::TestWithParam<UpdateWay> {};

TEST_P(SessionStopTest, AChiefThatIsStoppedWhileItJoinsLeavesNobodyWaiting) {
  SimulatedStore store(1, kTasks, {}, nullptr, GetParam().direct());
  TrainingProcess worker_process(store, "worker:0", {.way = GetParam()});
  TrainingProcess chief_process(store, "chief:0", {.way = GetParam()});
  Session worker = worker_process.MakeSession();
  Session chief = chief_process.MakeSession();
  chief_process.stop = true;
  store.loop.CallAt(store.loop.Now() + absl::Seconds(1), [&] {
    EXPECT_EQ(chief.Start(), absl::OkStatus());
    EXPECT_TRUE(chief.ShouldStop());
    EXPECT_EQ(chief.Close(), absl::OkStatus());
  });
  const absl::Time begin = store.loop.Now();
  EXPECT_EQ(worker.Start(), absl::OkStatus());
  EXPECT_TRUE(worker.ShouldStop());
  EXPECT_EQ(worker.Close(), absl::OkStatus());
  store.Pass(absl::Seconds(1));
  EXPECT_TRUE(store.service(0).finished());
  EXPECT_LE(store.loop.Now() - begin, absl::Seconds(3));
}

INSTANTIATE_TEST_SUITE_P(Ways, SessionStopTest, ::testing::ValuesIn(kSimulatedWays), NameOfWay);

TEST_P(SessionTest, WaitingForTheChiefHasItsLimit) {
  Session worker = worker_.MakeSession();
  const absl::Time begin = store_.loop.Now();
  const absl::Status status = worker.Start();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("Session was not ready after waiting 7200 secs"));
  EXPECT_EQ(store_.loop.Now(), begin + absl::Hours(2));
}

TEST_P(SessionTest, AShutdownEndsTheSessionInOrderWithALastCheckpoint) {
  auto hook = NewHook("a");
  Session session = chief_.MakeSession({.checkpoint_dir = "model", .save_checkpoint_steps = 1000}, {hook});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  for (int i = 0; i < 3; ++i) ASSERT_EQ(session.Run(), absl::OkStatus());
  store_.service(0).Shutdown("enough");
  // A pipelined step sends its update, and hears of its outcome at the next step.
  if (GetParam().pipelined()) {
    EXPECT_EQ(session.Run(), absl::OkStatus());
  }
  TakeStory();
  EXPECT_EQ(session.Run(), absl::OkStatus()) << "ended elsewhere is no error";
  EXPECT_TRUE(session.ShouldStop());
  EXPECT_THAT(TakeStory(), ElementsAre("a before"));
  EXPECT_EQ(session.Close(), absl::OkStatus());
  EXPECT_THAT(TakeStory(), ElementsAre("a end at 3"));
  EXPECT_THAT(Checkpoints(), ElementsAre("model.ckpt-0", "model.ckpt-3"));
  store_.Pass(absl::Seconds(1));
  EXPECT_TRUE(store_.service(0).finished());
}

TEST_P(SessionTest, TheChiefsHooksComeInTensorFlowsOrderAndAWorkerHasItsOwnOnly) {
  auto first = NewHook("chief-only");
  auto last = NewHook("own");
  std::vector<size_t> checkpoints;
  const auto look = [&](RunContext&, const RunValues&) { checkpoints.push_back(Checkpoints().size()); };
  first->on_after = look;
  last->on_after = look;
  const SessionOptions options = {.checkpoint_dir = "model", .save_checkpoint_steps = 1, .chief_only_hooks = {first}};
  Session session = chief_.MakeSession(options, {last});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  ASSERT_EQ(session.Run(), absl::OkStatus());
  EXPECT_THAT(TakeStory(), ElementsAre("chief-only begin", "own begin", "chief-only created at 0", "own created at 0",
                                       "chief-only before", "own before", "chief-only after 1", "own after 1"));
  EXPECT_THAT(checkpoints, ElementsAre(1, 2)) << "the saver stands between them";

  Session worker = worker_.MakeSession({.checkpoint_dir = "other", .chief_only_hooks = {first}}, {NewHook("w")});
  ASSERT_EQ(worker.Start(), absl::OkStatus());
  ASSERT_EQ(worker.Run(), absl::OkStatus());
  EXPECT_EQ(worker.Close(), absl::OkStatus());
  EXPECT_THAT(TakeStory(), ElementsAre("w begin", "w created at 1", "w before", "w after 2", "w end at 2"));
  EXPECT_FALSE(store_.files.Exists("other"));
}

TEST_P(SessionTest, DefaultsAreTensorFlows) {
  chief_.source.on_step = [this](double loss) {
    store_.Pass(absl::Seconds(4));
    return loss;
  };
  Session session = chief_.MakeSession({.checkpoint_dir = "model"});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  for (int i = 0; i < 302; ++i) ASSERT_EQ(session.Run(), absl::OkStatus());
  ASSERT_EQ(session.Close(), absl::OkStatus());
  // A checkpoint at once and every 600 s, which is 150 steps of 4 s; the last at the end.
  EXPECT_THAT(Checkpoints(), ElementsAre("model.ckpt-0", "model.ckpt-150", "model.ckpt-300", "model.ckpt-302"));
  std::vector<std::string> kinds;
  for (const std::string& event : Events()) kinds.push_back(event.substr(0, event.find('=')));
  EXPECT_THAT(kinds, ElementsAre("1: START", "0: CHECKPOINT model/model.ckpt-0", "1: loss", "101: global_step/sec",
                                 "101: loss", "150: CHECKPOINT model/model.ckpt-150", "201: global_step/sec",
                                 "201: loss", "300: CHECKPOINT model/model.ckpt-300", "301: global_step/sec",
                                 "301: loss", "302: STOP", "302: CHECKPOINT model/model.ckpt-302"));
  EXPECT_THAT(Events()[3], HasSubstr("global_step/sec=0.25"));
}

TEST_P(SessionTest, OneOfSecondsAndStepsTurnsTheOtherOffAndBothAreAnError) {
  for (const SessionOptions& options : {SessionOptions{.save_checkpoint_secs = 1, .save_checkpoint_steps = 1},
                                        SessionOptions{.save_summaries_steps = 1, .save_summaries_secs = 1}}) {
    Session session = chief_.MakeSession(options, {NewHook("a")});
    const absl::Status status = session.Start();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_TRUE(IsWrongConfiguration(status)) << "exit code 2";
    EXPECT_THAT(TakeStory(), IsEmpty());
  }
  Session session = chief_.MakeSession({.checkpoint_dir = "model",
                                        .summary_dir = "logs",
                                        .save_checkpoint_steps = 2,
                                        .save_summaries_secs = 10,
                                        .log_step_count_steps = 0});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  for (int i = 0; i < 5; ++i) {
    store_.Pass(absl::Seconds(5));
    ASSERT_EQ(session.Run(), absl::OkStatus());
  }
  ASSERT_EQ(session.Close(), absl::OkStatus());
  EXPECT_THAT(Checkpoints(), ElementsAre("model.ckpt-0", "model.ckpt-2", "model.ckpt-4", "model.ckpt-5"));
  std::vector<std::string> losses;
  for (const std::string& event : Events("logs"))
    if (absl::StrContains(event, "loss")) losses.push_back(event.substr(0, 1));
  EXPECT_THAT(losses, ElementsAre("1", "3", "5"));
  EXPECT_THAT(Events("model"), IsEmpty());
}

TEST_P(SessionTest, ZeroTurnsSavingAndSummariesOff) {
  Session session = chief_.MakeSession(
      {.checkpoint_dir = "model", .save_checkpoint_secs = 0, .save_summaries_steps = 0, .log_step_count_steps = 0});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  ASSERT_EQ(session.Run(), absl::OkStatus());
  ASSERT_EQ(session.Close(), absl::OkStatus());
  EXPECT_THAT(Checkpoints(), IsEmpty());
  EXPECT_THAT(Events(), IsEmpty());
}

TEST_P(SessionTest, TheLastStepIsSavedOnceOnly) {
  Session session =
      chief_.MakeSession({.checkpoint_dir = "model", .save_checkpoint_steps = 2, .keep_checkpoint_max = 2});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  for (int i = 0; i < 4; ++i) ASSERT_EQ(session.Run(), absl::OkStatus());
  const auto saves = [this] { return store_.service(0).MakeView().requests[9]; };
  EXPECT_EQ(saves(), 3u);
  EXPECT_EQ(session.last_checkpoint(), "model/model.ckpt-4");
  ASSERT_EQ(session.Close(), absl::OkStatus());
  EXPECT_EQ(saves(), 3u);
  EXPECT_THAT(Checkpoints(), ElementsAre("model.ckpt-2", "model.ckpt-4")) << "keep_checkpoint_max";
}

TEST_P(SessionTest, TheLastCheckpointHasTheStepThatOthersHaveReached) {
  Session chief = chief_.MakeSession({.checkpoint_dir = "model", .save_checkpoint_steps = 1000});
  ASSERT_EQ(chief.Start(), absl::OkStatus());
  ASSERT_EQ(chief.Run(), absl::OkStatus());
  Session worker = worker_.MakeSession();
  ASSERT_EQ(worker.Start(), absl::OkStatus());
  for (int i = 0; i < 6; ++i) ASSERT_EQ(worker.Run(), absl::OkStatus());
  ASSERT_EQ(chief.Close(), absl::OkStatus());
  EXPECT_THAT(Checkpoints(), ElementsAre("model.ckpt-0", "model.ckpt-7"));
}

TEST_P(SessionTest, ANewJobGoesOnFromTheCheckpoint) {
  {
    Session session = chief_.MakeSession({.checkpoint_dir = "model"}, {StopAtStep({.num_steps = 5})});
    ASSERT_EQ(session.Start(), absl::OkStatus());
    while (!session.ShouldStop()) ASSERT_EQ(session.Run(), absl::OkStatus());
    ASSERT_EQ(session.Close(), absl::OkStatus());
  }
  SimulatedStore store(1, kTasks, {}, nullptr, GetParam().direct());
  TrainingProcess chief(store, "chief:0", {.files = &store_.files, .way = GetParam()});
  store.KillPs(0);
  store.StartPs(0, &store_.files);
  Session session = chief.MakeSession({.checkpoint_dir = "model"}, {NewHook("a"), StopAtStep({.num_steps = 3})});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  EXPECT_THAT(TakeStory(), ElementsAre("a begin", "a created at 5"));
  EXPECT_EQ(chief.source.values(0), chief_.source.values(0));
  EXPECT_EQ(chief.source.values(1), chief_.source.values(1));
  while (!session.ShouldStop()) ASSERT_EQ(session.Run(), absl::OkStatus());
  EXPECT_EQ(session.global_step(), 8);
}

TEST_P(SessionTest, ARestartedChiefGoesOnWithWhatThePsHold) {
  {
    Session session = chief_.MakeSession({.checkpoint_dir = "model", .save_checkpoint_steps = 100});
    ASSERT_EQ(session.Start(), absl::OkStatus());
    for (int i = 0; i < 5; ++i) ASSERT_EQ(session.Run(), absl::OkStatus());
    chief_.client.reset();  // killed
  }
  TrainingProcess again(store_, "chief:0", {.way = GetParam()});
  Session session = again.MakeSession({.checkpoint_dir = "model"}, {NewHook("a")});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  EXPECT_THAT(TakeStory(), ElementsAre("a begin", "a created at 5")) << "not the checkpoint of step 0";
  EXPECT_THAT(Checkpoints(), ElementsAre("model.ckpt-0", "model.ckpt-5"));
  ASSERT_EQ(session.Run(), absl::OkStatus());
  EXPECT_EQ(session.global_step(), 6);
}

TEST_P(SessionTest, ScalarsAreOfTheirStepOnly) {
  auto hook = NewHook("a");
  std::vector<size_t> counts;
  std::vector<double> accuracies;
  hook->on_after = [&](RunContext&, const RunValues& values) {
    counts.push_back(values.scalars.size());
    double accuracy = -1;
    if (values.Find("accuracy", &accuracy)) accuracies.push_back(accuracy);
  };
  Session session = chief_.MakeSession({}, {hook});
  chief_.source.on_step = [&](double loss) {
    if (chief_.source.steps != 2) session.AddScalar("accuracy", static_cast<double>(chief_.source.steps));
    return loss;
  };
  ASSERT_EQ(session.Start(), absl::OkStatus());
  for (int i = 0; i < 3; ++i) ASSERT_EQ(session.Run(), absl::OkStatus());
  EXPECT_THAT(counts, ElementsAre(1, 0, 1));
  EXPECT_THAT(accuracies, ElementsAre(1, 3));
}

TEST_P(SessionTest, TheMasterIsItsOwnServer) {
  Session wrong = chief_.MakeSession({.master = "grpc://elsewhere:2222"});
  const absl::Status status = wrong.Start();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("grpc://elsewhere:2222"), HasSubstr("muster://here:1")));
  Session right = chief_.MakeSession({.master = "muster://here:1"});
  EXPECT_EQ(right.Start(), absl::OkStatus());
}

TEST_P(SessionTest, WhoSaysThatItIsTheChiefIsUnlessThereIsOne) {
  Session worker = worker_.MakeSession({.is_chief = true});
  EXPECT_TRUE(worker.is_chief());
  ASSERT_EQ(worker.Start(), absl::OkStatus());
  Session chief = chief_.MakeSession();
  const absl::Status status = chief.Start();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("chief:0 says it is the chief"), HasSubstr("worker:0")));
  EXPECT_EQ(worker.Run(), absl::OkStatus());
}

TEST_P(SessionTest, ADirectoryThatCannotBeWrittenIsAnErrorAtTheStart) {
  store_.files.SetReadOnly(true);
  Session session = chief_.MakeSession({.checkpoint_dir = "model"});
  const absl::Status status = session.Start();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("model"));
}

TEST_P(SessionTest, NanEndsTheTraining) {
  chief_.source.on_step = [](double) { return std::nan(""); };
  Session failing = chief_.MakeSession({}, {NanTensor()});
  ASSERT_EQ(failing.Start(), absl::OkStatus());
  EXPECT_TRUE(absl::IsInternal(failing.Run()));
}

}  // namespace
}  // namespace muster::session_test
