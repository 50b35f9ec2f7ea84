// Tests runs that end when all tasks have ended: EndRule::kAllDecide.
#include <gmock/gmock.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "muster/launch/supervise/task_supervisor.h"
#include "muster/launch/testing/noting_backend.h"

namespace muster::task_supervisor_of_experiments_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

const TaskId kPs{kPsJob, 0};
const TaskId kWorker0{kWorkerJob, 0};
const TaskId kWorker1{kWorkerJob, 1};
const TaskId kMaster{kMasterJob, 0};
const TaskId kEvaluator{kEvaluatorJob, 0};

const char* ChangeName(TaskChange change) {
  switch (change) {
    case TaskChange::kStarting:
      return "STARTING";
    case TaskChange::kRunning:
      return "RUNNING";
    case TaskChange::kFinished:
      return "FINISHED";
    case TaskChange::kFailed:
      return "FAILED";
    case TaskChange::kKilled:
      return "KILLED";
  }
  return "?";
}

// A run of an experiment, where all tasks decide.
class ExperimentTest : public testing::Test {
 protected:
  std::string Said() {
    std::string said;
    for (const std::string& line : std::exchange(lines_, {})) said += line + "\n";
    return said;
  }
  std::vector<std::string> Relaunched() { return std::exchange(relaunched_, {}); }
  std::vector<std::string> Changes() { return std::exchange(changes_, {}); }
  void AdvanceToDeadline() {
    clock_.AdvanceTo(supervisor().deadline());
    supervisor().OnTime();
  }
  // Lets that many half minutes pass, in which worker 0 uses so much of a core.
  void Pass(int half_minutes, double share) {
    for (int i = 0; i < half_minutes; ++i) {
      cpu_seconds_[kWorker0] += share * 30;
      AdvanceToDeadline();
    }
  }
  // Makes the supervisor at first use, from tasks_ and policies_.
  TaskSupervisor& supervisor() {
    if (!supervisor_.has_value()) Make();
    return *supervisor_;
  }

  std::vector<TaskId> tasks_ = {kPs, kMaster, kWorker0, kEvaluator};
  TaskId chief_ = kMaster;
  std::map<TaskId, RestartPolicy> policies_;  // all others are never restarted
  std::function<std::string(const TaskId&)> name_;
  std::set<TaskId> ended_;          // under an earlier supervisor
  std::map<TaskId, int> restarts_;  // likewise
  std::map<TaskId, double> cpu_seconds_;
  int looks_ = 0;  // at what tasks have used
  SimulatedClock clock_;
  NotingBackend backend_;

 private:
  void Make() {
    TaskSupervisorOptions options{.chief = chief_, .rule = EndRule::kAllDecide, .idle_grace = absl::Minutes(10)};
    options.cpu_seconds = [this](const std::vector<TaskId>& tasks) {
      ++looks_;
      std::map<TaskId, double> used;
      for (const TaskId& task : tasks) used[task] = cpu_seconds_[task];
      return used;
    };
    options.restart_policy = [this](const TaskId& task) {
      const auto found = policies_.find(task);
      return found == policies_.end() ? RestartPolicy{.when = RestartWhen::kNever} : found->second;
    };
    options.relaunch = [this](const TaskId& task) {
      relaunched_.push_back(task.ToString());
      supervisor_->OnStarted(task);
    };
    options.changed = [this](const TaskId& task, TaskChange change, const ExitStatus& status) {
      changes_.push_back(task.ToString() + " " + ChangeName(change) + ": " + status.ToString());
    };
    options.name = name_;
    options.ended = ended_;
    options.restarts = restarts_;
    supervisor_.emplace(tasks_, options, backend_, clock_, [this](const std::string& line) { lines_.push_back(line); });
  }

  std::vector<std::string> lines_, relaunched_, changes_;
  std::optional<TaskSupervisor> supervisor_;
};

