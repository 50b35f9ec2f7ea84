#include "muster/launch/jobs/job_watch.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "muster/launch/engines/rendezvous_file.h"
#include "muster/launch/jobs/submit_job.h"
#include "muster/launch/registry/files/machine_id.h"
#include "muster/launch/testing/job_watch_fixture.h"

namespace muster::job_watch_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::MatchesRegex, ::testing::StartsWith;

class JobWatchTest : public JobWatchFixture {};

TEST_F(JobWatchTest, WithoutJobsNobodyIsAsked) {
  Create(*registry_, Single());
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_EQ(engine_.looks, 0);
}

TEST_F(JobWatchTest, SaysWhyAJobWaits) {
  const ExperimentId id = InJob({.engine = "slurm", .id = "17"});
  engine_.news["17"] = {.phase = JobPhase::kWaits, .text = "PENDING (Resources)"};
  EXPECT_THAT(Look(), IsEmpty());
  ASSERT_NE(watch_.Find(id), nullptr);
  EXPECT_EQ(watch_.Find(id)->text, "job 17 of Slurm: PENDING (Resources)");
  EXPECT_THAT(engine_.hastened, IsEmpty());
  EXPECT_THAT(registry_->Reconcile().value(), IsEmpty()) << "nobody holds its lock, which says nothing";
}

TEST_F(JobWatchTest, SaysWhatToDoWhenWaitingAloneChangesNothing) {
  const ExperimentId id = InJob({.engine = "slurm", .id = "17"});
  engine_.news["17"] = {.phase = JobPhase::kWaits, .text = "PENDING (PartitionConfig)", .stuck = true};
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_EQ(watch_.Find(id)->text,
            "job 17 of Slurm: PENDING (PartitionConfig). Waiting alone doesn't change that: muster kill 1 ends it; "
            "then ask for something else, or for less (its options are in job.sh), and let muster train --dry-run ask "
            "Slurm beforehand");
}

TEST_F(JobWatchTest, SaysWhatOfItsReasonLasts) {
  const ExperimentId id = InJob({.engine = "slurm", .id = "17"});
  engine_.news["17"] = {
      .phase = JobPhase::kWaits, .text = "1 of 2; h1: no image", .stuck = true, .lasting = "no image"};
  Look();
  EXPECT_THAT(watch_.Find(id)->text, StartsWith("job 17 of Slurm: 1 of 2; h1: no image. Waiting alone"));
  EXPECT_EQ(watch_.Find(id)->lasting_text(), "no image");
}

TEST_F(JobWatchTest, SaysWhatARunningJobHasLost) {
  const ExperimentId id = InJob({.engine = "slurm", .id = "17"});
  Bring(*registry_, id, RunState::kRunning);
  engine_.news["17"] = {.phase = JobPhase::kRuns, .text = "h1: OOMKilled", .reason = "h1: OOMKilled"};
  EXPECT_THAT(Look(), IsEmpty());
  ASSERT_NE(watch_.Find(id), nullptr);
  EXPECT_EQ(watch_.Find(id)->text, "job 17 of Slurm: h1: OOMKilled");
}

TEST_F(JobWatchTest, ARunWhoseTasksHaveBegunDoesntWaitForHostsThatItCanDoWithout) {
  const ExperimentId id = InJob({.engine = "slurm", .id = "17"});
  Bring(*registry_, id, RunState::kPending);
  engine_.news["17"] = {.phase = JobPhase::kWaits, .text = "2 of 3 pods run; h1: no CPU", .in_part = true};
  Look();
  ASSERT_NE(watch_.Find(id), nullptr);
  EXPECT_EQ(watch_.Find(id)->news.phase, JobPhase::kWaits);
  Bring(*registry_, id, RunState::kRunning);
  engine_.news["17"].late = "too late for a job whose tasks wait";
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_THAT(engine_.ended, IsEmpty());
  EXPECT_EQ(watch_.Find(id)->news.phase, JobPhase::kRuns);
  EXPECT_EQ(watch_.Find(id)->text, "job 17 of Slurm: 2 of 3 pods run; h1: no CPU; the tasks run without that");
  engine_.news["17"].in_part = false;
  Look();
  EXPECT_EQ(watch_.Find(id)->news.phase, JobPhase::kWaits) << "its supervisor is gone";
}

