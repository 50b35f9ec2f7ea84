#include "muster/launch/supervise/task_supervisor.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "muster/launch/testing/noting_backend.h"

namespace muster::task_supervisor_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::SizeIs, ::testing::StartsWith;

const TaskId kChief{kChiefJob, 0};
const TaskId kPs{kPsJob, 0};
const TaskId kWorker0{kWorkerJob, 0};
const TaskId kWorker1{kWorkerJob, 1};

// Notes what a supervisor says and does.
class NotedTest : public testing::Test {
 protected:
  // Returns what was reported since the last call.
  std::string Said() {
    std::string said;
    for (const std::string& line : std::exchange(lines_, {})) said += line + "\n";
    return said;
  }

  SimulatedClock clock_;
  NotingBackend backend_;
  std::vector<std::string> lines_;
};

class SupervisorTest : public NotedTest {
 protected:
  static constexpr absl::Duration kGrace = absl::Seconds(30);
  static constexpr absl::Duration kLastGrace = absl::Seconds(5);

  void Advance(absl::Duration by) {
    clock_.Advance(by);
    supervisor_.OnTime();
  }

  TaskSupervisor supervisor_{{kPs, kChief, kWorker0, kWorker1},
                             {.chief = kChief, .stop_grace = kGrace, .last_grace = kLastGrace},
                             backend_,
                             clock_,
                             [this](const std::string& line) { lines_.push_back(line); }};
};

TEST_F(SupervisorTest, AllEndWell) {
  supervisor_.OnExit(kWorker0, {});
  EXPECT_EQ(supervisor_.deadline(), absl::InfiniteFuture());
  supervisor_.OnExit(kChief, {});
  EXPECT_EQ(supervisor_.deadline(), clock_.Now() + kGrace);
  supervisor_.OnExit(kWorker1, {});
  EXPECT_FALSE(supervisor_.done());
  supervisor_.OnExit(kPs, {});
  EXPECT_TRUE(supervisor_.done());
  EXPECT_EQ(supervisor_.deadline(), absl::InfiniteFuture());
  EXPECT_EQ(supervisor_.exit_code(), 0);
  EXPECT_FALSE(supervisor_.first_failure().has_value());
  EXPECT_THAT(backend_.Take(), IsEmpty());
  EXPECT_EQ(Said(), "");
}

TEST_F(SupervisorTest, AFailedWorkerStopsNobody) {
  supervisor_.OnExit(kWorker1, {.signal = 9});
  EXPECT_THAT(Said(), HasSubstr("worker:1 was killed by signal 9 (killed); the others go on"));
  supervisor_.OnExit(kWorker0, {.code = 3});
  EXPECT_THAT(backend_.Take(), IsEmpty());
  supervisor_.OnExit(kChief, {});
  supervisor_.OnExit(kPs, {});
  EXPECT_EQ(supervisor_.exit_code(), 0);
  ASSERT_TRUE(supervisor_.first_failure().has_value());
  EXPECT_EQ(supervisor_.first_failure()->task, kWorker1);
  EXPECT_EQ(supervisor_.first_failure()->status, ExitStatus{.signal = 9});
}

TEST_F(SupervisorTest, AFailedServerIsLeftForTheOthersToFindOut) {
  supervisor_.OnExit(kPs, {.code = 1});
  EXPECT_THAT(Said(), HasSubstr("ps:0 exited with 1: training can't go on without it"));
  EXPECT_THAT(backend_.Take(), IsEmpty());
  EXPECT_EQ(supervisor_.deadline(), absl::InfiniteFuture());
  supervisor_.OnExit(kChief, {.code = 138});
  EXPECT_THAT(backend_.Take(), ElementsAre("worker:0 gently", "worker:1 gently"));
  supervisor_.OnExit(kWorker0, {.signal = 15});
  supervisor_.OnExit(kWorker1, {.signal = 15});
  EXPECT_EQ(supervisor_.exit_code(), 138);
  EXPECT_EQ(supervisor_.first_failure()->task, kPs);
}