// A ps that was ended after success has an exit status of a failure, but hasn't failed.
TEST_F(ExperimentTest, WhatHasEndedUnderAnEarlierSupervisorIsNeitherToldNorStartedAgain) {
  ended_ = {kMaster, kWorker0, kPs};
  policies_[kPs] = {.when = RestartWhen::kAlways, .limit = 3};
  EXPECT_TRUE(supervisor().succeeded());
  EXPECT_EQ(supervisor().deadline(), clock_.Now() + absl::Seconds(30)) << "the evaluator's grace";
  supervisor().OnInterrupt();
  supervisor().OnExit(kEvaluator, {});
  EXPECT_TRUE(supervisor().done());
  EXPECT_THAT(Changes(), ElementsAre("evaluator:0 FINISHED: exited with 0"));
  EXPECT_THAT(Relaunched(), IsEmpty());
  EXPECT_EQ(supervisor().exit_code(), 0);
}

TEST_F(ExperimentTest, IfAllHadEndedUnderAnEarlierSupervisorItIsDone) {
  ended_ = {tasks_.begin(), tasks_.end()};
  EXPECT_TRUE(supervisor().done());
  EXPECT_TRUE(supervisor().succeeded());
  EXPECT_EQ(supervisor().exit_code(), 0);
}

TEST_F(ExperimentTest, AWorkerThatHangsAfterTheChiefOfAnEarlierSupervisorIsEnded) {
  ended_ = {kMaster};
  EXPECT_FALSE(supervisor().succeeded());
  Pass(21, 0);
  EXPECT_THAT(backend_.Take(), ElementsAre("worker:0 gently", "worker:0 at once"));
}

TEST_F(ExperimentTest, RestartsOfAnEarlierSupervisorCount) {
  policies_[kWorker0] = {.when = RestartWhen::kAlways, .limit = 3};
  restarts_[kWorker0] = 2;
  supervisor().OnExit(kWorker0, {.signal = 9});
  EXPECT_THAT(Relaunched(), ElementsAre("worker:0"));
  supervisor().OnExit(kWorker0, {.signal = 9});
  EXPECT_THAT(Relaunched(), IsEmpty());
  EXPECT_THAT(Said(), HasSubstr("after 3 of 3 restarts"));
}

TEST_F(ExperimentTest, WhenMasterAndWorkersHaveFinishedTheEvaluatorHasItsGraceAndThePsAreEnded) {
  supervisor().OnExit(kMaster, {});
  EXPECT_THAT(backend_.Take(), IsEmpty()) << "a worker may train on";
  supervisor().OnExit(kWorker0, {});
  EXPECT_TRUE(supervisor().succeeded());
  EXPECT_EQ(supervisor().deadline(), clock_.Now() + absl::Seconds(30));
  EXPECT_THAT(backend_.Take(), IsEmpty());
  supervisor().OnExit(kEvaluator, {});
  EXPECT_THAT(backend_.Take(), IsEmpty());
  EXPECT_EQ(supervisor().deadline(), clock_.Now() + absl::Milliseconds(500));
  Said();
  AdvanceToDeadline();
  EXPECT_EQ(Said(), "training has finished: ending ps:0\n");
  EXPECT_THAT(backend_.Take(), ElementsAre("ps:0 gently"));
  supervisor().OnExit(kPs, {.signal = 15});
  EXPECT_TRUE(supervisor().done());
  EXPECT_EQ(supervisor().exit_code(), 0);
  EXPECT_FALSE(supervisor().first_failure().has_value());
  EXPECT_THAT(Changes(), ElementsAre("master:0 FINISHED: exited with 0", "worker:0 FINISHED: exited with 0",
                                     "evaluator:0 FINISHED: exited with 0",
                                     "ps:0 FINISHED: was killed by signal 15 (terminated)"));
}

