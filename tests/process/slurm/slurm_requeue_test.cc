// What ends an experiment's job, and whether the experiment goes on in another one: with nodes that have no scontrol,
// as at sites where the next command of the submitting host has to do it, and where Slurm begins the job anew by
// itself.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/process/slurm/slurm_experiments.h"

namespace muster::slurm_requeue_test {
namespace {

using ::testing::AllOf, ::testing::Contains, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Not;

// How a job learns that its end is near.
struct Notice {
  const char* name;
  const char* option;                // of the job
  std::vector<const char*> signals;  // that the script gets, in turn
};

class SlurmRequeue : public SlurmExperiment, public ::testing::WithParamInterface<Notice> {};

TEST_P(SlurmRequeue, WithoutScontrolItGoesOnInAnotherJobAfterAnyNotice) {
  HaveOnly({"sbatch", "squeue", "srun", "scancel"});
  const Notice& notice = GetParam();
  const auto train = Train(2, absl::StrCat("nodes: 1, nodelist: h1, max_requeues: 1", notice.option));
  const std::string job = JobOf("1");
  for (const char* signal : notice.signals) slurm().Ask({"scancel", "--batch", absl::StrCat("--signal=", signal), job});
  EXPECT_EQ(train->Wait(), 0) << train->err << Read("experiments/1/job.out");
  EXPECT_THAT(train->err, HasSubstr(absl::StrCat("the time of job ", job, " was over; it goes on in job ")));
  EXPECT_THAT(train->out, HasSubstr("start 2\n"));
}

INSTANTIATE_TEST_SUITE_P(Notices, SlurmRequeue,
                         ::testing::Values(Notice{"term", "", {"TERM"}},
                                           Notice{"continue_and_term", "", {"CONT", "TERM"}},
                                           Notice{"users_own", ", signal: \"B:USR2@60\"", {"USR2"}}),
                         [](const auto& info) { return std::string(info.param.name); });

class SlurmEnding : public SlurmExperiment {};

TEST_F(SlurmEnding, TheRemainingTimeIsANoticeWithoutScontrolToo) {
  HaveOnly({"sbatch", "squeue", "srun", "scancel"});
  const auto train = Train(2, "nodes: 1, nodelist: h1, max_requeues: 1, signal: null, time: 1");
  const std::string job = JobOf("1");
  const std::string soon = absl::FormatTime("%Y-%m-%dT%H:%M:%S", absl::Now() + absl::Seconds(6), absl::LocalTimeZone());
  slurm().Ask({"scontrol", "update", "JobId=" + job, "EndTime=" + soon});
  EXPECT_EQ(train->Wait(), 0) << train->err << Read("experiments/1/job.out");
  EXPECT_THAT(train->out, HasSubstr("start 2\n"));
}

// Both can't be told apart on such a node; the submitting host can.
TEST_F(SlurmEnding, ACancelledJobIsNotMadeAgainWhereTheNodeCanAskNobody) {
  HaveOnly({"sbatch", "srun", "scontrol"});
  const std::string few = std::exchange(path_, "");
  const auto train = Train(2, absl::StrCat("nodes: 1, nodelist: h1, max_requeues: 1, export: \"ALL,PATH=", few, "\""));
  const std::string job = JobOf("1");
  slurm().Cancel(job);
  EXPECT_EQ(train->Wait(), 130) << train->err << Read("experiments/1/job.out");
  EXPECT_EQ(StateOf("1"), "KILLED");
  EXPECT_THAT(Read("experiments/1/job"), HasSubstr(absl::StrCat("\"", job, "\"")));
  EXPECT_THAT(slurm().Ask({"squeue", "--noheader", "--states=PENDING,RUNNING"}), IsEmpty());
  EXPECT_THAT(train->out + train->err, AllOf(Not(HasSubstr("start 2\n")), Not(HasSubstr("it goes on in job "))));
}

TEST_F(SlurmEnding, NoMoreJobsAreMadeThanWereAskedFor) {
  HaveOnly({"sbatch", "squeue", "srun", "scancel"});
  const auto train = Train(3, "nodes: 1, nodelist: h1, max_requeues: 1");
  slurm().Ask({"scancel", "--batch", "--signal=USR1", JobOf("1")});
  train->WaitForOut("start 2\n");
  slurm().Ask({"scancel", "--batch", "--signal=USR1", JobOf("1")});
  EXPECT_NE(train->Wait(), 0);
  EXPECT_THAT(Json({"status", "1"})["reason"].get<std::string>(),
              AllOf(HasSubstr("the time of its job "), HasSubstr("muster train --experiment 1 goes on with it")));
}

// Slurm sends SIGCONT before the SIGTERM of a preemption, and to jobs that it has suspended.
TEST_F(SlurmEnding, ContinueAloneIsNoNotice) {
  const ScriptGate gate(Aside("gate"));
  job_ = "nodes: 1, nodelist: h1, max_requeues: 1";
  WriteExperiment(absl::StrCat("run: 'echo begins; read line <", gate.path(), "; echo through'"));
  const auto train = StartMuster({"train"});
  train->WaitForOut("begins\n");
  const std::string job = JobOf("1");
  slurm().Ask({"scancel", "--batch", "--signal=CONT", job});
  slurm().Ask({"scancel", "--signal=CONT", job});
  AwaitStatus("1", absl::StrCat("s ago, job ", job, " of Slurm"));
  gate.LetThrough();
  EXPECT_EQ(train->Wait(), 0) << train->err << Read("experiments/1/job.out");
  EXPECT_THAT(LinesOf(train->out, "1.master"), Contains("through"));
  EXPECT_EQ(StateOf("1"), "FINISHED");
  EXPECT_THAT(train->out + train->err, AllOf(Not(HasSubstr("the time of")), Not(HasSubstr("is begun anew"))));
  EXPECT_FALSE(std::filesystem::exists(home() + "/experiments/1/job_notice"));
}

// Slurm's own words for it look like those for a job that somebody has cancelled.
TEST_F(SlurmEnding, APreemptedJobGoesOnOnceItsNodeIsFree) {
  const auto train = Train(2, "nodes: 1, nodelist: h1, requeue: true, partition: all");
  const std::string job = JobOf("1");
  slurm().Ask({"sbatch", "--partition=urgent", "--nodelist=h1", "--exclusive", "--output=/dev/null", "--wrap=sleep 1"});
  AwaitStatus("1", "PENDING (BeginTime)");
  EXPECT_THAT(Read("experiments/1/logs/experiment/000001.log"), HasSubstr("is begun anew"));
  slurm().Ask({"scontrol", "update", "JobId=" + job, "StartTime=now"});
  EXPECT_EQ(train->Wait(), 0) << train->err << Read("experiments/1/job.out");
  EXPECT_THAT(train->out, HasSubstr("start 2\n"));
}

// First Slurm sends SIGTERM to all tasks, and nothing to the job's script.
TEST_F(SlurmEnding, AMasterThatEndsWellInTheGraceOfAPreemptionHasNotFinished) {
  const std::string may_end = Aside("may_end");
  job_ = "nodes: 1, nodelist: h1, requeue: true, partition: patient";
  WriteExperiment(absl::StrCat("run: 'trap \"echo saved; exit 0\" TERM; echo begins; while [ ! -e ", may_end,
                               " ]; do sleep 0.1 || :; done; echo through'"));
  const auto train = StartMuster({"train"});
  train->WaitForOut("begins\n");
  const std::string job = JobOf("1");
  slurm().Ask({"sbatch", "--partition=urgent", "--nodelist=h1", "--exclusive", "--output=/dev/null", "--wrap=sleep 1"});
  train->WaitForOut("saved\n");
  AwaitStatus("1", "PENDING (BeginTime)");
  std::ofstream(may_end).flush();
  slurm().Ask({"scontrol", "update", "JobId=" + job, "StartTime=now"});
  EXPECT_EQ(train->Wait(), 0) << train->err << Read("experiments/1/job.out");
  EXPECT_THAT(LinesOf(train->out, "1.master"), Contains("through"));
  EXPECT_EQ(StateOf("1"), "FINISHED");
  EXPECT_THAT(Read("experiments/1/logs/experiment/000001.log"),
              HasSubstr("exited with 0 when a signal came to all of its job: starting it again"));
}

}  // namespace
}  // namespace muster::slurm_requeue_test