TEST_F(JobWatchTest, ARequeuedJobIsHastened) {
  InJob({.engine = "slurm", .id = "17", .wants_another = true});
  engine_.news["17"] = {.phase = JobPhase::kWaits, .text = "PENDING (BeginTime)"};
  Look();
  EXPECT_THAT(engine_.hastened, ElementsAre("17"));
}

TEST_F(JobWatchTest, ARunWhoseJobHasEndedHasFailedForThatReason) {
  const ExperimentId id = InJob({.engine = "slurm", .id = "17"});
  scratch_.Write("experiments/1/job.out", "first\nslurmstepd: error: out of memory\n");
  engine_.news["17"] = {.phase = JobPhase::kEnded, .text = "OUT_OF_MEMORY"};
  EXPECT_THAT(Look(),
              ElementsAre("experiment 1: its job 17 of Slurm has ended: OUT_OF_MEMORY; its last line: slurmstepd: "
                          "error: out of memory"));
  EXPECT_EQ(Get(*registry_, id).state, RunState::kFailed);
  EXPECT_EQ(watch_.Find(id), nullptr);
}

TEST_F(JobWatchTest, WhyAScriptCouldStartNoSupervisorIsTheRunsReasonAndInItsLog) {
  const ExperimentId id = InJob({.engine = "slurm", .id = "17"});
  scratch_.Write("experiments/1/job_over", "h1 has no /tmp/muster: put muster into a folder\n");
  engine_.news["17"] = {.phase = JobPhase::kEnded, .text = "FAILED (NonZeroExitCode)"};
  EXPECT_THAT(Look(), ElementsAre("experiment 1: h1 has no /tmp/muster: put muster into a folder"));
  EXPECT_EQ(Get(*registry_, id).state, RunState::kFailed);
  EXPECT_EQ(Get(*registry_, id).exit_code, 2);
  EXPECT_THAT(scratch_.Read("experiments/1/logs/experiment/000001.log"),
              MatchesRegex(".* m h1 has no /tmp/muster: put muster into a folder\n.* s FAILED\n"));
}

TEST_F(JobWatchTest, AHostThatSeesNothingOfTheHomeIsNamed) {
  const ExperimentId id = InJob({.engine = "slurm", .id = "17"});
  scratch_.Write("experiments/1/job.sh", absl::StrCat("#SBATCH --output=", home_.job_output(id), "\n"));
  scratch_.Write("experiments/1/job_over", "");  // as a supervisor leaves it
  engine_.news["17"] = {.phase = JobPhase::kEnded, .text = "FAILED (JobLaunchFailure)", .opened_nothing = "h1"};
  Look();
  EXPECT_EQ(Get(*registry_, id).reason,
            absl::StrCat("h1 doesn't see MUSTER_HOME (", home_.path(), "): put it into a folder that all nodes see"));
  EXPECT_EQ(Get(*registry_, id).exit_code, 2);
}

TEST_F(JobWatchTest, AHostThatHasOpenedTheOutputOrHadToOpenAnotherFileIsntCalledBlind) {
  for (const bool has_output : {false, true}) {
    const ExperimentId id = InJob({.engine = "slurm", .id = "17"});
    const std::string folder = absl::StrCat("experiments/", id.number);
    const std::string output = has_output ? home_.job_output(id) : "/users/own";
    scratch_.Write(folder + "/job.sh", absl::StrCat("#SBATCH --output=", output, "\n"));
    if (has_output) scratch_.Write(folder + "/job.out", "");
    engine_.news["17"] = {.phase = JobPhase::kEnded, .text = "FAILED (JobLaunchFailure)", .opened_nothing = "h1"};
    Look();
    EXPECT_EQ(Get(*registry_, id).reason, "its job 17 of Slurm has ended: FAILED (JobLaunchFailure)");
    EXPECT_EQ(Get(*registry_, id).exit_code, 1);
  }
}