TEST_F(ExperimentTest, AWorkerThatHangsAfterTheMasterHasFinishedIsEndedAndTheRunHasFinished) {
  tasks_ = {kPs, kMaster, kWorker0, kWorker1};
  cpu_seconds_[kWorker0] = 1000;
  supervisor().OnExit(kMaster, {});
  supervisor().OnExit(kWorker1, {});
  Pass(19, 0.01);
  EXPECT_THAT(backend_.Take(), IsEmpty());
  Pass(1, 0.01);
  EXPECT_THAT(backend_.Take(), ElementsAre("worker:0 gently"));
  EXPECT_EQ(Said(),
            "worker:0 has neither written nor computed anything for 10m since master:0 has ended: it hangs, and is "
            "being ended\n");
  AdvanceToDeadline();
  EXPECT_THAT(backend_.Take(), ElementsAre("worker:0 at once"));
  EXPECT_EQ(Said(), "worker:0 did not end when asked to, and is being killed now\n");
  supervisor().OnExit(kWorker0, {.signal = 9});
  EXPECT_TRUE(supervisor().succeeded());
  EXPECT_FALSE(supervisor().first_failure().has_value());
  EXPECT_THAT(Changes(), ElementsAre("master:0 FINISHED: exited with 0", "worker:1 FINISHED: exited with 0",
                                     "worker:0 KILLED: was killed by signal 9 (killed)"));
  AdvanceToDeadline();
  EXPECT_THAT(backend_.Take(), ElementsAre("ps:0 gently"));
}

// Each look goes through all processes of the machine.
TEST_F(ExperimentTest, AfterTheMasterAllWorkersAreLookedAtAtOnce) {
  tasks_ = {kMaster, kWorker0, kWorker1};
  supervisor().OnExit(kMaster, {});
  EXPECT_EQ(looks_, 1);
  AdvanceToDeadline();
  EXPECT_EQ(looks_, 2);
}

TEST_F(ExperimentTest, AWorkerThatComputesOrWritesAfterTheMasterHasFinishedIsLeftAlone) {
  supervisor().OnExit(kMaster, {});
  Pass(100, 0.5);
  for (int i = 0; i < 100; ++i) {
    supervisor().OnOutput(kWorker0);
    Pass(1, 0);
  }
  EXPECT_THAT(backend_.Take(), IsEmpty());
  EXPECT_EQ(Said(), "");
  supervisor().OnExit(kWorker0, {});
  EXPECT_TRUE(supervisor().succeeded());
}

TEST_F(ExperimentTest, AServerThatNeverReturnsIsKilledAndHasFinished) {
  tasks_ = {kPs, kMaster};
  supervisor().OnExit(kMaster, {});
  AdvanceToDeadline();
  EXPECT_THAT(backend_.Take(), ElementsAre("ps:0 gently"));
  EXPECT_EQ(supervisor().deadline(), clock_.Now() + absl::Seconds(5));
  AdvanceToDeadline();
  EXPECT_THAT(backend_.Take(), ElementsAre("ps:0 at once"));
  supervisor().OnExit(kPs, {.signal = 9});
  EXPECT_EQ(supervisor().exit_code(), 0);
  EXPECT_TRUE(supervisor().succeeded());
  EXPECT_THAT(Changes(),
              ElementsAre("master:0 FINISHED: exited with 0", "ps:0 FINISHED: was killed by signal 9 (killed)"));
}

TEST_F(ExperimentTest, AnEvaluatorThatGoesOnIsEndedAfterItsGraceThenThePs) {
  supervisor().OnExit(kWorker0, {});
  supervisor().OnExit(kMaster, {});
  AdvanceToDeadline();
  EXPECT_EQ(Said(), "still running 30s after training had finished, and being ended now: evaluator:0, ps:0\n");
  EXPECT_THAT(backend_.Take(), ElementsAre("evaluator:0 gently"));
  Changes();
  supervisor().OnExit(kEvaluator, {.code = 130});
  EXPECT_THAT(backend_.Take(), ElementsAre("ps:0 gently"));
  supervisor().OnExit(kPs, {});
  EXPECT_THAT(Changes(),
              ElementsAre("evaluator:0 FINISHED: exited with 130, as its program was killed by signal 2 (interrupt)",
                          "ps:0 FINISHED: exited with 0"));
  EXPECT_FALSE(supervisor().first_failure().has_value());
}

