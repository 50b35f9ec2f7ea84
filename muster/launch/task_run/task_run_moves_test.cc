// Tasks that move, over a backend that only notes what it is asked for: the test says what comes of it.
#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/clock.h"
#include "muster/launch/task_run/task_run.h"
#include "muster/launch/testing/scripted_backend.h"

namespace muster::task_run_moves_test {
namespace {

using ::testing::Contains, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Not;

const TaskId kPs{kPsJob, 0}, kChief{kWorkerJob, 0}, kWorker{kWorkerJob, 1};

class TaskRunMovesTest : public ::testing::Test, public TaskRunClient {
 protected:
  void OnOutput(const TaskId&, OutputStream, std::string_view) override {}
  void OnOutputEnd(const TaskId&) override {}
  std::deque<std::string> LastLines(const TaskId&) const override { return {}; }
  void OnStarted(const ProcessSpec&, const LocalProcess&) override {}
  void Say(const std::string& line) override { said_ += line + "\n"; }
  MoveWish MayMoveTo(const TaskId&) override { return may_move_ ? MoveWish{.hosts = {"h3"}} : MoveWish(); }
  bool IsReplacedAtOnce(const TaskId& task) const override { return task == kWorker; }
  bool LearnsOfMoves() const override { return learns_; }
  absl::StatusOr<std::vector<ProcessSpec>> PlanAgain(const TaskId&, const std::string&,
                                                     const ReservedPorts& addresses) override {
    return ProcessesAt(addresses);
  }
  // The next step of the test, and what follows from it.
  void Wait() override {
    if (steps_.empty()) {
      ADD_FAILURE() << "it waits for more: " << said_;
      exit(1);
    }
    const std::function<void()> step = std::move(steps_.front());
    steps_.pop_front();
    step();
    run_.RunRound(absl::InfinitePast());
  }

  static std::vector<ProcessSpec> ProcessesAt(const ReservedPorts& addresses) {
    std::vector<ProcessSpec> processes;
    for (const TaskId& task : {kPs, kChief, kWorker})
      processes.push_back({.task = task, .address = addresses.at(task).front(), .arguments = {"x"}});
    return processes;
  }
  void Starts(const TaskId& task) { run_.OnStarted(task, {.pid = 1}); }
  void Dies(const TaskId& task) { run_.OnExit(task, {.signal = SIGKILL}); }
  // The worker is to go to another host, where ports are asked for.
  void BeginMove() {
    script_.move_to = "h3";
    Dies(kWorker);
    EXPECT_THAT(script_.Taken(), ElementsAre("reserve worker:1"));
  }
  // The worker goes to another host, of which the others can't learn: the chief is asked to end.
  void BeginWholeRestart() {
    script_.move_to = "h3";
    Dies(kWorker);
    run_.OnReserved(kWorker, {"new:worker"});
    EXPECT_EQ(script_.Taken().back(), "end worker:0");
  }
  // All three run; then come the steps, and at last all end well.
  void Supervise(std::vector<std::function<void()>> steps, int limit = 10) {
    ASSERT_EQ(run_.Start(), absl::OkStatus());
    steps_ = {[&] {
      for (const TaskId& task : {kPs, kChief, kWorker}) run_.OnReserved(task, {"old:" + task.job});
    }};
    const auto reserved = run_.Reserve({{kPs, {0}}, {kChief, {0}}, {kWorker, {0}}});
    ASSERT_TRUE(reserved.ok());
    steps_ = {[&] {
      for (const TaskId& task : {kPs, kChief, kWorker}) Starts(task);
    }};
    ASSERT_EQ(run_.Launch(ProcessesAt(*reserved)), absl::OkStatus());
    script_.Taken();
    steps_ = {steps.begin(), steps.end()};
    steps_.push_back([&] {
      for (const TaskId& task : {kChief, kWorker, kPs}) run_.OnExit(task, {});
    });
    run_.Supervise({.chief = kChief, .restart_policy = [=](const TaskId&) {
                      return RestartPolicy{.limit = limit, .pause = absl::ZeroDuration()};
                    }});
    EXPECT_THAT(steps_, IsEmpty()) << "it has ended early: " << said_;
  }