TEST_F(JobWatchTest, ARunWithoutARecordHasTheExitCodeOfItsJobAsFarAsItIsKnown) {
  struct Case {
    JobNews news;
    int exit_code;
  };
  const Case cases[] = {
      {{.phase = JobPhase::kEnded, .text = "FAILED (JobLaunchFailure)"}, 1},
      {{.phase = JobPhase::kEnded, .text = "no muster", .exit_code = 127}, 127},
      {{.phase = JobPhase::kEnded, .text = "SUCCEEDED", .exit_code = 0}, 1},
      {{.phase = JobPhase::kEnded, .text = "OOMKilled", .exit_code = 137}, 137},
      {{.phase = JobPhase::kEnded, .text = "Evicted", .taken_away = true}, 137},
      {{.phase = JobPhase::kWaits, .text = "no image", .stuck = true, .late = "its pods didn't start"}, 1},
  };
  for (const Case& one : cases) {
    const ExperimentId id = InJob({.engine = "slurm", .id = "17"});
    engine_.news["17"] = one.news;
    Look();
    EXPECT_EQ(Get(*registry_, id).state, RunState::kFailed) << one.news.text;
    EXPECT_EQ(Get(*registry_, id).exit_code, one.exit_code) << one.news.text;
  }
}

TEST_F(JobWatchTest, ARunWhoseJobWasTakenAwayReadsHowItGoesOn) {
  const ExperimentId id = InJob({.engine = "slurm", .id = "17"});
  engine_.news["17"] = {.phase = JobPhase::kEnded, .text = "Evicted", .taken_away = true};
  Look();
  EXPECT_EQ(Get(*registry_, id).state, RunState::kFailed);
  EXPECT_EQ(Get(*registry_, id).reason,
            "its job 17 of Slurm has ended: Evicted; muster train --experiment 1 goes on with it, from its last "
            "checkpoint");
}

TEST_F(JobWatchTest, AnotherFileThanTheUsualOneIsPartOfHowARunGoesOn) {
  NewExperiment experiment = Single();
  experiment.file_name = "tl.yml";
  const ExperimentId id = {.number = Create(*registry_, experiment)};
  Put(id, {.engine = "slurm", .id = "17"});
  engine_.news["17"] = {.phase = JobPhase::kEnded, .text = "Evicted", .taken_away = true};
  Look();
  EXPECT_THAT(Get(*registry_, id).reason, HasSubstr("; muster train -f tl.yml --experiment 1 goes on with it"));
}

TEST_F(JobWatchTest, ACancelledJobIsAKill) {
  const ExperimentId cancelled = InJob({.engine = "slurm", .id = "17"});
  const ExperimentId killed = InJob({.engine = "slurm", .id = "18", .killed = true});
  engine_.news["17"] = {.phase = JobPhase::kEnded, .text = "CANCELLED", .cancelled = true};
  Look();
  EXPECT_EQ(Get(*registry_, cancelled).state, RunState::kKilled);
  EXPECT_EQ(Get(*registry_, cancelled).reason, "its job 17 of Slurm was cancelled");
  EXPECT_EQ(Get(*registry_, killed).reason, "it was killed");
}

TEST_F(JobWatchTest, OfAForgottenJobTheCauseIsUnknownOnceItsSupervisorIsSilent) {
  const ExperimentId id = InJob({.engine = "slurm", .id = "17"});
  Bring(*registry_, id, RunState::kRunning);
  EXPECT_THAT(Look(), IsEmpty()) << "its supervisor has just been heard";
  scratch_.MakeOld("experiments/1/state.json", absl::Seconds(20));
  Look();
  EXPECT_EQ(Get(*registry_, id).reason, "its job 17 of Slurm has ended, cause unknown to Slurm");
}