TEST_F(ExperimentTest, AnEvaluatorThatFailsAfterSuccessChangesNothingForTheRun) {
  supervisor().OnExit(kWorker0, {});
  supervisor().OnExit(kMaster, {});
  Changes();
  supervisor().OnExit(kEvaluator, {.code = 1});
  EXPECT_THAT(Changes(), ElementsAre("evaluator:0 FAILED: exited with 1"));
  EXPECT_THAT(Said(), HasSubstr("evaluator:0 exited with 1; the others go on"));
  AdvanceToDeadline();
  supervisor().OnExit(kPs, {});
  EXPECT_TRUE(supervisor().succeeded());
  EXPECT_EQ(supervisor().exit_code(), 0);
  EXPECT_EQ(supervisor().first_failure()->task, kEvaluator);
}

// Without a chief, as with torchrun, it doesn't matter which worker ends last.
TEST_F(ExperimentTest, WorkersAloneSucceedWhenAllHaveFinished) {
  tasks_ = {kWorker0, kWorker1};
  chief_ = kWorker0;
  supervisor().OnExit(kWorker0, {});
  EXPECT_FALSE(supervisor().succeeded());
  EXPECT_FALSE(supervisor().done());
  supervisor().OnExit(kWorker1, {});
  EXPECT_TRUE(supervisor().succeeded());
  EXPECT_TRUE(supervisor().done());
  EXPECT_THAT(backend_.Take(), IsEmpty());
}

class AnyFailureTest : public ExperimentTest, public testing::WithParamInterface<TaskId> {};

TEST_P(AnyFailureTest, EndsAllTheOthersAndIsTheFirstCause) {
  supervisor().OnExit(GetParam(), {.code = 3});
  EXPECT_THAT(Said(), HasSubstr(GetParam().ToString() + " exited with 3: ending the others ("));
  EXPECT_EQ(supervisor().deadline(), clock_.Now() + absl::Seconds(30));
  backend_.Take();
  std::vector<std::string> changes = {GetParam().ToString() + " FAILED: exited with 3"};
  for (const TaskId& task : {kEvaluator, kMaster, kWorker0, kPs}) {
    if (task == GetParam()) continue;
    supervisor().OnExit(task, {.code = 1});
    changes.push_back(task.ToString() + " KILLED: exited with 1");
  }
  EXPECT_TRUE(supervisor().done());
  EXPECT_FALSE(supervisor().succeeded());
  EXPECT_EQ(supervisor().first_failure()->task, GetParam());
  EXPECT_EQ(supervisor().exit_code(), 3);
  EXPECT_EQ(Changes(), changes);
}

INSTANTIATE_TEST_SUITE_P(Tasks, AnyFailureTest, testing::Values(kPs, kMaster, kWorker0, kEvaluator),
                         [](const auto& info) { return info.param.job; });

TEST_F(ExperimentTest, AFailureEndsServersLast) {
  supervisor().OnExit(kWorker0, {.signal = 11});
  EXPECT_THAT(backend_.Take(), ElementsAre("evaluator:0 gently", "master:0 gently"));
  supervisor().OnExit(kMaster, {.signal = 15});
  supervisor().OnExit(kEvaluator, {.signal = 15});
  EXPECT_THAT(backend_.Take(), ElementsAre("ps:0 gently"));
}

TEST_F(ExperimentTest, EachTaskHasAPolicyOfItsOwn) {
  policies_[kWorker0] = {.limit = 1};
  supervisor().OnExit(kWorker0, {.signal = 9});
  EXPECT_THAT(Relaunched(), ElementsAre("worker:0"));
  EXPECT_THAT(Changes(), ElementsAre("worker:0 STARTING: was killed by signal 9 (killed)",
                                     "worker:0 RUNNING: was killed by signal 9 (killed)"));
  EXPECT_EQ(supervisor().restarts(kWorker0), 1);
  EXPECT_THAT(backend_.Take(), IsEmpty());
  supervisor().OnExit(kWorker0, {.signal = 9});
  EXPECT_THAT(Relaunched(), IsEmpty());
  EXPECT_THAT(Said(), HasSubstr("worker:0 was killed by signal 9 (killed) after 1 of 1 restarts: ending the others"));
  EXPECT_THAT(Changes(), ElementsAre("worker:0 FAILED: was killed by signal 9 (killed)"));
}