  bool learns_ = true, may_move_ = true;
  std::string said_;
  Script script_;
  std::deque<std::function<void()>> steps_;
  SimulatedClock clock_;
  TaskRun run_{{.backend = {.clock = &clock_},
                .make_backend = [this](BackendEvents&) { return std::make_unique<ScriptedBackend>(script_); }},
               *this};
};

TEST_F(TaskRunMovesTest, AMovedTaskHasItsPortsBeforeItStartsAndAllHostsKnow) {
  Supervise({[&] {
               script_.move_to = "h3";
               Dies(kPs);
               EXPECT_THAT(script_.Taken(), ElementsAre("reserve ps:0"));
             },
             [&] {
               run_.OnReserved(kPs, {"new:ps"});
               EXPECT_THAT(script_.Taken(), ElementsAre("hosts ps:0 new:ps old:ps\nworker:0 old:worker\nworker:1 "
                                                        "old:worker\n",
                                                        "launch ps:0 at new:ps"));
               Starts(kPs);
             }});
}

TEST_F(TaskRunMovesTest, AReservationThatFailsIsAskedForAgainBeforeAnyStart) {
  Supervise({[&] { BeginMove(); },
             [&] {
               run_.OnNotReserved(kWorker, absl::UnavailableError("h3 is lost"));
               clock_.Advance(absl::Seconds(1));
             },
             [&] {
               EXPECT_THAT(script_.Taken(), ElementsAre("reserve worker:1"));
               run_.OnReserved(kWorker, {"new:worker"});
               EXPECT_EQ(script_.Taken().back(), "launch worker:1 at new:worker");
               Starts(kWorker);
             }});
}

TEST_F(TaskRunMovesTest, AReservationThatFailsForGoodIsTheTasksFailure) {
  Supervise({[&] { BeginMove(); },
             [&] {
               run_.OnNotReserved(kWorker, absl::FailedPreconditionError("the job has ended"));
               EXPECT_TRUE(run_.supervisor()->first_failure().has_value());
               clock_.Advance(absl::Minutes(1));
             },
             [&] { EXPECT_THAT(script_.Taken(), Not(Contains("reserve worker:1"))); }});
}

// The next try may find another host.
TEST_F(TaskRunMovesTest, AHostThatWontComeBackIsNoFailureOfATaskThatMayGoElsewhere) {
  Supervise({[&] { Dies(kWorker); },
             [&] {
               EXPECT_THAT(script_.Taken(), ElementsAre("launch worker:1 at old:worker"));
               run_.OnNotStarted(kWorker, absl::AbortedError("h2: its pod is gone"));
               EXPECT_FALSE(run_.supervisor()->first_failure().has_value());
               script_.move_to = "h3";
               clock_.Advance(absl::Seconds(1));
             },
             [&] {
               EXPECT_THAT(script_.Taken(), ElementsAre("reserve worker:1"));
               run_.OnNotReserved(kWorker, absl::AbortedError("h3: its pod is gone"));
               clock_.Advance(absl::Seconds(1));
             },
             [&] {
               EXPECT_THAT(script_.Taken(), ElementsAre("reserve worker:1"));
               run_.OnReserved(kWorker, {"new:worker"});
               Starts(kWorker);
             }});
}

TEST_F(TaskRunMovesTest, AHostThatWontComeBackIsTheEndOfATaskThatMayNotMove) {
  may_move_ = false;
  Supervise({[&] { Dies(kWorker); },
             [&] {
               run_.OnNotStarted(kWorker, absl::AbortedError("h2: its pod is gone"));
               EXPECT_THAT(said_, HasSubstr("could not be started again: h2: its pod is gone"));
               ASSERT_TRUE(run_.supervisor()->first_failure().has_value());
               EXPECT_EQ(run_.supervisor()->first_failure()->why_not_started, "h2: its pod is gone");
             }});
}

TEST_F(TaskRunMovesTest, ATaskThatIsOutOfReachIsReplacedWhichCountsNotAsARestart) {
  Supervise({[&] {
               script_.can_give_up = false;
               run_.OnOutOfReach(kWorker);
               script_.can_give_up = true;
               run_.OnOutOfReach(kPs);
               run_.OnOutOfReach(kChief);
               EXPECT_THAT(script_.Taken(), IsEmpty());
               script_.move_to = "h3";
               run_.OnOutOfReach(kWorker);
               EXPECT_THAT(script_.Taken(), ElementsAre("give up worker:1", "reserve worker:1"));
             },
             [&] {
               run_.OnReserved(kWorker, {"new:worker"});
               Starts(kWorker);
               EXPECT_EQ(run_.supervisor()->restarts(kWorker), 0);
               EXPECT_THAT(script_.lives[kWorker], ElementsAre("1", "2")) << "by which its ps know the later one";
             }});
}

TEST_F(TaskRunMovesTest, ATaskThatWouldNotBeRestartedIsNotGivenUp) {
  Supervise({[&] {
              run_.OnOutOfReach(kWorker);
              EXPECT_THAT(script_.Taken(), IsEmpty());
            }},
            /*limit=*/0);
}

TEST_F(TaskRunMovesTest, AllAreStartedAgainServersLast) {
  learns_ = false;
  Supervise({[&] { BeginWholeRestart(); },
             [&] {
               Dies(kChief);
               EXPECT_THAT(script_.Taken(), IsEmpty());
             },
             [&] {
               EXPECT_THAT(script_.Taken(), ElementsAre("end ps:0"));
               Dies(kPs);
             },
             [&] {
               EXPECT_THAT(script_.Taken(), ElementsAre("launch ps:0 at old:ps", "launch worker:0 at old:worker",
                                                        "launch worker:1 at new:worker"));
               for (const TaskId& task : {kPs, kChief, kWorker}) Starts(task);
               EXPECT_EQ(run_.supervisor()->restarts(kChief), 0);
             }});
}

TEST_F(TaskRunMovesTest, WhatDoesNotEndForTheOthersIsKilledServersLater) {
  learns_ = false;
  Supervise({[&] {
               BeginWholeRestart();
               clock_.Advance(absl::Seconds(9));
             },
             [&] {
               EXPECT_THAT(script_.Taken(), IsEmpty());
               clock_.Advance(absl::Seconds(1));
             },
             [&] {
               EXPECT_THAT(script_.Taken(), ElementsAre("kill worker:0"));
               Dies(kChief);
             },
             [&] {
               EXPECT_THAT(script_.Taken(), ElementsAre("end ps:0"));
               clock_.Advance(absl::Seconds(10));
             },
             [&] {
               EXPECT_THAT(script_.Taken(), ElementsAre("kill ps:0"));
               Dies(kPs);
             },
             [&] {
               EXPECT_EQ(script_.Taken().back(), "launch worker:1 at new:worker");
               for (const TaskId& task : {kPs, kChief, kWorker}) Starts(task);
             }});
}

// It would come up in the old cluster.
TEST_F(TaskRunMovesTest, ATaskThatIsBeingStartedIsStartedAgainWithTheOthers) {
  learns_ = false;
  Supervise({[&] {
               Dies(kChief);
               EXPECT_THAT(script_.Taken(), ElementsAre("launch worker:0 at old:worker"));
               BeginWholeRestart();
             },
             [&] {
               run_.OnNotStarted(kChief, absl::CancelledError("it was ended before"));
               Dies(kPs);
             },
             [&] {
               EXPECT_EQ(script_.Taken().back(), "launch worker:1 at new:worker");
               for (const TaskId& task : {kPs, kChief, kWorker}) Starts(task);
             }});
}

TEST_F(TaskRunMovesTest, AnInterruptWhileATaskMovesEndsTheRun) {
  Supervise({[&] {
               script_.move_to = "h3";
               Dies(kWorker);
               raise(SIGINT);
             },
             [&] { run_.OnReserved(kWorker, {"new:worker"}); }});
  for (const std::string& line : script_.Taken()) EXPECT_NE(line, "launch worker:1 at new:worker");
}

TEST_F(TaskRunMovesTest, AnInterruptWhileAllAreStartedAgainEndsTheRun) {
  learns_ = false;
  Supervise({[&] {
               script_.move_to = "h3";
               Dies(kWorker);
               run_.OnReserved(kWorker, {"new:worker"});
               Dies(kChief);
               raise(SIGINT);
             },
             [&] {}});
  for (const std::string& line : script_.Taken()) EXPECT_NE(line.substr(0, 6), "launch");
}

}  // namespace
}  // namespace muster::task_run_moves_test