// As where a node doesn't see the folder, and there is no accounting that would tell.
TEST_F(JobWatchTest, OfAForgottenJobWithoutOutputItIsSaidWhereToLook) {
  for (const bool has_output : {false, true}) {
    const ExperimentId id = InJob({.engine = "slurm", .id = "17"});
    const std::string folder = absl::StrCat("experiments/", id.number);
    scratch_.Write(folder + "/job.sh", absl::StrCat("#SBATCH --output=", home_.job_output(id), "\n"));
    if (has_output) scratch_.Write(folder + "/job.out", "");
    Look();
    EXPECT_EQ(Get(*registry_, id).reason,
              absl::StrCat("its job 17 of Slurm has ended, cause unknown to Slurm",
                           has_output ? ""
                                      : absl::StrCat("; it has made no ", home_.job_output(id),
                                                     ": look whether its nodes see MUSTER_HOME (", home_.path(), ")")));
  }
}

TEST_F(JobWatchTest, ARunWhoseJobRunsIsntJudgedBySilence) {
  const ExperimentId id = InJob({.engine = "slurm", .id = "17"});
  Bring(*registry_, id, RunState::kRunning);
  engine_.news["17"] = {.phase = JobPhase::kRuns, .text = "RUNNING"};
  scratch_.MakeOld("experiments/1/state.json", absl::Hours(1));
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_THAT(registry_->Reconcile().value(), IsEmpty());
  EXPECT_EQ(Get(*registry_, id).state, RunState::kRunning);
  EXPECT_EQ(watch_.Find(id)->text, "job 17 of Slurm");
}

// It has written its end after the run was looked at and before Slurm has answered.
TEST_F(JobWatchTest, TheLastRecordOfTheSupervisorCountsMoreThanSlurmsWord) {
  for (const bool wants_another : {false, true}) {
    const ExperimentId id = InJob({.engine = "slurm", .id = "17", .wants_another = wants_another});
    Bring(*registry_, id, RunState::kRunning);
    engine_.news["17"] = {.phase = JobPhase::kEnded, .text = "FAILED"};
    engine_.on_look = [&] { EXPECT_TRUE(SetState(*Open(), id, RunState::kFinished).ok()); };
    EXPECT_THAT(Look(), IsEmpty());
    engine_.on_look = {};
    EXPECT_EQ(Get(*registry_, id).state, RunState::kFinished);
    EXPECT_EQ(Get(*registry_, id).reason, "");
    EXPECT_THAT(engine_.submitted, IsEmpty());
    EXPECT_EQ(watch_.Find(id), nullptr);
  }
}

TEST_F(JobWatchTest, ARunThatWantsAnotherJobIsSubmittedAgain) {
  const ExperimentId id = InJob({.engine = "slurm", .id = "17", .requeues = 1, .wants_another = true});
  engine_.news["17"] = {.phase = JobPhase::kEnded, .text = "COMPLETED"};
  EXPECT_THAT(Look(), ElementsAre("experiment 1: the time of job 17 was over; it goes on in job 101 of Slurm"));
  EXPECT_THAT(engine_.submitted, ElementsAre(home_.job_script(id)));
  EXPECT_EQ(*ReadJobFile(home_.job(id)),
            (JobOfRun{.engine = "slurm", .id = "101", .host = MachineId::This().host, .requeues = 2}));
  EXPECT_EQ(Get(*registry_, id).state, RunState::kCreated);
}

// Its supervisor ends there by itself, but a job may be anything.
TEST_F(JobWatchTest, NotMoreOftenThanItsSettingSays) {
  const ExperimentId id = InJob({.engine = "slurm", .id = "17", .requeues = 2, .wants_another = true});
  engine_.news["17"] = {.phase = JobPhase::kEnded, .text = "COMPLETED"};
  Look();
  EXPECT_THAT(engine_.submitted, IsEmpty());
  EXPECT_EQ(Get(*registry_, id).state, RunState::kFailed);
}

TEST_F(JobWatchTest, ARunOfAGridIsSubmittedAgainBehindItsChain) {
  const int64_t number = Create(*registry_, Grid(3));
  Put({number, 1}, {.engine = "slurm", .id = "11", .chain = 0, .wants_another = true});
  Put({number, 2}, {.engine = "slurm", .id = "12", .chain = 1});
  Put({number, 3}, {.engine = "slurm", .id = "13", .chain = 0});
  engine_.news["11"] = {.phase = JobPhase::kEnded, .text = "COMPLETED"};
  engine_.news["12"] = engine_.news["13"] = {.phase = JobPhase::kRuns, .text = "RUNNING"};
  Look();
  EXPECT_THAT(engine_.after, ElementsAre("13"));
}

