#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/launch/registry/registry.h"
#include "muster/launch/testing/registry_fixture.h"

namespace muster::reconcile_test {
namespace {

using ::testing::ElementsAre, ::testing::IsEmpty;

// Does something when asked for the time, which Reconcile does between checking the locks and writing.
class EventfulClock final : public Clock {
 public:
  absl::Time Now() const override {
    if (event) std::exchange(event, nullptr)();
    return absl::FromUnixSeconds(1000);
  }
  mutable std::function<void()> event;
};

class ReconcileTest : public RegistryFixture {
 protected:
  std::vector<ExperimentId> Reconcile(Registry& registry) { return registry.Reconcile().value(); }
  static void Expect(Registry& registry, const ExperimentId& id, RunState state, const std::string& reason) {
    const RunRecord run = Get(registry, id);
    EXPECT_EQ(run.state, state) << id.ToString();
    EXPECT_EQ(run.reason, reason) << id.ToString();
  }
};

TEST_F(ReconcileTest, WhoHasASupervisorGoesOn) {
  auto registry = Open();
  const ExperimentId id{Create(*registry, Single()), 0};
  const RunLock lock = TakeLock(id);
  for (const RunState state :
       {RunState::kCreated, RunState::kBuilding, RunState::kPending, RunState::kStarting, RunState::kRunning}) {
    if (state != RunState::kCreated) {
      ASSERT_TRUE(SetState(*registry, id, state).ok());
    }
    EXPECT_THAT(Reconcile(*registry), IsEmpty());
    Expect(*registry, id, state, "");
  }
}

TEST_F(ReconcileTest, WhoHasLostItsSupervisorHasFailedWithItsTasks) {
  auto registry = Open();
  const ExperimentId id{Create(*registry, Single()), 0};
  std::optional<RunLock> lock(TakeLock(id));
  ASSERT_TRUE(SetSupervisor(*registry, id, 4242).ok());
  Bring(*registry, id, RunState::kRunning);
  TaskRecord runs{.task = {kWorkerJob, 0}, .state = RunState::kRunning, .pid = 77, .restarts = 2};
  TaskRecord done{.task = {kWorkerJob, 1}, .state = RunState::kFinished, .exit = ExitStatus{}, .reason = "its own"};
  ASSERT_TRUE(SetTasks(*registry, id, {runs, done}).ok());
  ASSERT_EQ(registry->TakeGpus(id, 2, {0, 1})->size(), 2U);
  EXPECT_THAT(Reconcile(*registry), IsEmpty());
  lock.reset();
  clock_.Advance(absl::Seconds(60));

  EXPECT_THAT(Reconcile(*registry), ElementsAre(id));
  Expect(*registry, id, RunState::kFailed, "its supervisor was killed");
  const RunRecord run = Get(*registry, id);
  EXPECT_EQ(run.ended, clock_.Now());
  EXPECT_EQ(run.exit_code, 137);
  EXPECT_EQ(run.supervisor, 0);
  const auto tasks = registry->Tasks(id).value();
  EXPECT_EQ(tasks[0].state, RunState::kFailed);
  EXPECT_EQ(tasks[0].reason, "its supervisor was killed");
  EXPECT_EQ(tasks[0].pid, 0);
  EXPECT_EQ(tasks[0].since, clock_.Now());
  EXPECT_EQ(tasks[0].restarts, 2);
  EXPECT_EQ(tasks[1].state, RunState::kFinished);
  EXPECT_EQ(tasks[1].reason, "its own");
  EXPECT_THAT(Sql("SELECT * FROM gpu_leases"), IsEmpty());

  EXPECT_THAT(Reconcile(*registry), IsEmpty());  // found only once
  EXPECT_TRUE(registry->Restart(id, Single()).ok());
}

TEST_F(ReconcileTest, WhatHasEndedStaysAsItIs) {
  auto registry = Open();
  const ExperimentId finished{Create(*registry, Single()), 0}, killed{Create(*registry, Single()), 0};
  Bring(*registry, finished, RunState::kFinished);
  Bring(*registry, killed, RunState::kKilled);
  EXPECT_THAT(Reconcile(*registry), IsEmpty());
  Expect(*registry, finished, RunState::kFinished, "");
  Expect(*registry, killed, RunState::kKilled, "");
}

TEST_F(ReconcileTest, WhoNeverGotASupervisorIsLostToo) {
  auto registry = Open();
  const ExperimentId id{Create(*registry, Single()), 0};
  EXPECT_THAT(Reconcile(*registry), ElementsAre(id));
  Expect(*registry, id, RunState::kFailed,
         "`muster train` was killed, or its disk was full, before it had started the supervisor");
}

TEST_F(ReconcileTest, ARebootIsToldFromAKill) {
  auto registry = Open();
  const ExperimentId killed{Create(*registry, Single()), 0}, before{Create(*registry, Single()), 0},
      unknown{Create(*registry, Single()), 0};
  for (const ExperimentId& id : {killed, before, unknown}) Bring(*registry, id, RunState::kRunning);
  Sql("UPDATE runs SET machine = 'host another-boot 1' WHERE number = 2;"
      "UPDATE runs SET machine = '' WHERE number = 3");
  // Another host's kernel, to which this file system is exported, may have the lock that isn't seen here.
  EXPECT_THAT(Reconcile(*registry), ElementsAre(killed, unknown));
  scratch_.MakeOld("experiments/2/state.json", absl::Minutes(1));
  EXPECT_THAT(Reconcile(*registry), ElementsAre(before));
  Expect(*registry, killed, RunState::kFailed, "its supervisor was killed");
  Expect(*registry, before, RunState::kFailed, "the machine was restarted");
  Expect(*registry, unknown, RunState::kFailed, "its supervisor was killed");
}

// A run that a supervisor of this boot has updated doesn't belong to the last boot.
TEST_F(ReconcileTest, ASupervisorSaysWhichBootItBelongsTo) {
  auto registry = Open();
  const ExperimentId first{Create(*registry, Single()), 0}, second{Create(*registry, Single()), 0};
  Sql("UPDATE runs SET machine = 'host another-boot 1'");
  ASSERT_TRUE(SetSupervisor(*registry, first, 5).ok());
  ASSERT_TRUE(SetState(*registry, second, RunState::kPending).ok());
  EXPECT_THAT(Reconcile(*registry), ElementsAre(first, second));
  Expect(*registry, first, RunState::kFailed, "its supervisor was killed");
  Expect(*registry, second, RunState::kFailed, "its supervisor was killed");
}

TEST_F(ReconcileTest, RunsThatWaitAreTheirGridsBusiness) {
  auto registry = Open();
  const int64_t number = Create(*registry, Grid(6));
  std::optional<RunLock> grid(TakeLock({number, 0})), running(TakeLock({number, 3}));
  Bring(*registry, {number, 0}, RunState::kRunning);
  // Run 1 waits; the others have been started, but only 3 still has its supervisor.
  Bring(*registry, {number, 2}, RunState::kPending);
  Bring(*registry, {number, 3}, RunState::kRunning);
  Bring(*registry, {number, 4}, RunState::kStarting);
  Bring(*registry, {number, 5}, RunState::kRunning);
  ASSERT_TRUE(SetState(*registry, {number, 6}, RunState::kBuilding).ok());

  EXPECT_THAT(Reconcile(*registry), ElementsAre(ExperimentId{number, 2}, ExperimentId{number, 4},
                                                ExperimentId{number, 5}, ExperimentId{number, 6}));
  for (const int run : {2, 4, 5, 6}) Expect(*registry, {number, run}, RunState::kFailed, "its supervisor was killed");
  Expect(*registry, {number, 0}, RunState::kRunning, "");
  Expect(*registry, {number, 1}, RunState::kCreated, "");
  Expect(*registry, {number, 3}, RunState::kRunning, "");

  grid.reset();
  EXPECT_THAT(Reconcile(*registry), ElementsAre(ExperimentId{number, 0}, ExperimentId{number, 1}));
  Expect(*registry, {number, 0}, RunState::kFailed, "its supervisor was killed");
  Expect(*registry, {number, 1}, RunState::kFailed, "the supervisor of its grid was killed");
  Expect(*registry, {number, 3}, RunState::kRunning, "");  // its own supervisor lives
  running.reset();
  EXPECT_THAT(Reconcile(*registry), ElementsAre(ExperimentId{number, 3}));
}

// The supervisor may end between the check of the row and that of the lock: it writes, then releases.
TEST_F(ReconcileTest, WhoEndsProperlyMeanwhileIsNotLost) {
  EventfulClock eventful;
  auto registry = Registry::Open(home_, eventful).value();
  auto supervisor = Open();
  const ExperimentId id{Create(*supervisor, Single()), 0};
  Bring(*supervisor, id, RunState::kRunning);
  eventful.event = [&] { EXPECT_TRUE(SetState(*supervisor, id, RunState::kFinished).ok()); };
  EXPECT_THAT(Reconcile(*registry), IsEmpty());
  EXPECT_FALSE(eventful.event) << "Reconcile doesn't ask for the time where this test needs it";
  Expect(*supervisor, id, RunState::kFinished, "");
}

TEST_F(ReconcileTest, WhoIsStartedAgainMeanwhileIsNotLost) {
  EventfulClock eventful;
  auto registry = Registry::Open(home_, eventful).value();
  auto other = Open();
  const ExperimentId id{Create(*other, Single()), 0};
  Bring(*other, id, RunState::kRunning);
  std::optional<RunLock> lock;
  eventful.event = [&] {
    EXPECT_TRUE(SetState(*other, id, RunState::kFinished).ok());
    lock.emplace(TakeLock(id));
    EXPECT_TRUE(other->Restart(id, Single()).ok());
  };
  EXPECT_THAT(Reconcile(*registry), IsEmpty());
  EXPECT_TRUE(lock.has_value());
  Expect(*other, id, RunState::kCreated, "");
}

TEST_F(ReconcileTest, WhatIsForgottenMeanwhileIsPassedOver) {
  EventfulClock eventful;
  auto registry = Registry::Open(home_, eventful).value();
  auto other = Open();
  const ExperimentId gone{Create(*other, Single()), 0}, lost{Create(*other, Single()), 0};
  eventful.event = [&] {
    Bring(*other, gone, RunState::kFinished);
    EXPECT_TRUE(other->Forget(gone.number).ok());
  };
  EXPECT_THAT(Reconcile(*registry), ElementsAre(lost));
}

// Does what happens in reality: the supervisor is a process that inherited the lock, and is killed.
TEST_F(ReconcileTest, AKilledProcessLosesItsExperiment) {
  pid_t supervisor = -1;
  ExperimentId id;
  {
    std::optional<RunLock> lock;
    const auto number = Open()->Create(Single(), [&](const ExperimentId& made) {
      lock.emplace(TakeLock(made));
      return absl::OkStatus();
    });
    ASSERT_TRUE(number.ok()) << number.status();
    id.number = *number;
    supervisor = fork();
    if (supervisor == 0) {
      for (;;) pause();
    }
  }
  auto registry = Open();
  ASSERT_TRUE(SetSupervisor(*registry, id, supervisor).ok());
  Bring(*registry, id, RunState::kRunning);
  EXPECT_THAT(Reconcile(*registry), IsEmpty());
  ASSERT_EQ(kill(supervisor, SIGKILL), 0);
  ASSERT_EQ(waitpid(supervisor, nullptr, 0), supervisor);
  EXPECT_THAT(Reconcile(*registry), ElementsAre(id));
  Expect(*registry, id, RunState::kFailed, "its supervisor was killed");
}

TEST_F(ReconcileTest, WhoMayOnlyReadIsToldWhichAreLost) {
  ASSERT_EQ(chmod(home_.path().c_str(), 0755), 0);
  const ExperimentId id{Create(*Open(), Single()), 0};
  for (const char* end : {"", "-wal", "-shm"}) ASSERT_EQ(chmod((home_.database() + end).c_str(), 0444), 0);
  for (const std::string& folder : {home_.experiments(), home_.folder(id)}) ASSERT_EQ(chmod(folder.c_str(), 0755), 0);
  ASSERT_EQ(chmod(home_.path().c_str(), 0555), 0);
  const pid_t reader = fork();
  if (reader == 0) {
    constexpr uid_t kNobody = 65534;
    if (getuid() == 0 && setuid(kNobody) != 0) _exit(1);
    auto registry = Registry::Open(home_, clock_);
    if (!registry.ok()) _exit(2);
    const auto lost = (*registry)->Reconcile();
    if (!lost.ok() || *lost != std::vector<ExperimentId>{id}) _exit(3);
    const auto run = (*registry)->Run(id);
    if (!run.ok() || run->state != RunState::kCreated) _exit(4);
    if (!absl::IsPermissionDenied((*registry)->SetRun(*run))) _exit(5);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(reader, &status, 0), reader);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "the step that failed";
  ASSERT_EQ(chmod(home_.path().c_str(), 0755), 0);
}

// The name of a lost run's processes stays until they are known to be gone. A run that ended has none.
TEST_F(ReconcileTest, ALostRunsProcessesAreRemembered) {
  auto registry = Open();
  Create(*registry, Single());
  Create(*registry, Single());
  for (const int64_t number : {1, 2}) {
    auto run = Get(*registry, {number, 0});
    run.run_id = "run" + std::to_string(number);
    ASSERT_TRUE(registry->SetRun(run).ok());
    Bring(*registry, {number, 0}, number == 2 ? RunState::kFinished : RunState::kRunning);
  }
  EXPECT_EQ(Get(*registry, {2, 0}).run_id, "");
  EXPECT_TRUE(registry->LeftRuns()->empty()) << "it hasn't been lost";
  ASSERT_EQ(registry->Reconcile()->size(), 1U);
  const auto left = registry->LeftRuns().value();
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].id, (ExperimentId{1, 0}));
  EXPECT_EQ(left[0].run_id, "run1");
  EXPECT_TRUE(WasLost(Get(*registry, {1, 0})));
  EXPECT_FALSE(WasLost(Get(*registry, {2, 0})));
  ASSERT_TRUE(registry->ForgetProcesses({1, 0}).ok());
  EXPECT_TRUE(registry->LeftRuns()->empty());
}

}  // namespace
}  // namespace muster::reconcile_test