// Others may have used the machine's memory the first time.
TEST_F(ExperimentTest, ATaskForWhichMemoryRanOutIsStartedOnceMoreNotForEver) {
  const ExitStatus status = {.signal = 9, .killed_from = KilledFrom::kOutOfMemory};
  policies_[kWorker0] = {.limit = 5};
  supervisor().OnExit(kWorker0, status);
  EXPECT_THAT(Relaunched(), ElementsAre("worker:0"));
  supervisor().OnExit(kWorker0, {.signal = 9, .killed_from = KilledFrom::kOutside});
  clock_.Advance(absl::Minutes(1));
  supervisor().OnTime();
  EXPECT_THAT(Relaunched(), ElementsAre("worker:0")) << "another cause";
  supervisor().OnExit(kWorker0, status);
  EXPECT_EQ(supervisor().first_failure()->task, kWorker0);
  EXPECT_THAT(Said(), HasSubstr("memory had run out on its machine or in its job or container after 2 of 5 restarts"));
}

// Its job is preempted, and begun anew later.
TEST_F(ExperimentTest, AMasterThatASignalToItsJobHasEndedWellHasNotFinished) {
  policies_[kMaster] = {.limit = 5};
  supervisor().OnExit(kMaster, {.at_signal = true});
  EXPECT_THAT(Relaunched(), ElementsAre("master:0"));
  EXPECT_FALSE(supervisor().succeeded());
  EXPECT_THAT(Said(), HasSubstr("master:0 exited with 0 when a signal came to all of its job: starting it again"));
}

TEST_F(ExperimentTest, WithoutAPolicyOfItsOwnNobodyIsStartedAgain) {
  policies_[kWorker0] = {.limit = 1};
  supervisor().OnExit(kPs, {.signal = 9});
  EXPECT_THAT(Relaunched(), IsEmpty());
  EXPECT_EQ(supervisor().first_failure()->task, kPs);
}

TEST_F(ExperimentTest, OnFailureStartsNobodyAgainWhoEndedWellOrByAMistakeOfItsOwn) {
  policies_[kWorker0] = policies_[kMaster] = {.limit = 5};
  supervisor().OnExit(kWorker0, {});
  supervisor().OnExit(kMaster, {.signal = 11});
  EXPECT_THAT(Relaunched(), IsEmpty());
  EXPECT_EQ(supervisor().first_failure()->task, kMaster);
  EXPECT_EQ(supervisor().exit_code(), 139);
}

TEST_F(ExperimentTest, TheFirstPauseIsThePolicys) {
  policies_[kWorker0] = {.limit = 5, .pause = absl::Seconds(2)};
  supervisor().OnExit(kWorker0, {.code = 138});
  supervisor().OnExit(kWorker0, {.code = 138});
  EXPECT_EQ(supervisor().deadline(), clock_.Now() + absl::Seconds(2));
}

TEST_F(ExperimentTest, PausesDoubleToTenSecondsAndALongerOneStays) {
  policies_ = {{kPs, {.limit = 3, .pause = absl::Seconds(8)}}, {kWorker0, {.limit = 3, .pause = absl::Minutes(1)}}};
  for (const TaskId& task : {kPs, kWorker0}) {
    supervisor().OnExit(task, {.signal = 9});
    std::vector<absl::Duration> pauses;
    for (int life = 0; life < 2; ++life) {
      supervisor().OnExit(task, {.signal = 9});
      pauses.push_back(supervisor().deadline() - clock_.Now());
      AdvanceToDeadline();
    }
    EXPECT_THAT(pauses, task == kPs ? ElementsAre(absl::Seconds(8), absl::Seconds(10))
                                    : ElementsAre(absl::Minutes(1), absl::Minutes(1)));
  }
}