TEST_F(JobWatchTest, AJobOfAnotherHostIsntJudgedBecauseItIsUnknownHere) {
  const ExperimentId id = InJob({.engine = "slurm", .id = "17", .host = "elsewhere"});
  Look();
  EXPECT_EQ(Get(*registry_, id).state, RunState::kCreated);
  EXPECT_EQ(watch_.Find(id)->text, "job 17 of Slurm, unknown here: elsewhere submitted it");
}

TEST_F(JobWatchTest, WhileSomebodyHoldsTheLockNothingFollows) {
  const ExperimentId id = InJob({.engine = "slurm", .id = "17", .wants_another = true});
  engine_.news["17"] = {.phase = JobPhase::kEnded, .text = "COMPLETED"};
  const RunLock lock = TakeLock(id);
  Look();
  EXPECT_THAT(engine_.submitted, IsEmpty());
}

TEST_F(JobWatchTest, AForgottenJobThatMayHaveBeenCancelledIsNotMadeAgain) {
  const JobOfRun doubtful = {.engine = "slurm", .id = "17", .wants_another = true, .doubtful = true};
  const ExperimentId id = InJob(doubtful);
  EXPECT_THAT(Look(), ElementsAre("experiment 1: its job 17 of Slurm has ended, cause unknown to Slurm; muster train "
                                  "--experiment 1 goes on with it, from its last checkpoint"));
  EXPECT_THAT(engine_.submitted, IsEmpty());
  EXPECT_EQ(Get(*registry_, id).state, RunState::kFailed);
  const ExperimentId known = InJob(doubtful);
  engine_.news["17"] = {.phase = JobPhase::kEnded, .text = "COMPLETED"};
  Look();
  EXPECT_EQ(ReadJobFile(home_.job(known))->value().id, "101");
  EXPECT_FALSE(ReadJobFile(home_.job(known))->value().doubtful);
}

TEST_F(JobWatchTest, NotIfSomebodyHasEndedIt) {
  const ExperimentId id = InJob({.engine = "slurm", .id = "17", .wants_another = true, .killed = true});
  engine_.news["17"] = {.phase = JobPhase::kEnded, .text = "COMPLETED"};
  Look();
  EXPECT_THAT(engine_.submitted, IsEmpty());
  EXPECT_EQ(Get(*registry_, id).state, RunState::kKilled);
}

TEST_F(JobWatchTest, NothingFollowsFromSilence) {
  const ExperimentId id = InJob({.engine = "slurm", .id = "17"});
  engine_.silence = absl::UnavailableError("no controller");
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_EQ(watch_.Find(id)->text, "job 17 of Slurm, which doesn't answer (no controller)");
  EXPECT_EQ(Get(*registry_, id).state, RunState::kCreated);
}

TEST_F(JobWatchTest, AGridEndsWithItsRuns) {
  const int64_t number = Create(*registry_, Grid(2));
  Put({number, 0}, {.engine = "slurm"});
  for (const int run : {1, 2}) Put({number, run}, {.engine = "slurm", .id = std::to_string(run)});
  engine_.news["1"] = {.phase = JobPhase::kEnded, .text = "NODE_FAIL"};
  engine_.news["2"] = {.phase = JobPhase::kRuns, .text = "RUNNING"};
  Look();
  EXPECT_EQ(Get(*registry_, {number, 0}).state, RunState::kCreated);
  Bring(*registry_, {number, 2}, RunState::kFinished);
  Look();
  EXPECT_EQ(Get(*registry_, {number, 0}).state, RunState::kFailed);
  EXPECT_EQ(Get(*registry_, {number, 0}).reason, "1 of 2 runs failed");
}

