// JobWatch and runs for whose jobs there is no room, or only for a part of them.
#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "muster/launch/jobs/job_wait.h"
#include "muster/launch/jobs/job_watch.h"
#include "muster/launch/jobs/submit_job.h"
#include "muster/launch/registry/files/machine_id.h"
#include "muster/launch/testing/job_watch_fixture.h"

namespace muster::job_without_room_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::MatchesRegex, ::testing::Pair,
    ::testing::StartsWith;

// Jobs that have a part of their hosts, and runs that have no job.
class JobWithoutRoomTest : public JobWatchFixture {
 protected:
  static constexpr char kLate[] = "not all of its pods started, and were given back";
  // Its hosts don't come.
  ExperimentId Late(JobOfRun job = {.engine = "slurm", .id = "17"}) {
    const ExperimentId id = InJob(job);
    scratch_.Write("experiments/1/job.sh", "script\n");
    engine_.news["17"] = {.phase = JobPhase::kWaits, .text = "1 of 2", .late = kLate};
    engine_.id_in = "18";
    return id;
  }
  JobOfRun Job(const ExperimentId& id) { return ReadJobFile(home_.job(id))->value(); }
  // Waits for longer than any pause.
  void AwaitTry() { clock_.Advance(absl::Minutes(10)); }
};

TEST_F(JobWithoutRoomTest, AJobWithAPartOfItsHostsIsGivenBackAndSubmittedAgain) {
  const ExperimentId id = Late();
  Bring(*registry_, id, RunState::kPending);
  EXPECT_THAT(Look(), ElementsAre(StartsWith("experiment 1: job 17 of Slurm was given back; again in ")));
  EXPECT_THAT(engine_.ended, ElementsAre(Pair("17", JobEnd::kGiveBack)));
  EXPECT_EQ(Get(*registry_, id).state, RunState::kCreated) << "its supervisor begins once more";
  EXPECT_THAT(watch_.Find(id)->text,
              MatchesRegex("no job of Slurm now: not all .* given back; tried once; again in [0-9]+ s"));
  EXPECT_EQ(watch_.Find(id)->news.phase, JobPhase::kWaits);
  // Nobody asks about a job that the run doesn't have, whatever is left of it.
  const int looks = engine_.looks;
  engine_.news["17"] = {.phase = JobPhase::kEnded, .text = "gone", .cancelled = true};
  clock_.Advance(absl::Seconds(22));
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_EQ(engine_.looks, looks);
  EXPECT_THAT(engine_.submitted, IsEmpty()) << "not before 30 s less a quarter";
  clock_.Advance(absl::Seconds(16));
  EXPECT_THAT(Look(), ElementsAre("experiment 1 is job 101 of Slurm now"));
  EXPECT_THAT(engine_.ended, ElementsAre(Pair("17", JobEnd::kGiveBack), Pair("17", JobEnd::kGiveBack)));
  EXPECT_EQ(scratch_.Read("experiments/1/job.sh"), "script\nanew\n");
  EXPECT_EQ(Job(id).id, "101");
  EXPECT_EQ(Job(id).again_at, 0);
  EXPECT_EQ(Job(id).tries, 1);
  EXPECT_EQ(Job(id).requeues, 0);
  engine_.news["101"] = {.phase = JobPhase::kRuns};
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_EQ(watch_.Find(id)->text, "job 101 of Slurm");
}

TEST_F(JobWithoutRoomTest, WhereJobsCantWaitForOthersTheRunsOfAGridDoInTheirOrder) {
  NewExperiment grid = Grid(5);
  grid.file_text = "project: toaster\ntrain: {framework: any, concurrency: 2, run: x}\n";
  const int64_t number = Create(*registry_, grid);
  engine_.terms.chains = false;
  engine_.id_in = "known before";
  PlayedJobEngine engine(engine_);
  const JobsOrder order = {.home = home_,
                           .muster = "/opt/muster",
                           .file = ParseExperimentFile(grid.file_text, "muster.yml").value(),
                           .experiment = grid};
  EXPECT_EQ(SubmitGrid(engine, *registry_, order, {number, 0}, [](int) {}).value(), 5);
  EXPECT_THAT(engine_.after, ElementsAre("", ""));
  EXPECT_TRUE(WaitsForSubmission(home_, Get(*registry_, {number, 0})));
  EXPECT_FALSE(WaitsForSubmission(home_, Get(*registry_, {number, 1})));
  EXPECT_TRUE(WaitsForSubmission(home_, Get(*registry_, {number, 3})));
  engine_.news["101"] = engine_.news["102"] = {.phase = JobPhase::kRuns};
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_EQ(watch_.Find({number, 3})->text,
            "no job of Slurm now: 2 other runs of its grid come first; once one of them has ended");
  EXPECT_EQ(watch_.Find({number, 3})->news.phase, JobPhase::kWaits);
  // A run that has no room keeps its turn.
  JobOfRun second = Job({number, 2});
  second.again_at = 4e9;
  Put({number, 2}, second);
  EXPECT_THAT(Look(), IsEmpty());
  Bring(*registry_, {number, 1}, RunState::kFinished);
  EXPECT_THAT(Look(), ElementsAre(StartsWith("experiment 1.3 is job 103 of Slurm now")));
  EXPECT_EQ(Job({number, 3}).turn, 0);
  engine_.news["103"] = {.phase = JobPhase::kRuns};
  EXPECT_THAT(Look(), IsEmpty());
  Bring(*registry_, {number, 2}, RunState::kFailed);
  Bring(*registry_, {number, 3}, RunState::kFinished);
  JobOfRun fourth = Job({number, 4});
  fourth.killed = true;
  Put({number, 4}, fourth);
  EXPECT_THAT(Look(), ElementsAre("experiment 1.4: it was killed", "experiment 1.5 is job 104 of Slurm now"));
  EXPECT_THAT(engine_.ended, IsEmpty()) << "there was nothing";
}