TEST_F(SupervisorTest, AFailedChiefEndsTheOthersServersLast) {
  supervisor_.OnExit(kChief, {.code = 7});
  EXPECT_THAT(Said(), HasSubstr("chief:0 exited with 7: ending the others (ps:0, worker:0, worker:1)"));
  EXPECT_THAT(backend_.Take(), ElementsAre("worker:0 gently", "worker:1 gently"));
  supervisor_.OnExit(kWorker0, {.signal = 15});
  EXPECT_THAT(backend_.Take(), IsEmpty());
  supervisor_.OnExit(kWorker1, {.code = 1});
  EXPECT_THAT(backend_.Take(), ElementsAre("ps:0 gently"));
  supervisor_.OnExit(kPs, {});
  EXPECT_TRUE(supervisor_.done());
  EXPECT_EQ(supervisor_.exit_code(), 7);
  EXPECT_EQ(supervisor_.first_failure()->task, kChief);  // the others ended because they were asked to
  EXPECT_EQ(Said(), "");
}

TEST_F(SupervisorTest, WhoDoesNotEndWhenAskedIsKilled) {
  supervisor_.OnExit(kChief, {.code = 1});
  supervisor_.OnExit(kWorker0, {});
  backend_.Take();
  Advance(kGrace - absl::Milliseconds(1));
  EXPECT_THAT(backend_.Take(), IsEmpty());
  Said();
  Advance(absl::Milliseconds(1));
  EXPECT_THAT(backend_.Take(), ElementsAre("ps:0 at once", "worker:1 at once"));
  EXPECT_THAT(Said(), HasSubstr("did not end when asked to, and being killed now: ps:0, worker:1"));
  EXPECT_EQ(supervisor_.deadline(), absl::InfiniteFuture());
  supervisor_.OnExit(kWorker1, {.signal = 9});
  supervisor_.OnExit(kPs, {.signal = 9});
  EXPECT_TRUE(supervisor_.done());
}

TEST_F(SupervisorTest, AfterTheChiefTheOthersHaveTheirGrace) {
  supervisor_.OnExit(kChief, {});
  Advance(kGrace - absl::Milliseconds(1));
  EXPECT_THAT(backend_.Take(), IsEmpty());
  Advance(absl::Milliseconds(1));
  EXPECT_THAT(backend_.Take(), ElementsAre("worker:0 gently", "worker:1 gently"));
  EXPECT_THAT(Said(),
              HasSubstr("still running 30s after chief:0 had ended, and being ended now: ps:0, worker:0, worker:1"));
  supervisor_.OnExit(kWorker0, {.signal = 15});
  Advance(kLastGrace);
  EXPECT_THAT(backend_.Take(), ElementsAre("ps:0 at once", "worker:1 at once"));
  EXPECT_EQ(supervisor_.exit_code(), 0);
}

TEST_F(SupervisorTest, AWorkerThatFailsAfterTheChiefIsAFailureToo) {
  supervisor_.OnExit(kChief, {});
  supervisor_.OnExit(kWorker1, {.code = 1});
  EXPECT_EQ(supervisor_.first_failure()->task, kWorker1);
  supervisor_.OnExit(kPs, {.code = 1});
  EXPECT_THAT(Said(), testing::Not(HasSubstr("training can't go on")));
}

// The ps would wait for a worker that never joined.
TEST_F(SupervisorTest, AfterAFailedWorkerThePsAreEndedOnceTheyAreAlone) {
  supervisor_.OnExit(kWorker1, {.code = 138});
  supervisor_.OnExit(kChief, {});
  EXPECT_THAT(backend_.Take(), IsEmpty());
  Said();
  supervisor_.OnExit(kWorker0, {});
  EXPECT_THAT(backend_.Take(), ElementsAre("ps:0 gently"));
  EXPECT_EQ(Said(), "no trainer is left: ending ps:0\n");
  EXPECT_EQ(supervisor_.deadline(), clock_.Now() + kGrace);
  supervisor_.OnExit(kPs, {});
  EXPECT_TRUE(supervisor_.done());
  EXPECT_EQ(supervisor_.exit_code(), 0);
  EXPECT_EQ(supervisor_.first_failure()->task, kWorker1);
}