TEST_F(JobWatchTest, AKilledGridHasTheExitCodeOfAKilledRun) {
  const int64_t number = Create(*registry_, Grid(2));
  Put({number, 0}, {.engine = "slurm"});
  for (const int run : {1, 2}) {
    Put({number, run}, {.engine = "slurm", .id = std::to_string(run)});
    engine_.news[std::to_string(run)] = {.phase = JobPhase::kEnded, .text = "CANCELLED", .cancelled = true};
  }
  Look();
  Look();
  EXPECT_EQ(Get(*registry_, {number, 0}).state, RunState::kKilled);
  EXPECT_EQ(Get(*registry_, {number, 0}).exit_code, Get(*registry_, {number, 1}).exit_code);
}

TEST_F(JobWatchTest, AChainThatIsOverFreesTheLastRunOfAnother) {
  NewExperiment grid = Grid(5);
  grid.file_text = "project: toaster\ntrain: {framework: any, concurrency: 2, run: x}\n";
  const int64_t number = Create(*registry_, grid);
  for (int run = 1; run <= 5; ++run)
    Put({number, run}, {.engine = "slurm", .id = std::to_string(10 + run), .chain = (run - 1) % 2});
  PlayedJobEngine engine(engine_);
  // Run 4 follows run 2 in its chain and begins by itself.
  Bring(*registry_, {number, 2}, RunState::kFinished);
  FreeNextOfGrid(engine, home_, *registry_, {number, 2});
  EXPECT_THAT(engine_.freed, IsEmpty());
  Bring(*registry_, {number, 4}, RunState::kFinished);
  FreeNextOfGrid(engine, home_, *registry_, {number, 4});
  EXPECT_THAT(engine_.freed, ElementsAre("15"));
}

TEST_F(JobWatchTest, StartOverLetsARunBeginOnceMore) {
  const ExperimentId id = InJob({.engine = "slurm", .id = "17"});
  Bring(*registry_, id, RunState::kRunning);
  ASSERT_TRUE(SetTasks(*registry_, id, {{.task = {"worker", 0}, .state = RunState::kRunning, .pid = 5}}).ok());
  ASSERT_TRUE(registry_->StartOver(id, "its time was over").ok());
  EXPECT_EQ(Get(*registry_, id).state, RunState::kCreated);
  EXPECT_EQ(Get(*registry_, id).attempt, 1);
  EXPECT_EQ(registry_->Tasks(id)->front().state, RunState::kCreated);
  EXPECT_EQ(registry_->Tasks(id)->front().pid, 0);
  Bring(*registry_, id, RunState::kFinished);
  ASSERT_TRUE(registry_->StartOver(id, "once more").ok());
  EXPECT_THAT(registry_->OpenRuns().value(), ElementsAre(id));
  EXPECT_THAT(PosixFileSystem().ListDirectory(home_.open_folder()).value(), ElementsAre("1"));
}

TEST_F(JobWatchTest, TheSecretOfARunWhoseSupervisorWasKilledGoes) {
  const ExperimentId id = InJob({.engine = "slurm", .id = "17"});
  Bring(*registry_, id, RunState::kRunning);
  RunRecord run = Get(*registry_, id);
  run.run_id = "abcd";
  ASSERT_TRUE(registry_->SetRun(run).ok());
  const std::string secret = RendezvousFileIn(home_.folder(id), "abcd");
  ASSERT_TRUE(WriteFileAtomically(PosixFileSystem(), secret, {}).ok());
  engine_.news["17"] = {.phase = JobPhase::kRuns};
  Look();
  EXPECT_TRUE(PosixFileSystem().Exists(secret));
  engine_.news["17"] = {.phase = JobPhase::kEnded, .text = "its driver has ended"};
  Look();
  EXPECT_FALSE(PosixFileSystem().Exists(secret));
}

TEST_F(JobWatchTest, AFileThatMusterHasntWrittenIsAnError) {
  EXPECT_EQ(*ReadJobFile(home_.job({.number = 1})), std::nullopt);
  scratch_.Write("experiments/1/job", "{\"engine\": 3}");
  EXPECT_TRUE(absl::IsDataLoss(ReadJobFile(home_.job({.number = 1})).status()));
}

}  // namespace
}  // namespace muster::job_watch_test
