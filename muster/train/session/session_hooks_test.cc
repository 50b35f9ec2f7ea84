// Hooks that fail or throw, in each phase: what is called, closed and saved, and with which exit code a program ends.
#include <gmock/gmock.h>

#include <algorithm>
#include <any>
#include <cmath>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/summary/event_file_reader.h"
#include "muster/train/hook_api/hook_call.h"
#include "muster/train/hooks/early_stopping_by_run.h"
#include "muster/train/hooks/feed_fn.h"
#include "muster/train/hooks/final_ops.h"
#include "muster/train/hooks/global_step_waiter.h"
#include "muster/train/hooks/hooks.h"
#include "muster/train/hooks/progress_bar.h"
#include "muster/train/testing/hook_driver.h"
#include "muster/train/testing/training_process.h"
#include "muster/train/threads/error.h"

namespace muster::session_hooks_test {
namespace {

using ::testing::ElementsAre, ::testing::IsEmpty;

enum class How { kStatus, kException, kError };

// Records its calls; fails in one phase.
class FailingHook final : public SessionHook {
 public:
  FailingHook(std::string name, std::vector<std::string>& story, std::string phase = "", How how = How::kStatus)
      : name_(std::move(name)), story_(story), phase_(std::move(phase)), how_(how) {}

  absl::Status Begin() override { return Note("Begin"); }
  absl::Status AfterCreateSession(const SessionContext&) override { return Note("AfterCreateSession"); }
  absl::Status BeforeRun(RunContext&) override { return Note("BeforeRun"); }
  absl::Status AfterRun(RunContext&, const RunValues& values) override {
    // The first run succeeds, so that there is something to save.
    return Note(values.global_step == 1 ? "first AfterRun" : "AfterRun");
  }
  absl::Status End(const SessionContext&) override { return Note("End"); }

 private:
  absl::Status Note(const std::string& phase) {
    story_.push_back(absl::StrCat(name_, " ", phase));
    if (phase != phase_) return absl::OkStatus();
    switch (how_) {
      case How::kException:
        throw std::runtime_error("disk on fire");
      case How::kError:
        throw Error(absl::UnavailableError("disk on fire"));
      default:
        return absl::DataLossError("disk on fire");
    }
  }