TEST_F(SupervisorTest, InterruptedOnceEndsGentlyTwiceAtOnce) {
  supervisor_.OnInterrupt();
  EXPECT_THAT(backend_.Take(), ElementsAre("chief:0 gently", "worker:0 gently", "worker:1 gently"));
  EXPECT_THAT(Said(), HasSubstr("interrupted: ending chief:0, ps:0, worker:0, worker:1; what is left after 30s, "));
  EXPECT_EQ(supervisor_.deadline(), clock_.Now() + kGrace);
  supervisor_.OnExit(kWorker0, {.code = 1});
  supervisor_.OnInterrupt();
  EXPECT_THAT(backend_.Take(), ElementsAre("chief:0 at once", "ps:0 at once", "worker:1 at once"));
  supervisor_.OnExit(kChief, {.signal = 9});
  supervisor_.OnExit(kWorker1, {.signal = 9});
  supervisor_.OnExit(kPs, {.signal = 9});
  EXPECT_TRUE(supervisor_.done());
  EXPECT_EQ(supervisor_.exit_code(), 137);
  EXPECT_FALSE(supervisor_.first_failure().has_value());
}

TEST_F(NotedTest, WhatEndsARunWithoutCtrlCIsNamed) {
  TaskSupervisor supervisor({kChief}, {.chief = kChief, .why_interrupted = [] { return "the job's time is over"; }},
                            backend_, clock_, [this](const std::string& line) { lines_.push_back(line); });
  supervisor.OnInterrupt();
  EXPECT_EQ(Said(),
            "the job's time is over: ending chief:0; what is left after 30s, or at another muster kill, is killed\n");
  supervisor.OnInterrupt();
  EXPECT_EQ(Said(), "asked to end again: killing chief:0\n");
}

TEST_F(SupervisorTest, InterruptWhileEndingDoesNotProlongTheGrace) {
  supervisor_.OnExit(kChief, {.code = 1});
  const absl::Time deadline = supervisor_.deadline();
  backend_.Take();
  clock_.Advance(absl::Seconds(10));
  supervisor_.OnInterrupt();
  EXPECT_THAT(backend_.Take(), IsEmpty());
  EXPECT_EQ(supervisor_.deadline(), deadline);
}

TEST_F(SupervisorTest, TheChiefsGracefulEndAfterAnInterruptIsItsExitCode) {
  supervisor_.OnInterrupt();
  supervisor_.OnExit(kChief, {.code = 0});
  supervisor_.OnExit(kWorker0, {});
  supervisor_.OnExit(kWorker1, {});
  backend_.Take();
  supervisor_.OnExit(kPs, {});
  EXPECT_TRUE(supervisor_.done());
  EXPECT_EQ(supervisor_.exit_code(), 0);
}

class HealingTest : public NotedTest {
 protected:
  std::vector<std::string> Relaunched() { return std::exchange(relaunched_, {}); }
  void AdvanceToDeadline() {
    clock_.AdvanceTo(supervisor_.deadline());
    supervisor_.OnTime();
  }

  std::vector<std::string> relaunched_;
  TaskSupervisor supervisor_{{kPs, kChief, kWorker0},
                             {.chief = kChief,
                              .restart_policy = [](const TaskId&) { return RestartPolicy{.limit = 3}; },
                              .retryable = IsRetryableInForeground,
                              .relaunch = [this](const TaskId& task) { relaunched_.push_back(task.ToString()); }},
                             backend_,
                             clock_,
                             [this](const std::string& line) { lines_.push_back(line); }};
};

TEST_F(HealingTest, WhoIsKilledIsStartedAgainAtOnceTheFirstTime) {
  for (const TaskId& task : {kPs, kChief, kWorker0}) {
    supervisor_.OnExit(task, {.signal = 9});
    EXPECT_THAT(Relaunched(), ElementsAre(task.ToString()));
    EXPECT_THAT(Said(),
                HasSubstr(task.ToString() + " was killed by signal 9 (killed): starting it again (restart 1 of 3)"));
  }
  supervisor_.OnExit(kChief, {});
  supervisor_.OnExit(kWorker0, {});
  supervisor_.OnExit(kPs, {});
  EXPECT_TRUE(supervisor_.done());
  EXPECT_EQ(supervisor_.exit_code(), 0);
  EXPECT_FALSE(supervisor_.first_failure().has_value()) << "what was healed is no failure";
}

