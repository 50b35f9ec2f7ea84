#include "muster/launch/engines/slurm/slurm_jobs.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/scratch_folder.h"

namespace muster::slurm_jobs_test {
namespace {

using ::testing::HasSubstr, ::testing::IsEmpty;

// Slurm's commands are scripts that the test writes.
class SlurmJobsTest : public ::testing::Test {
 protected:
  void Command(const std::string& name, const std::string& script) {
    scratch_.Write(name, absl::StrCat("#!/bin/sh\n", script, "\n"));
    chmod((scratch_ / name).c_str(), 0700);
  }
  SlurmJobs Jobs(std::vector<std::string> more = {}) const {
    more.push_back(absl::StrCat("PATH=", scratch_.path(), ":/usr/bin:/bin"));
    return SlurmJobs(more);
  }

  // Writes a command that notes what it was told, and then does this.
  void Noting(const std::string& name, const std::string& script) {
    Command(name, absl::StrCat("cd ", scratch_.path(), "; echo $* >>told\n", script));
  }
  std::string Told() const { return scratch_.Read("told"); }

  const ScratchFolder scratch_;
};

TEST_F(SlurmJobsTest, SbatchSaysTheNumberOfTheJob) {
  Command("sbatch", "echo \"17;alpha\"");
  EXPECT_EQ(*Jobs().Submit("/job.sh", ""), "17");
  Command("sbatch", "echo hello");
  EXPECT_THAT(std::string(Jobs().Submit("/job.sh", "").status().message()),
              HasSubstr("without the number of a job: hello"));
}

TEST_F(SlurmJobsTest, WhatTheScriptSaysWinsOverVariablesOfSbatch) {
  scratch_.Write("job.sh", "#!/bin/bash\n#SBATCH --partition=gpu\n#SBATCH --time=5\n");
  Command("sbatch",
          "echo ${SBATCH_PARTITION:-0}${SBATCH_TIMELIMIT:-0}${SBATCH_QOS:-0}; [ $2 = --dependency=afterany:3:4 ]");
  const auto job =
      Jobs({"SBATCH_PARTITION=1", "SBATCH_TIMELIMIT=1", "SBATCH_QOS=1"}).Submit(scratch_ / "job.sh", "3:4");
  EXPECT_EQ(job.value_or(""), "001") << job.status();
}

TEST_F(SlurmJobsTest, ARefusalIsPassedOnWordForWord) {
  Command("sbatch", "echo 'sbatch: error: one' >&2; echo 'sbatch: error: two' >&2; exit 1");
  const absl::Status refused = Jobs().Submit("/job.sh", "").status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_EQ(refused.message(), "sbatch: error: one; sbatch: error: two");
}

TEST_F(SlurmJobsTest, WhatSlurmWouldDoWithAScriptIsAskedWithoutSubmittingIt) {
  Command("sbatch", "[ $1 = --test-only ] || exit 9; echo \"sbatch: Job 7 to start for $(tail -n 1 $2)\" >&2");
  EXPECT_EQ(*Jobs().WouldTake("#!/bin/bash\necho me\n"), "sbatch: Job 7 to start for echo me");
  Command("sbatch", "echo 'allocation failure: Invalid account' >&2; exit 1");
  EXPECT_EQ(Jobs().WouldTake("#!/bin/bash\n").status(),
            absl::InvalidArgumentError("allocation failure: Invalid account"));
}

TEST_F(SlurmJobsTest, WithoutSbatchItSaysWhereToSubmit) {
  const absl::Status none = SlurmJobs({absl::StrCat("PATH=", scratch_.path())}).Submit("/job.sh", "").status();
  EXPECT_TRUE(absl::IsNotFound(none));
  EXPECT_THAT(std::string(none.message()), HasSubstr("a login node say"));
}

TEST_F(SlurmJobsTest, AJobGetsNothingOfTheJobAroundIt) {
  Command("sbatch", "echo ${SLURM_JOB_ID:-0}${MUSTER_JOB_TOKEN:+1}${SBATCH_PARTITION:+2}");
  EXPECT_EQ(*Jobs({"SLURM_JOB_ID=9", "MUSTER_JOB_TOKEN=secret", "SBATCH_PARTITION=gpu"}).Submit("/job.sh", ""), "02");
}

TEST_F(SlurmJobsTest, NewsComesFromSqueueAndThenFromSacct) {
  Command("squeue", "printf '1|PENDING|n/a|Resources\\n2|RUNNING|h1|None\\n3|COMPLETING|h1|NodeDown\\n'");
  Command("sacct",
          "[ \"$*\" = '--allocations --noheader --parsable2 --format=JobIDRaw,State --jobs=4,5,6' ] || exit 9; "
          "printf '4|CANCELLED by 1000\\n5|TIMEOUT\\n'");
  const auto news = Jobs().Look({"1", "2", "3", "4", "5", "6"});
  ASSERT_TRUE(news.ok()) << news.status();
  EXPECT_EQ(news->at("1").phase, JobPhase::kWaits);
  EXPECT_EQ(news->at("1").text, "PENDING (Resources)");
  EXPECT_FALSE(news->at("1").stuck);
  EXPECT_TRUE(ParseQueue("1|PENDING|n/a|PartitionTimeLimit\n").at("1").stuck);
  EXPECT_EQ(news->at("2").phase, JobPhase::kRuns);
  EXPECT_EQ(news->at("2").text, "RUNNING");
  EXPECT_TRUE(news->at("3").ending);
  EXPECT_EQ(news->at("3").reason, "NodeDown");
  EXPECT_EQ(news->at("4").phase, JobPhase::kEnded);
  EXPECT_TRUE(news->at("4").cancelled);
  EXPECT_EQ(news->at("5").text, "TIMEOUT");
  EXPECT_TRUE(news->at("5").time_over);
  EXPECT_EQ(news->at("5").exit_code, 137);
  EXPECT_EQ(ParseQueue("1|NODE_FAIL|h1|None\n").at("1").exit_code, 137);
  EXPECT_EQ(ParseQueue("1|FAILED|h1|JobLaunchFailure\n").at("1").exit_code, std::nullopt);
  EXPECT_EQ(news->at("6").phase, JobPhase::kUnknown);
}

TEST_F(SlurmJobsTest, HowOftenAJobWasBegunAnewIsAskedOfSqueue) {
  Command("squeue",
          "[ \"$*\" = '--noheader --states=all --Format=RestartCnt --jobs=4' ] && echo '3                   '");
  EXPECT_EQ(Jobs().Restarts("4"), 3);
  Command("squeue", "echo 'Invalid job format specification: RestartCnt' >&2; exit 1");
  EXPECT_EQ(Jobs().Restarts("4"), std::nullopt);
}

TEST_F(SlurmJobsTest, AForgottenJobIsUnknownWhereThereIsNoAccounting) {
  Command("squeue", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1");
  Command("sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1");
  EXPECT_EQ(Jobs().Look({"4"})->at("4").phase, JobPhase::kUnknown);
  Command("squeue", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1");
  EXPECT_TRUE(absl::IsUnavailable(Jobs().Look({"4"}).status()));
}

TEST_F(SlurmJobsTest, AJobThatIsGoneHasEnded) {
  Command("scancel", "echo 'scancel: error: Kill job error on job id 4: Invalid job id specified' >&2; exit 1");
  EXPECT_TRUE(Jobs().End("4", JobEnd::kCancel).ok());
  Command("scancel", "[ \"$*\" = '--batch --signal=TERM 4' ] || exit 1");
  EXPECT_TRUE(Jobs().End("4", JobEnd::kAsk).ok());
  EXPECT_FALSE(Jobs().End("4", JobEnd::kCancel).ok()) << "it has the words of asking";
  Command("scancel", "[ \"$*\" = 4 ] || exit 1");
  EXPECT_TRUE(Jobs().End("4", JobEnd::kCancel).ok());
}

TEST_F(SlurmJobsTest, OwnJobIsThatOfTheEnvironment) {
  const auto own =
      Jobs({"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[1-2]", "SLURM_RESTART_COUNT=3", "SLURM_SUBMIT_HOST=login"}).Own();
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->id, "7");
  EXPECT_EQ(own->hosts, (std::vector<std::string>{"n1", "n2"}));
  EXPECT_EQ(own->restarts, 3);
  EXPECT_EQ(own->submitted_from, "login");
  EXPECT_TRUE(absl::IsNotFound(Jobs().Own().status()));
}

TEST_F(SlurmJobsTest, TheEndComesFromSqueueOrFromTheEnvironment) {
  const std::vector<std::string> job = {"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n1", "SLURM_JOB_END_TIME=1700000000"};
  EXPECT_EQ(Jobs(job).EndTime("7"), absl::FromUnixSeconds(1700000000)) << "where squeue doesn't say it";
  Command("squeue", "echo 2026-01-31T12:30:00");
  EXPECT_EQ(Jobs(job).EndTime("7"), absl::FromCivil(absl::CivilSecond(2026, 1, 31, 12, 30), absl::LocalTimeZone()));
  Command("squeue", "echo NONE");
  EXPECT_EQ(Jobs().EndTime("7"), std::nullopt);
}

TEST_F(SlurmJobsTest, LeftStepsAreKilledAgainUntilTheyHaveEnded) {
  Command("squeue", absl::StrCat("[ \"$*\" = '--steps --noheader --format=%i --jobs=7' ] || exit 9\n"
                                 "echo 7.batch; [ -e ",
                                 scratch_ / "gone", " ] || { echo 7.0; echo ' 7.1'; }"));
  Noting("scancel", "[ $(wc -l <told) -lt 2 ] || : >gone");  // the first one is lost
  EXPECT_TRUE(Jobs().EndLeftSteps("7"));
  EXPECT_EQ(Told(), "--signal=KILL 7.0 7.1\n--signal=KILL 7.0 7.1\n");
  EXPECT_TRUE(Jobs().EndLeftSteps("7")) << "the script alone is no step";
  Command("squeue", "exit 1");
  EXPECT_FALSE(Jobs().EndLeftSteps("7")) << "without an answer nothing is sure";
}

TEST_F(SlurmJobsTest, AJobIsBegunAnewUnderItsNumber) {
  Noting("scontrol", "");
  EXPECT_TRUE(Jobs().Requeue("7").ok());
  EXPECT_EQ(Told(), "requeue 7\n");
  Command("scontrol", "echo 'Requested operation is presently disabled for job 7' >&2; exit 1");
  const absl::Status refused = Jobs().Requeue("7");
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_EQ(refused.message(), "Requested operation is presently disabled for job 7");
}

TEST_F(SlurmJobsTest, AJobOfAChainIsFreed) {
  Noting("scontrol", "");
  EXPECT_TRUE(Jobs().Free("7").ok());
  EXPECT_EQ(Told(), "update JobId=7 Dependency=\n");
  Command("scontrol", "echo 'Access/permission denied' >&2; exit 1");
  EXPECT_THAT(std::string(Jobs().Free("7").message()), HasSubstr("denied"));
}

TEST_F(SlurmJobsTest, ARequeuedJobBeginsAtOnce) {
  Noting("scontrol", "exit 1");  // which costs two minutes, and nothing else
  Jobs().Hasten("7");
  EXPECT_EQ(Told(), "update JobId=7 StartTime=now\n");
}

TEST(ParseQueueTest, TheHostThatCantOpenTheOutputOfTheScriptIsNamed) {
  const JobNews news = ParseQueue("1|FAILED|h1|JobLaunchFailure\n").at("1");
  EXPECT_EQ(news.opened_nothing, "h1");
  EXPECT_EQ(news.text, "FAILED (JobLaunchFailure)");
  EXPECT_EQ(ParseQueue("1|FAILED|n/a|JobLaunchFailure\n").at("1").opened_nothing, "the job's first node");
  EXPECT_EQ(ParseQueue("1|FAILED|h1|NonZeroExitCode\n").at("1").opened_nothing, "");
  EXPECT_EQ(ParseQueue("1|PENDING|n/a|JobLaunchFailure\n").at("1").opened_nothing, "") << "it is tried again";
}

TEST(ParseQueueTest, LinesOfAnotherFormAreSkipped) {
  EXPECT_THAT(ParseQueue("squeue: warning\n\n"), IsEmpty());
  EXPECT_THAT(ParseAccounting("nothing\n"), IsEmpty());
}

}  // namespace
}  // namespace muster::slurm_jobs_test