  const std::string name_;
  std::vector<std::string>& story_;
  const std::string phase_;
  const How how_;
};

struct Outcome {
  absl::Status status;
  std::vector<std::string> story;
  std::vector<std::string> checkpoints;
  std::string last_event;  // in the event file
  bool told_done = false;
};

// A program that runs three steps, ends in order unless something fails, and has a hook "b" that fails.
Outcome Train(const std::string& phase, How how) {
  Outcome outcome;
  SimulatedStore store(1, {"chief:0"});
  TrainingProcess process(store, "chief:0", {.files = &store.files});
  {
    Session session =
        process.MakeSession({.checkpoint_dir = "model", .save_checkpoint_steps = 1000, .save_summaries_steps = 1},
                            {std::make_shared<FailingHook>("a", outcome.story),
                             std::make_shared<FailingHook>("b", outcome.story, phase, how),
                             std::make_shared<FailingHook>("c", outcome.story)});
    outcome.status = session.Start();
    for (int i = 0; i < 3 && outcome.status.ok(); ++i) outcome.status = session.Run();
    // Like the façade, which doesn't close a session that it leaves with an error.
    if (outcome.status.ok()) outcome.status = session.Close();
  }
  outcome.checkpoints = ListCheckpoints(store.files, "model").value_or(std::vector<std::string>());
  for (const SummaryEvent& event : ReadEventFiles(store.files, "model")) outcome.last_event = event.ToString();
  outcome.told_done = store.service(0).MakeView().clients->chief_done();
  return outcome;
}

class FailingHookTest : public ::testing::TestWithParam<How> {};

INSTANTIATE_TEST_SUITE_P(Hows, FailingHookTest, ::testing::Values(How::kStatus, How::kException, How::kError));

void ExpectError(const absl::Status& status, const std::string& phase) {
  switch (FailingHookTest::GetParam()) {
    case How::kStatus:
      EXPECT_EQ(status, absl::DataLossError("disk on fire"));
      EXPECT_EQ(ExitCodeOf(status), ExitCode::kFailed);
      break;
    case How::kException:
      EXPECT_EQ(status, absl::InternalError(absl::StrCat("a hook's ", phase, " threw: disk on fire")));
      EXPECT_EQ(ExitCodeOf(status), ExitCode::kFailed);
      break;
    case How::kError:
      EXPECT_EQ(status, absl::UnavailableError("disk on fire"));
      EXPECT_EQ(ExitCodeOf(status), ExitCode::kRetry);
      break;
  }
}

// As at the death of a simulated process, or a thread's cancellation.
TEST(HookCall, WhatIsNoStdExceptionIsTheEndOfTheThreadAndPasses) {
  SessionHook hook;
  EXPECT_THROW(CallHook("Begin", hook, [](SessionHook&) -> absl::Status { throw 7; }).IgnoreError(), int);
}

TEST_P(FailingHookTest, InBeginNothingIsMade) {
  const Outcome outcome = Train("Begin", GetParam());
  ExpectError(outcome.status, "Begin");
  EXPECT_THAT(outcome.story, ElementsAre("a Begin", "b Begin"));
  EXPECT_THAT(outcome.checkpoints, IsEmpty());
  EXPECT_FALSE(outcome.told_done);
}

TEST_P(FailingHookTest, AfterTheCreationNoStepIsRunAndNoHookEnds) {
  const Outcome outcome = Train("AfterCreateSession", GetParam());
  ExpectError(outcome.status, "AfterCreateSession");
  EXPECT_THAT(outcome.story,
              ElementsAre("a Begin", "b Begin", "c Begin", "a AfterCreateSession", "b AfterCreateSession"));
  EXPECT_THAT(outcome.checkpoints, ElementsAre("model.ckpt-0")) << "the saver comes before the user's hooks";
  EXPECT_FALSE(outcome.told_done);
}

TEST_P(FailingHookTest, BeforeARunThereIsNoStep) {
  const Outcome outcome = Train("BeforeRun", GetParam());
  ExpectError(outcome.status, "BeforeRun");
  EXPECT_EQ(outcome.story.back(), "b BeforeRun");
  EXPECT_THAT(outcome.checkpoints, ElementsAre("model.ckpt-0"));
  EXPECT_EQ(outcome.last_event, "0: CHECKPOINT model/model.ckpt-0");
}

TEST_P(FailingHookTest, AfterARunTheRestOfTheHooksDontHearOfItAndNoneEnds) {
  const Outcome outcome = Train("AfterRun", GetParam());
  ExpectError(outcome.status, "AfterRun");
  EXPECT_EQ(outcome.story.back(), "b AfterRun");
  EXPECT_EQ(std::count(outcome.story.begin(), outcome.story.end(), "c first AfterRun"), 1);
  EXPECT_EQ(std::count(outcome.story.begin(), outcome.story.end(), "c AfterRun"), 0);
  EXPECT_THAT(outcome.checkpoints, ElementsAre("model.ckpt-0")) << "no last checkpoint: only an end in order saves";
  EXPECT_THAT(outcome.last_event, ::testing::StartsWith("2: loss=")) << "summaries are complete all the same";
  EXPECT_FALSE(outcome.told_done) << "for the ps it is a worker that has died";
}

TEST_P(FailingHookTest, InEndAllOthersEndAndTheModelIsSaved) {
  const Outcome outcome = Train("End", GetParam());
  ExpectError(outcome.status, "End");
  EXPECT_THAT(std::vector<std::string>(outcome.story.end() - 3, outcome.story.end()),
              ElementsAre("a End", "b End", "c End"));
  EXPECT_THAT(outcome.checkpoints, ElementsAre("model.ckpt-0", "model.ckpt-3"));
  EXPECT_TRUE(outcome.told_done);
}

TEST(SessionHooksTest, ARecoveryIsACreationAndNotABeginning) {
  std::vector<std::string> story;
  SimulatedStore store(1, {"chief:0"});
  TrainingProcess process(store, "chief:0", {.files = &store.files});
  Session session = process.MakeSession({.checkpoint_dir = "model", .save_checkpoint_steps = 1},
                                        {std::make_shared<FailingHook>("a", story)});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  ASSERT_EQ(session.Run(), absl::OkStatus());
  for (int lives = 0; lives < 2; ++lives) {
    store.LosePs(0);
    store.StartPs(0);
    story.clear();
    ASSERT_EQ(session.Run(), absl::OkStatus());
    EXPECT_THAT(story, ElementsAre("a BeforeRun", "a AfterCreateSession", "a BeforeRun", "a AfterRun"))
        << "the run that was lost has no AfterRun";
  }
}

TEST(SessionHooksTest, AfterTheStopARunIsRefusedInTensorFlowsWordsAndNoHookHearsOfIt) {
  std::vector<std::string> story;
  SimulatedStore store(1, {"chief:0"});
  TrainingProcess process(store, "chief:0");
  Session session = process.MakeSession({}, {std::make_shared<FailingHook>("a", story), StopAtStep({.last_step = 1})});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  ASSERT_EQ(session.Run(), absl::OkStatus());
  story.clear();
  EXPECT_EQ(session.Run(), absl::FailedPreconditionError("Run called even after should_stop requested."));
  EXPECT_THAT(story, IsEmpty());
  ASSERT_EQ(session.Close(), absl::OkStatus());
  EXPECT_EQ(session.Run(), absl::FailedPreconditionError("Attempted to use a closed Session."));
}

// [own-hook]
// Stops training when one minibatch's loss is far above the average of those before.
class LossSpike final : public SessionHook {
 public:
  explicit LossSpike(double times) : times_(times) {}