// The signal that has ended the task reaches the supervisor a moment later.
TEST_F(NotedTest, WhatTheEndOfAJobHasEndedIsNotStartedAgain) {
  std::vector<std::string> relaunched;
  TaskSupervisor supervisor({kChief, kWorker0},
                            {.chief = kChief,
                             .restart_policy = [](const TaskId&) { return RestartPolicy{.limit = 3}; },
                             .pause_after_sigterm = absl::Seconds(2),
                             .relaunch = [&](const TaskId& task) { relaunched.push_back(task.ToString()); }},
                            backend_, clock_, [](const std::string&) {});
  supervisor.OnExit(kWorker0, {.signal = SIGKILL});
  EXPECT_THAT(relaunched, ElementsAre("worker:0"));
  supervisor.OnStarted(kWorker0);
  supervisor.OnExit(kWorker0, {.code = 128 + SIGTERM});
  supervisor.OnExit(kChief, {.signal = SIGTERM});
  EXPECT_EQ(supervisor.deadline(), clock_.Now() + absl::Seconds(2));
  supervisor.OnInterrupt();
  clock_.AdvanceTo(clock_.Now() + absl::Minutes(1));
  supervisor.OnTime();
  EXPECT_THAT(relaunched, ElementsAre("worker:0"));
  EXPECT_TRUE(supervisor.done());
}

TEST_F(HealingTest, OnlyWhatIsWorthRetryingIsTriedAgain) {
  supervisor_.OnExit(kWorker0, {.code = 138});
  EXPECT_THAT(Relaunched(), ElementsAre("worker:0"));
  supervisor_.OnExit(kWorker0, {.code = 1});
  EXPECT_THAT(Relaunched(), IsEmpty());
  EXPECT_THAT(Said(), HasSubstr("worker:0 exited with 1 after 1 of 3 restarts; the others go on"));
  EXPECT_EQ(supervisor_.first_failure()->task, kWorker0);
  supervisor_.OnExit(kPs, {.code = 2});
  EXPECT_THAT(Relaunched(), IsEmpty());
}

TEST_F(HealingTest, WhoWasAskedToStopIsNotStartedAgain) {
  supervisor_.OnExit(kChief, {.code = 130});
  EXPECT_THAT(Relaunched(), IsEmpty());
  EXPECT_EQ(supervisor_.exit_code(), 130);
}

TEST_F(HealingTest, ShortLivesAreFollowedByPausesThatDoubleUntilItIsGivenUp) {
  supervisor_.OnExit(kPs, {.signal = 11});
  EXPECT_THAT(Relaunched(), ElementsAre("ps:0"));
  supervisor_.OnExit(kPs, {.signal = 11});
  EXPECT_THAT(Relaunched(), IsEmpty());
  EXPECT_EQ(supervisor_.deadline(), clock_.Now() + absl::Milliseconds(250));
  AdvanceToDeadline();
  EXPECT_THAT(Relaunched(), ElementsAre("ps:0"));
  supervisor_.OnExit(kPs, {.signal = 11});
  EXPECT_EQ(supervisor_.deadline(), clock_.Now() + absl::Milliseconds(500));
  AdvanceToDeadline();
  Relaunched();
  supervisor_.OnExit(kPs, {.signal = 11});
  EXPECT_THAT(Relaunched(), IsEmpty());
  EXPECT_EQ(supervisor_.deadline(), absl::InfiniteFuture());
  EXPECT_EQ(supervisor_.first_failure()->task, kPs);
  EXPECT_THAT(Said(), HasSubstr("ps:0 was killed by signal 11 (segmentation fault) after 3 of 3 restarts: training"));
}