TEST_F(JobWithoutRoomTest, ARunWhoseTurnHasComeDoesNotSayThatOthersComeFirst) {
  JobOfRun job = {.engine = "slurm", .id = "17", .host = MachineId::This().host};
  NoteTurn(job, 1);
  const ExperimentId id = InJob(job);
  scratch_.Write("experiments/1/job.sh", "script\n");
  engine_.refusal = absl::UnavailableError("nothing within 2m");
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_THAT(watch_.Find(id)->text,
              MatchesRegex("no job of Slurm now: its turn has come, and it couldn't be submitted "
                           "yet; again in [0-9]+ s: nothing within 2m"));
  engine_.refusal = absl::OkStatus();
  AwaitTry();
  EXPECT_THAT(Look(), ElementsAre(StartsWith("experiment 1 is job ")));
  EXPECT_EQ(Job(id).no_room, "");
}

TEST_F(JobWithoutRoomTest, AJobWhoseTasksHaveBegunIsKept) {
  const ExperimentId id = Late();
  Bring(*registry_, id, RunState::kRunning);
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_THAT(engine_.ended, IsEmpty());
  EXPECT_EQ(Job(id).again_at, 0);
}

TEST_F(JobWithoutRoomTest, WhatWaitingNeverChangesIsntTriedAgain) {
  const ExperimentId id = Late();
  engine_.news["17"].stuck = true;
  Look();
  EXPECT_EQ(Get(*registry_, id).state, RunState::kFailed);
  EXPECT_EQ(Get(*registry_, id).reason, absl::StrCat("its job 17 of Slurm has ended: ", kLate));
  EXPECT_THAT(engine_.ended, ElementsAre(Pair("17", JobEnd::kGiveBack)));
}

TEST_F(JobWithoutRoomTest, OnlySoOftenAsTheSettingSays) {
  engine_.terms.start_tries = 2;
  const ExperimentId id = Late();
  Look();
  EXPECT_EQ(Get(*registry_, id).state, RunState::kCreated);
  AwaitTry();
  engine_.refusal = absl::ResourceExhaustedError("the quota is full");
  EXPECT_THAT(Look(), ElementsAre("experiment 1: the quota is full; tried 2 times"));
  EXPECT_EQ(Get(*registry_, id).state, RunState::kFailed);
  EXPECT_EQ(Get(*registry_, id).reason, "the quota is full; tried 2 times");
}

TEST_F(JobWithoutRoomTest, WithoutALimitItGoesOnAndARefusalForAnotherReasonEndsIt) {
  const ExperimentId id = Late();
  Look();
  engine_.refusal = absl::ResourceExhaustedError("the quota is full");
  for (int tries = 2; tries <= 20; ++tries) {
    AwaitTry();
    EXPECT_THAT(Look(), IsEmpty());
    EXPECT_EQ(Job(id).tries, tries);
    EXPECT_THAT(watch_.Find(id)->text,
                HasSubstr(absl::StrCat("the quota is full; tried ", tries, " times; again in ")));
  }
  AwaitTry();
  engine_.refusal = absl::InvalidArgumentError("no such image");
  Look();
  EXPECT_EQ(Get(*registry_, id).state, RunState::kFailed);
  EXPECT_EQ(Get(*registry_, id).reason, "no such image");
}

TEST_F(JobWithoutRoomTest, AnEngineThatDoesntAnswerCostsNoTry) {
  const ExperimentId id = Late();
  Look();
  AwaitTry();
  engine_.refusal = absl::UnavailableError("no answer");
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_EQ(Job(id).tries, 1);
  EXPECT_EQ(Job(id).id, "18") << "it may have made it";
  EXPECT_GT(Job(id).again_at, 0);
  AwaitTry();
  engine_.refusal = absl::OkStatus();
  Look();
  EXPECT_EQ(engine_.ended.back(), std::pair(std::string("18"), JobEnd::kGiveBack)) << "before the next one is made";
  EXPECT_EQ(Job(id).again_at, 0);
}

TEST_F(JobWithoutRoomTest, AKillEndsTheWaitingAtOnce) {
  const ExperimentId id = Late();
  Look();
  JobOfRun job = Job(id);
  job.killed = true;
  ASSERT_TRUE(WriteJobFile(home_.job(id), job).ok());
  EXPECT_THAT(Look(), ElementsAre("experiment 1: it was killed"));
  EXPECT_EQ(Get(*registry_, id).state, RunState::kKilled);
  EXPECT_THAT(engine_.submitted, IsEmpty());
}

TEST_F(JobWithoutRoomTest, OnAnotherHostItIsntSubmitted) {
  const ExperimentId id = Late();
  Look();
  JobOfRun job = Job(id);
  job.host = "elsewhere";
  ASSERT_TRUE(WriteJobFile(home_.job(id), job).ok());
  AwaitTry();
  Look();
  EXPECT_THAT(engine_.submitted, IsEmpty());
  EXPECT_THAT(watch_.Find(id)->text, HasSubstr("again now"));
}

}  // namespace
}  // namespace muster::job_without_room_test