  // Called once, before there is a session: reports options that make no sense.
  absl::Status Begin() override {
    return times_ > 1 ? absl::OkStatus() : absl::InvalidArgumentError("LossSpike: times must be above 1");
  }
  // The model is ready. Called again after each recovery, when training continues from an older step.
  absl::Status AfterCreateSession(const SessionContext&) override {
    runs_ = 0;
    return absl::OkStatus();
  }
  absl::Status AfterRun(RunContext& context, const RunValues& values) override {
    if (runs_ > 0 && values.loss > times_ * average_) context.RequestStop();
    average_ += (values.loss - average_) / static_cast<double>(++runs_);
    return absl::OkStatus();
  }

 private:
  const double times_;
  int64_t runs_ = 0;
  double average_ = 0;
};
// [/own-hook]

TEST(SessionHooksTest, AHookOfOnesOwn) {
  SimulatedStore store(1, {"chief:0"});
  TrainingProcess process(store, "chief:0");
  Session session = process.MakeSession({}, {std::make_shared<LossSpike>(3)});
  process.source.on_step = [&](double) { return process.source.steps < 4 ? 1.0 : 3.5; };
  ASSERT_EQ(session.Start(), absl::OkStatus());
  while (!session.ShouldStop()) ASSERT_EQ(session.Run(), absl::OkStatus());
  EXPECT_EQ(session.global_step(), 4);
  EXPECT_TRUE(absl::IsInvalidArgument(LossSpike(0.5).Begin()));
}

TEST(SessionHooksTest, ANanLossIsAWarningAtTheEnd) {
  for (const double last : {0.5, std::nan("")}) {
    SimulatedStore store(1, {"chief:0"});
    TrainingProcess process(store, "chief:0");
    process.source.on_step = [last](double) { return last; };
    Session session = process.MakeSession();
    ASSERT_EQ(session.Start(), absl::OkStatus());
    ASSERT_EQ(session.Run(), absl::OkStatus());
    const auto log = Logged([&session] { EXPECT_EQ(session.Close(), absl::OkStatus()); });
    const auto warning = ::testing::Contains(::testing::StartsWith("the loss is NaN: "));
    if (std::isnan(last)) {
      EXPECT_THAT(log, warning);
    } else {
      EXPECT_THAT(log, ::testing::Not(warning));
    }
  }
}

TEST(SessionHooksTest, TheCallsThatTheManualShows) {
  const int64_t worker = 0;
  // [calls]
  const auto final_ops = std::make_shared<FinalOps>(std::map<std::string, FinalOps::Op>{
      {"last step", [](const SessionContext& session) -> absl::StatusOr<std::any> { return session.global_step; }}});
  const std::vector<std::shared_ptr<SessionHook>> hooks = {
      FeedFn([] {
        return std::map<std::string, std::any>{{"keep_prob", 0.5}};
      }),         // Fed<double>("keep_prob")
      final_ops,  // afterwards: std::any_cast<int64_t>(final_ops->values().at("last step"))
      GlobalStepWaiter(500 * worker),
      ProgressBar({.last_step = 1000}),
      StopIf([](const RunValues& values) { return values.loss < 0.01; }, {.run_every_steps = 1}),
      StopIfNoDecrease({.max_steps_without_improvement = 500, .check = {.run_every_steps = 1}}),
      StopIfHigher({.metric = "accuracy", .threshold = 0.99, .min_steps = 100, .check = {.run_every_steps = 1}}),
  };
  // [/calls]
  SimulatedStore store(1, {"chief:0"});
  TrainingProcess process(store, "chief:0");
  Session session = process.MakeSession({}, hooks);
  ASSERT_EQ(session.Start(), absl::OkStatus());
  ASSERT_EQ(session.Run(), absl::OkStatus());
  ASSERT_EQ(session.Close(), absl::OkStatus());
  EXPECT_EQ(std::any_cast<int64_t>(final_ops->values().at("last step")), 1);
}

}  // namespace
}  // namespace muster::session_hooks_test