TEST_F(HealingTest, WithoutAPsNobodyIsStartedAgain) {
  supervisor_.OnExit(kPs, {.code = 3});
  supervisor_.OnExit(kWorker0, {.code = 138});
  supervisor_.OnExit(kChief, {.code = 138});
  EXPECT_THAT(Relaunched(), IsEmpty());
  EXPECT_TRUE(supervisor_.done());
  EXPECT_EQ(supervisor_.exit_code(), 138);
  EXPECT_EQ(supervisor_.first_failure()->task, kPs);
}

TEST_F(HealingTest, WhoIsToBeStartedAgainStillFindsItsPs) {
  supervisor_.OnExit(kWorker0, {.signal = 9});
  supervisor_.OnExit(kChief, {});
  supervisor_.OnExit(kWorker0, {.signal = 9});  // its second short life: a pause
  EXPECT_THAT(backend_.Take(), IsEmpty());
  AdvanceToDeadline();
  supervisor_.OnExit(kWorker0, {.code = 1});
  EXPECT_THAT(backend_.Take(), ElementsAre("ps:0 gently"));
}

TEST_F(HealingTest, AfterASteadyLifeThePausesBeginAnew) {
  supervisor_.OnExit(kPs, {.signal = 9});
  Relaunched();
  clock_.Advance(absl::Seconds(30));
  supervisor_.OnExit(kPs, {.signal = 9});
  EXPECT_THAT(Relaunched(), ElementsAre("ps:0"));
}

TEST_F(HealingTest, WhatCannotBeStartedAgainIsAFailure) {
  supervisor_.OnExit(kChief, {.signal = 9});
  EXPECT_THAT(backend_.Take(), IsEmpty()) << "the start isn't decided yet";
  supervisor_.OnNotStarted(kChief, absl::NotFoundError("no such program"));
  EXPECT_THAT(Said(), HasSubstr("chief:0 could not be started again: no such program"));
  EXPECT_THAT(Relaunched(), ElementsAre("chief:0")) << "it is not tried again";
  EXPECT_THAT(backend_.Take(), ElementsAre("worker:0 gently"));
}

TEST_F(HealingTest, WhoFindsNoPlaceIsTriedAgainWithoutARestartCounted) {
  const absl::Status why = absl::UnavailableError("h3 is off");
  for (int restart = 0; restart < 3; ++restart) {  // all that it has
    supervisor_.OnExit(kPs, {.signal = 9});
    if (supervisor_.deadline() != absl::InfiniteFuture()) AdvanceToDeadline();
  }
  EXPECT_THAT(Relaunched(), SizeIs(3));
  Said();
  const absl::Time lost = clock_.Now();
  std::string said;
  while (clock_.Now() < lost + absl::Minutes(9)) {
    supervisor_.OnNoPlace(kPs, why);
    said += Said();
    EXPECT_TRUE(supervisor_.IsOpen(kPs));
    AdvanceToDeadline();
    ASSERT_THAT(Relaunched(), ElementsAre("ps:0"));
  }
  EXPECT_THAT(said, StartsWith("ps:0 can't be started now: h3 is off; it is tried again for 10m, without a "
                               "restart counted\n"));
  EXPECT_LE(std::count(said.begin(), said.end(), '\n'), 8) << said;
  EXPECT_FALSE(supervisor_.first_failure().has_value());
  supervisor_.OnStarted(kPs);
  EXPECT_EQ(supervisor_.restarts(kPs), 3);
  EXPECT_FALSE(supervisor_.MayReplace(kPs)) << "its restarts are used up";
}

TEST_F(HealingTest, WhileAPsHasNoPlaceTheRestartsOfOthersAreNotCounted) {
  supervisor_.OnExit(kPs, {.signal = 9});
  supervisor_.OnNoPlace(kPs, absl::UnavailableError("h3 is off"));
  Relaunched();
  for (int give_up = 0; give_up < 10; ++give_up) {
    clock_.Advance(absl::Minutes(1));
    supervisor_.OnExit(kWorker0, {.code = 138});
    EXPECT_THAT(Said(), HasSubstr("worker:0 exited with 138: starting it again (not counted, as a ps has no place)"));
    ASSERT_TRUE(supervisor_.IsOpen(kWorker0));
    supervisor_.OnStarted(kWorker0);
  }
  EXPECT_EQ(supervisor_.restarts(kWorker0), 0);
  supervisor_.OnTime();
  supervisor_.OnStarted(kPs);
  supervisor_.OnExit(kWorker0, {.code = 138});
  EXPECT_EQ(supervisor_.restarts(kWorker0), 1);
}