TEST_F(ExperimentTest, AlwaysStartsAgainWhateverItEndedWithUntilTheRunIsOver) {
  tasks_ = {kMaster, kEvaluator};
  policies_[kEvaluator] = {.when = RestartWhen::kAlways, .limit = 10};
  supervisor().OnExit(kEvaluator, {});
  EXPECT_THAT(Relaunched(), ElementsAre("evaluator:0"));
  supervisor().OnExit(kEvaluator, {.code = 1});
  AdvanceToDeadline();
  EXPECT_THAT(Relaunched(), ElementsAre("evaluator:0"));
  supervisor().OnExit(kMaster, {});
  supervisor().OnExit(kEvaluator, {});
  EXPECT_THAT(Relaunched(), IsEmpty());
  EXPECT_TRUE(supervisor().done());
  EXPECT_TRUE(supervisor().succeeded());
}

TEST_F(ExperimentTest, WhoWaitsToBeStartedAgainWhenTheRunSucceedsIsNot) {
  tasks_ = {kMaster, kPs};
  policies_[kPs] = {.limit = 5};
  supervisor().OnExit(kPs, {.signal = 9});
  supervisor().OnExit(kPs, {.signal = 9});
  Relaunched();
  Changes();
  supervisor().OnExit(kMaster, {});
  EXPECT_TRUE(supervisor().done());
  EXPECT_EQ(supervisor().deadline(), absl::InfiniteFuture());
  EXPECT_THAT(Changes(),
              ElementsAre("master:0 FINISHED: exited with 0", "ps:0 FINISHED: was killed by signal 9 (killed)"));
  EXPECT_EQ(supervisor().exit_code(), 0);
}

TEST_F(ExperimentTest, AWorkerThatIsToBeStartedAgainIsNotDone) {
  policies_[kWorker0] = {.limit = 5};
  supervisor().OnExit(kWorker0, {.signal = 9});
  supervisor().OnExit(kWorker0, {.signal = 9});  // its second short life: a pause
  supervisor().OnExit(kMaster, {});
  EXPECT_FALSE(supervisor().succeeded());
  AdvanceToDeadline();
  supervisor().OnExit(kWorker0, {});
  EXPECT_TRUE(supervisor().succeeded());
}

TEST_F(ExperimentTest, AnInterruptKillsAllAndWhoWaitsToBeStartedAgain) {
  policies_[kWorker0] = {.limit = 5};
  supervisor().OnExit(kWorker0, {.signal = 9});
  supervisor().OnExit(kWorker0, {.signal = 9});
  Changes();
  supervisor().OnInterrupt();
  EXPECT_THAT(Changes(), ElementsAre("worker:0 KILLED: was killed by signal 9 (killed)"));
  EXPECT_THAT(backend_.Take(), ElementsAre("evaluator:0 gently", "master:0 gently"));
  supervisor().OnExit(kMaster, {});
  supervisor().OnExit(kEvaluator, {.signal = 15});
  supervisor().OnExit(kPs, {.signal = 15});
  EXPECT_THAT(Changes(),
              ElementsAre("master:0 KILLED: exited with 0", "evaluator:0 KILLED: was killed by signal 15 (terminated)",
                          "ps:0 KILLED: was killed by signal 15 (terminated)"));
  EXPECT_FALSE(supervisor().succeeded());
  EXPECT_FALSE(supervisor().first_failure().has_value());
}

TEST_F(ExperimentTest, LinesCallTasksAsTheyAreToldTo) {
  name_ = [](const TaskId& task) { return "4." + task.job; };
  supervisor().OnExit(kMaster, {.code = 1});
  EXPECT_EQ(Said(), "4.master exited with 1: ending the others (4.evaluator, 4.ps, 4.worker)\n");
}

}  // namespace
}  // namespace muster::task_supervisor_of_experiments_test