TEST_F(HealingTest, WhoseHostStaysAwayHasFailedAndSaysWhy) {
  while (!supervisor_.first_failure().has_value()) {
    supervisor_.OnNoPlace(kPs, absl::UnavailableError("h3 is lost"));
    if (supervisor_.deadline() != absl::InfiniteFuture()) AdvanceToDeadline();
  }
  EXPECT_EQ(supervisor_.first_failure()->why_not_started, "h3 is lost");
  EXPECT_THAT(Said(), HasSubstr("ps:0 has found no place: h3 is lost\n"));
}

TEST_F(HealingTest, NoPlaceIsSoughtForATaskThatIsToEnd) {
  supervisor_.OnInterrupt();
  supervisor_.OnNoPlace(kPs, absl::UnavailableError("h3 is lost"));
  EXPECT_FALSE(supervisor_.IsOpen(kPs));
}

TEST_F(HealingTest, WhoIsBeingStartedAgainCountsAsRunning) {
  supervisor_.OnExit(kChief, {.signal = 9});
  supervisor_.OnExit(kWorker0, {});
  supervisor_.OnExit(kPs, {});
  EXPECT_FALSE(supervisor_.done());
  supervisor_.OnInterrupt();
  EXPECT_THAT(backend_.Take(), ElementsAre("chief:0 gently"));
  supervisor_.OnNotStarted(kChief, absl::UnavailableError("its host is gone"));
  EXPECT_TRUE(supervisor_.done());
  EXPECT_FALSE(supervisor_.first_failure().has_value()) << "it was to end";
}

TEST_F(HealingTest, AnInterruptEndsTheHealingToo) {
  supervisor_.OnExit(kPs, {.signal = 9});
  supervisor_.OnExit(kPs, {.signal = 9});
  Relaunched();
  supervisor_.OnInterrupt();
  supervisor_.OnExit(kChief, {});
  supervisor_.OnExit(kWorker0, {.signal = 9});
  EXPECT_TRUE(supervisor_.done());
  EXPECT_THAT(Relaunched(), IsEmpty());
}

// Both wait to be restarted when the chief fails for good, so neither is.
TEST_F(HealingTest, WhoWaitsToBeStartedAgainIsNotWhenTheChiefHasFailed) {
  for (const TaskId& task : {kPs, kWorker0}) {
    supervisor_.OnExit(task, {.signal = 9});
    supervisor_.OnExit(task, {.signal = 9});
  }
  Relaunched();
  Said();
  supervisor_.OnExit(kChief, {.code = 1});
  EXPECT_EQ(Said(), "chief:0 exited with 1: ending the others (ps:0, worker:0)\n");
  EXPECT_TRUE(supervisor_.done());
  clock_.Advance(absl::Seconds(60));
  supervisor_.OnTime();
  EXPECT_THAT(Relaunched(), IsEmpty());
}

TEST_F(HealingTest, WhoWaitsToBeStartedAgainIsWaitedForAfterTheChief) {
  supervisor_.OnExit(kPs, {});
  supervisor_.OnExit(kWorker0, {.signal = 9});
  supervisor_.OnExit(kWorker0, {.signal = 9});  // its second short life: a pause
  Relaunched();
  supervisor_.OnExit(kChief, {});
  EXPECT_FALSE(supervisor_.done());
  AdvanceToDeadline();
  EXPECT_THAT(Relaunched(), ElementsAre("worker:0"));
  EXPECT_EQ(supervisor_.deadline(), clock_.Now() + absl::Seconds(30) - absl::Milliseconds(250));
}

}  // namespace
}  // namespace muster::task_supervisor_test
