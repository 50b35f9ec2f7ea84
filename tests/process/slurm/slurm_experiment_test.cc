// `muster train --on slurm` with a real Slurm: what only jobs have. What experiments do on every engine is in
// tests/process/experiment, which runs there, too.
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/agent/rendezvous.h"
#include "tests/process/slurm/slurm_experiments.h"

namespace muster::slurm_experiment_test {
namespace {

using ::testing::AllOf, ::testing::AnyOf, ::testing::Contains, ::testing::ContainsRegex, ::testing::HasSubstr,
    ::testing::Not, ::testing::SizeIs;

// In seconds: what tasks may take to end (stop_grace), and what is added to the notice of a job's end.
constexpr int kMostToEnd = 30, kReserve = 30;

TEST_F(SlurmExperiment, TheScriptStaysReadableAndHasOnlyWhatWasStated) {
  job_ = "nodes: 2, time: 10, comment: 'two words', chdir: null, exclusive: true, extra: [--nice=1]";
  WriteExperiment("resources: {cpus: 1.5, mem: 100MB}\nrun: echo $SLURM_JOB_NAME $KEPT");
  environment_ = {"KEPT=kept"};
  const std::string out = Out({"train"});
  EXPECT_THAT(LinesOf(out, "1.master"), testing::Contains("toy.1 kept"));
  const std::string script = Read("experiments/1/job.sh");
  for (const char* line : {"--nodes=2", "--time=10", "--cpus-per-task=2", "--mem=164M", "--exclusive", "--nice=1",
                           "\"--comment=two words\"", "--signal=B:USR1@60", "--no-requeue"})
    EXPECT_THAT(script, HasSubstr(absl::StrCat("#SBATCH ", line, "\n")));
  EXPECT_THAT(script, AllOf(Not(HasSubstr("--chdir")), Not(HasSubstr("--gres")), Not(HasSubstr("TOKEN"))));
  EXPECT_THAT(Read("experiments/1/job.out"), Not(HasSubstr("muster")));  // Slurm may have something to say
}

// A file that says nothing of where it runs is sent to Slurm by the flags alone.
TEST_F(SlurmExperiment, TheFlagsOfTrainDoWithoutAWordInTheFile) {
  Write("muster.yml", "project: toy\ntrain:\n  run: echo on $(hostname) of job ${SLURM_JOB_ID:+of Slurm}\n");
  const std::string out = Out({"train", "--on", "slurm", "--slurm", "nodes=1", "--slurm", "nodelist=h2"});
  EXPECT_THAT(LinesOf(out, "1.master"), Contains("on h2 of job of Slurm"));
  EXPECT_THAT(Read("experiments/1/job.sh"), HasSubstr("#SBATCH --nodelist=h2\n"));
}

// What Slurm gives to the job is the pool of its tasks.
TEST_F(SlurmExperiment, GpusOfANodeAreSharedOutUnderTheNamesThatSlurmGivesThem) {
  job_ = "nodes: 1, nodelist: h4, cpus-per-task: 2";
  Write("muster.yml",
        "project: toy\ntrain:\n  framework: tensorflow\n  resources: {gpus: 1}\n  tensorflow:\n    distributed: "
        "{worker: 2}\n"
        "  run: 'echo sees $CUDA_VISIBLE_DEVICES'\n");
  const std::string out = Out({"train"});
  std::vector<std::string> seen;
  for (const char* task : {"1.master", "1.worker.1"})
    for (const std::string& line : LinesOf(out, task))
      if (absl::StrContains(line, "sees")) seen.push_back(line);
  EXPECT_THAT(seen, testing::UnorderedElementsAre("sees 0", "sees 1")) << out;
  EXPECT_THAT(Read("experiments/1/job.sh"), HasSubstr("#SBATCH --gres=gpu:2\n"));
  // Another job has the first one.
  const std::string other =
      slurm().Ask({"sbatch", "--parsable", "--output=/dev/null", "--nodelist=h4", "--gres=gpu:1", "--wrap=sleep 600"});
  WriteExperiment("resources: {gpus: 1}\nrun: 'echo sees $CUDA_VISIBLE_DEVICES'");
  EXPECT_THAT(LinesOf(Out({"train"}), "2.master"), Contains("sees 1"));
  slurm().Cancel(std::string(absl::StripAsciiWhitespace(other)));
  // One more than any node has is refused by Slurm, in its words.
  WriteExperiment("resources: {gpus: 3}\nrun: 'true'");
  EXPECT_THAT(Muster({"train"}).err, HasSubstr("Requested node configuration is not available"));
}

TEST_F(SlurmExperiment, WhatSbatchRefusesIsSaidInItsWords) {
  job_ = "partition: nope";
  WriteExperiment("run: 'true'");
  const Said said = Muster({"train"});
  EXPECT_EQ(said.exit_code, 2);
  EXPECT_THAT(said.err,
              HasSubstr("muster train: sbatch: error: invalid partition specified: nope; sbatch: error: Batch "
                        "job submission failed: Invalid partition name specified; nothing was submitted"));
  EXPECT_THAT(Muster({"ls"}).out, Not(HasSubstr("toy")));
  const Said dry = Muster({"train", "--dry-run"});
  EXPECT_EQ(dry.exit_code, 2);
  EXPECT_THAT(dry.out, HasSubstr("#SBATCH --partition=nope"));
  EXPECT_THAT(dry.err, HasSubstr("muster train: it can't run as it is: Slurm says: sbatch: error: invalid partition "
                                 "specified: nope"));
  job_ = "partition: null";
  WriteExperiment("run: 'true'");
  EXPECT_THAT(Out({"train", "--dry-run"}), ContainsRegex("Slurm says: sbatch: Job [0-9]+ to start at "));
}

TEST_F(SlurmExperiment, ANodeThatDoesntSeeMusterIsNamed) {
  const ScratchFolder own;  // the nodes have a /tmp of their own
  std::filesystem::copy_file(BinFolder() + "/muster", own / "muster");
  job_ = "nodes: 1, nodelist: h1";
  WriteExperiment("run: 'true'");
  Process train(slurm().On("h0", {own / "muster", "train"}), Options());
  EXPECT_EQ(train.Wait(), 2) << train.err;
  const std::string why = absl::StrCat("h1 has no ", own / "muster", ": put muster into a folder that all nodes see");
  EXPECT_THAT(train.err, HasSubstr(why));
  EXPECT_THAT(Muster({"logs", "1"}).out, HasSubstr(why));
}

TEST_F(SlurmExperiment, StatusSaysWhyItWaitsAndAWaitingJobIsCancelled) {
  const std::string all = slurm().Allocate();
  WriteExperiment("run: 'true'");
  const auto train = StartMuster({"train"});
  train->WaitForErr("experiment 1 waits: job ", 0);
  AwaitStatus("1", "of Slurm: PENDING (Resources)");
  const Said killed = Muster({"kill", "1"});
  EXPECT_EQ(killed.exit_code, 0) << killed.err;
  EXPECT_THAT(killed.err, AllOf(HasSubstr("cancelling job "), Not(HasSubstr("the tasks"))));
  EXPECT_EQ(train->Wait(), 130) << train->err;
  EXPECT_THAT(train->err, Not(HasSubstr("output:")));
  EXPECT_EQ(StateOf("1"), "KILLED");
  slurm().Cancel(all);
}

TEST_F(SlurmExperiment, ScancelByHandIsAKill) {
  const auto train = Train(2);
  slurm().Cancel(JobOf("1"));
  EXPECT_EQ(train->Wait(), 130) << train->err;
  EXPECT_EQ(StateOf("1"), "KILLED");
  EXPECT_THAT(Muster({"status", "1"}).out, HasSubstr("was cancelled"));
  EXPECT_THAT(Muster({"logs", "1"}).out,
              AllOf(ContainsRegex("its job [0-9]+ of Slurm was cancelled"), Not(HasSubstr("interrupted"))));
}

// Slurm signals all processes of the job, and the script passes the signal on: it is one, and the tasks have their
// time.
TEST_F(SlurmExperiment, ScancelGivesTheTasksTheirTime) {
  job_ = "nodes: 2, nodelist: \"h1,h2\"";
  WriteCluster("{worker: 2}",
               "trap \"echo saves; sleep 0.5; echo saved; exit 0\" TERM; echo begins; while :; do sleep 0.1; done");
  const auto train = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1"}) AwaitLines(*train, task, 2);
  AwaitStatus("1", "RUNNING");
  slurm().Cancel(JobOf("1"));
  EXPECT_EQ(train->Wait(), 130) << train->err;
  for (const char* task : {"1.master", "1.worker.1"}) EXPECT_THAT(LinesOf(train->out, task), Contains("saved")) << task;
  EXPECT_THAT(train->out + train->err, Not(HasSubstr("again: killing")));
}

// Slurm signals the ps, too, which the chief needs for it.
TEST_F(SlurmExperiment, ScancelLeavesALastCheckpoint) {
  job_ = "nodes: 2, nodelist: \"h1,h2\"";
  Write("muster.yml",
        absl::StrCat("project: toy\ntrain:\n  framework: muster\n  muster: {distributed: {ps: 1, worker: 2}}\n"
                     "  run: ",
                     BinFolder(), "/digits --csv=", SourceFolder(),
                     "/examples/data/digits.csv "
                     "--steps=100000000 --model_dir=$OUTPUT_DIR\n"));
  const auto train = StartMuster({"train"});
  for (const char* text : {"worker:0 joined", "global_step/sec"}) train->WaitForOut(text);
  slurm().Cancel(JobOf("1"));
  EXPECT_EQ(train->Wait(), 130) << train->err;
  std::string saved;
  for (const std::string& line : LinesOf(train->out, "1.master"))
    if (absl::StrContains(line, "Saving checkpoints for")) saved = line;
  EXPECT_THAT(saved, ContainsRegex("Saving checkpoints for [1-9][0-9]+ into"));
  EXPECT_THAT(LinesOf(train->out, "1.ps.1"), Contains(HasSubstr("training has ended: every task is done")))
      << train->out;
  const auto again = StartMuster({"train", "--experiment", "1"});
  again->WaitForOut("global_step/sec");
  EXPECT_EQ(Muster({"kill", "1"}).exit_code, 0);
  EXPECT_EQ(again->Wait(), 130) << again->err;
  EXPECT_THAT(again->out, ContainsRegex("Restoring parameters from [^ ]*/model.ckpt-[1-9]"));
}

std::string EnvironmentOf(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/environ"), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// All users of a node see words, and Slurm keeps the script and what srun hands on.
TEST_F(SlurmExperiment, ItsSecretsAreInFilesOfTheUserAlone) {
  const ScriptGate gate(Aside("gate"));
  job_ = "nodes: 2, nodelist: \"h1,h2\"";
  WriteCluster("{worker: 2}", absl::StrCat("echo token $MUSTER_JOB_TOKEN; read line <", gate.path()));
  const auto train = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1"}) AwaitLines(*train, task, 2);
  std::vector<std::string> secrets;
  for (const std::string& line : LinesOf(train->out, "1.master"))
    if (absl::StartsWith(line, "token ")) secrets.push_back(line.substr(6));
  for (const auto& entry : std::filesystem::directory_iterator(home() + "/experiments/1")) {
    const std::string name = entry.path().filename().string();
    const bool meets = absl::StartsWith(name, ".muster-") && entry.is_regular_file();
    if (meets) secrets.push_back(absl::BytesToHexString(ReadRendezvous(entry.path().string()).value().secret));
    if (!meets && name != "handover") continue;
    EXPECT_EQ(entry.status().permissions(), std::filesystem::perms(0600)) << name;
  }
  EXPECT_THAT(secrets, testing::ElementsAre(SizeIs(testing::Ge(32U)), SizeIs(2 * kRendezvousSecretBytes)));
  std::string seen = Read("experiments/1/job.sh");
  for (const char* host : {"h1", "h2"}) {
    for (const SimulatedHosts::Running& running : hosts().ProcessesOf(host)) {
      absl::StrAppend(&seen, running.words, "\n");
      const bool is_srun = running.program() == "srun";
      const bool is_agent = !is_srun && absl::StrContains(running.words, " agent --serve ");
      if (is_srun || is_agent) absl::StrAppend(&seen, EnvironmentOf(running.pid), "\n");
    }
  }
  EXPECT_THAT(seen, AllOf(HasSubstr("srun --nodes="), HasSubstr(" agent --serve "), HasSubstr("SLURM_CONF=")));
  for (const std::string& secret : secrets) EXPECT_THAT(seen, Not(HasSubstr(secret)));
  gate.LetThrough(2);
  EXPECT_EQ(train->Wait(), 0) << train->err << Read("experiments/1/job.out");
}

TEST_F(SlurmExperiment, KillAsksTheSupervisorFirst) {
  const auto train = Train(2);
  const Said killed = Muster({"kill", "1"});
  EXPECT_EQ(killed.exit_code, 0) << killed.err;
  EXPECT_THAT(killed.err, Not(HasSubstr("doesn't answer")));
  EXPECT_EQ(train->Wait(), 130) << train->err;
  EXPECT_EQ(Json({"status", "1"})["reason"], "it was killed");
}

TEST_F(SlurmExperiment, ASupervisorThatIsStoppedIsEndedBySlurm) {
  const auto train = Train(2);
  for (const SimulatedHosts::Running& running : hosts().ProcessesOf("h1"))
    if (absl::StrContains(running.words, " supervise 1")) kill(running.pid, SIGSTOP);
  const Said killed = Muster({"kill", "1", "--now"});
  EXPECT_EQ(killed.exit_code, 0) << killed.err;
  EXPECT_THAT(killed.err, HasSubstr("cancelling job "));
  EXPECT_EQ(train->Wait(), 130) << train->err;
}

// What is said of its job is RUNNING before it.
void AwaitState(const std::function<std::string()>& state, const std::string& wanted) {
  const absl::Time give_up = absl::Now() + absl::Minutes(1);
  std::string now = state();
  while (now != wanted && absl::Now() < give_up) now = state();
  ASSERT_EQ(now, wanted);
}

// Each task starts once, and none of the thousands of lines that it writes meanwhile is lost or there twice.
TEST_F(SlurmExperiment, TheTasksOfAKilledSupervisorGoOn) {
  job_ = "nodes: 2, nodelist: \"h1,h2\"";
  WriteCluster(
      "{worker: 2, ps: 1}",
      "echo start >>$OUTPUT_DIR/starts; i=0; until [ -e $OUTPUT_DIR/stop ]; do i=$((i+1)); echo line $i; done");
  const auto train = StartMuster({"train"});
  train->WaitForOut("line 1\n");
  AwaitHandover();
  for (int kills = 1; kills <= 3; ++kills) {
    KillOn("h1", " supervise 1");
    AwaitTakeOvers(kills);
  }
  std::ofstream(home() + "/experiments/1/output/stop") << "";
  EXPECT_EQ(train->Wait(), 0) << train->err << Read("experiments/1/job.out");
  EXPECT_EQ(Read("experiments/1/output/starts"), "start\nstart\nstart\n");
  const std::string shown = Out({"logs", "1"});
  for (const char* task : {"1.master", "1.worker.1", "1.ps.1"}) {
    SCOPED_TRACE(task);
    int64_t first = 0, count = 0;
    for (const std::string& line : LinesOf(shown, task)) {
      int64_t number = 0;
      if (!absl::SimpleAtoi(absl::StripPrefix(line, "line "), &number)) continue;
      if (count == 0) first = number;
      ASSERT_EQ(number, first + count++);
    }
    EXPECT_GT(count, 1000);
  }
}

TEST_F(SlurmExperiment, ATaskThatIsKilledWhileThereIsNoSupervisorIsStartedAgainByTheNext) {
  job_ = "nodes: 2, nodelist: \"h1,h2\"";
  WriteCluster("{worker: 2}",
               "echo start >>$OUTPUT_DIR/starts; echo begins; until [ -e $OUTPUT_DIR/stop ]; do sleep 0.1; done");
  const auto train = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1"}) AwaitLines(*train, task, 2);
  AwaitHandover();
  KillOn("h1", " supervise 1");
  KillOn("h2", "until [");
  AwaitTakeOvers(1);
  AwaitLines(*train, "1.worker.1", 4);
  std::ofstream(home() + "/experiments/1/output/stop") << "";
  EXPECT_EQ(train->Wait(), 0) << train->err << Read("experiments/1/job.out");
  EXPECT_EQ(Read("experiments/1/output/starts"), "start\nstart\nstart\n");
  EXPECT_EQ(Json({"status", "1"})["tasks"][1]["restarts"], 1);
}

// What a supervisor that was killed has left counts for the run in this job alone.
TEST_F(SlurmExperiment, AKilledSupervisorBeginsAgainBeforeItsTasksRun) {
  const auto train = Train(2);
  AwaitHandover();
  std::filesystem::remove(home() + "/experiments/1/handover");
  KillOn("h1", " supervise 1");
  EXPECT_EQ(train->Wait(), 0) << train->err << train->out << Read("experiments/1/job.out");
  EXPECT_THAT(train->out, HasSubstr("start 2\n"));
  EXPECT_THAT(Read("experiments/1/job.out"), HasSubstr("the supervisor of experiment 1 was killed (signal 9)"));
  EXPECT_THAT(Out({"logs", "1"}), HasSubstr("its supervisor was killed; another one begins the run once more"));
}

// Slurm forgets jobs after two seconds here, and there is no accounting.
TEST_F(SlurmExperiment, OfAJobThatEndedWithoutAWordTheCauseIsUnknown) {
  job_ = "nodes: 1, nodelist: h1";
  WriteExperiment("run: sleep 600");
  Out({"train", "--detach"});
  AwaitStatus("1", "RUNNING");
  const std::string job = JobOf("1");
  for (const char* part : {"slurm_script", " supervise 1"}) KillOn("h1", part);
  std::string said;  // until then it knows that the job has FAILED
  for (const absl::Time give_up = absl::Now() + absl::Minutes(1);
       !absl::StrContains(said, "Invalid job id") && absl::Now() < give_up;)
    said = slurm().Ask({"sh", "-c", "squeue --jobs=" + job + " || :"});
  ASSERT_THAT(said, HasSubstr("Invalid job id"));
  AwaitStatus("1", absl::StrCat("its job ", job, " of Slurm has ended, cause unknown to Slurm"));
  EXPECT_EQ(StateOf("1"), "FAILED");
}

TEST_F(SlurmExperiment, ANodeThatFailsIsNamed) {
  const auto train = Train(2, "nodes: 2, nodelist: \"h1,h2\"");
  slurm().Ask({"scontrol", "update", "NodeName=h2", "State=DOWN", "Reason=test"});
  train->Wait();
  slurm().Ask({"scontrol", "update", "NodeName=h2", "State=IDLE"});
  EXPECT_THAT(Json({"status", "1"})["reason"].get<std::string>(), AnyOf(HasSubstr("NODE_FAIL"), HasSubstr("NodeDown")));
}

TEST_F(SlurmExperiment, ASigtermOfTheSiteIsCalledThat) {
  const auto train = Train(2);
  const std::string job = JobOf("1");
  slurm().Ask({"scancel", "--batch", "--signal=TERM", job});
  EXPECT_NE(train->Wait(), 0);
  EXPECT_THAT(
      Json({"status", "1"})["reason"].get<std::string>(),
      HasSubstr(absl::StrCat("its job ", job, " of Slurm was sent SIGTERM; muster train --experiment 1 goes on")));
}

TEST_F(SlurmExperiment, BeforeItsTimeIsOverItEndsAndGoesOnInTheSameJobBegunAnew) {
  const auto train = Train(3, "nodes: 1, nodelist: h1, max_requeues: 1");
  const std::string job = JobOf("1");
  slurm().Ask({"scancel", "--batch", "--signal=USR1", job});
  train->WaitForOut("start 2\n");
  EXPECT_THAT(train->out, HasSubstr("the job's time is over: ending master"));
  EXPECT_EQ(Json({"status", "1"})["job"]["requeues"], 1);
  AwaitState([this] { return StateOf("1"); }, "RUNNING");
  EXPECT_EQ(Json({"status", "1"})["reason"], "") << "it goes on already";
  EXPECT_EQ(JobOf("1"), job);
  slurm().Ask({"scancel", "--batch", "--signal=USR1", job});
  EXPECT_NE(train->Wait(), 0);
  EXPECT_THAT(Json({"status", "1"})["reason"].get<std::string>(),
              AllOf(HasSubstr("the time of its job "), HasSubstr("muster train --experiment 1 goes on with it")));
}

// Without squeue on the node the end is what Slurm has said at the job's start. It has come whenever this one begins,
// and whether its task starts before that is noticed doesn't matter.
TEST_F(SlurmExperiment, TheRemainingTimeIsNoticedWithoutASignal) {
  HaveOnly({"sbatch", "srun"});
  job_ =
      absl::StrCat("nodes: 1, signal: null, export: \"ALL,SLURM_JOB_END_TIME=", absl::ToUnixSeconds(absl::Now()), "\"");
  WriteExperiment("run: sleep 600");
  const auto train = StartMuster({"train"});
  EXPECT_NE(train->Wait(), 0);
  EXPECT_EQ(StateOf("1"), "FAILED");
  EXPECT_THAT(Json({"status", "1"})["reason"].get<std::string>(), HasSubstr("the time of its job "));
}

// As at sites whose nodes have no scontrol: the next command of the submitting host does it.
TEST_F(SlurmExperiment, WithoutScontrolAnotherJobIsSubmittedFromHere) {
  HaveOnly({"sbatch", "squeue", "srun", "scancel"});
  const auto train = Train(3, "nodes: 1, nodelist: h1, max_requeues: 1");
  const std::string job = JobOf("1");
  EXPECT_THAT(Read("experiments/1/job.sh"), HasSubstr(absl::StrCat("--signal=B:USR1@", kMostToEnd + kReserve, "\n")));
  slurm().Ask({"scancel", "--batch", "--signal=USR1", job});
  train->WaitForOut("start 2\n");
  train->WaitForErr(absl::StrCat("the time of job ", job, " was over; it goes on in job "));
  // The next job is told as early as the tasks of the first one have taken to end, twice that and a reserve.
  const auto took = nlohmann::json::parse(Read("experiments/1/job"))["ending_seconds"].get<double>();
  EXPECT_GT(took, 0);
  const int notice = static_cast<int>(std::ceil(std::min<double>(kMostToEnd, 2 * took))) + kReserve;
  EXPECT_THAT(Read("experiments/1/job.sh"), HasSubstr(absl::StrCat("--signal=B:USR1@", notice, "\n")));
  EXPECT_EQ(Muster({"kill", "1"}).exit_code, 0);
  EXPECT_EQ(train->Wait(), 130) << train->err;
}

TEST_F(SlurmExperiment, RunsOfAGridAreJobsOfWhichSoManyRunAtOnce) {
  WriteExperiment("concurrency: 1\nparameters: {n: [1, 2, 3]}\nrun: 'echo {{ n }} >>$OUTPUT_DIR/../../../order'");
  const Said said = Muster({"train"});
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_THAT(said.err, HasSubstr("experiment 1 has 3 jobs of Slurm"));
  EXPECT_EQ(Read("experiments/1/order"), "1\n2\n3\n");
  EXPECT_THAT(Read("experiments/1/runs/2/job.sh"), HasSubstr("--dependency=afterany:"));
  EXPECT_EQ(StateOf("1"), "FINISHED");
  EXPECT_THAT(said.err, HasSubstr("output: " + home() + "/experiments/1/"));
  EXPECT_THAT(Out({"show", "1"}), testing::ContainsRegex("1\\.2 +FINISHED, job [0-9]+ of Slurm"));
  EXPECT_THAT(Out({"show", "1.2"}), HasSubstr("experiments/1/runs/2/job.sh\n"));
}

TEST_F(SlurmExperiment, AGridIsKilledWithAllItsJobs) {
  WriteExperiment("concurrency: 1\nparameters: {n: [1, 2, 3]}\nrun: sleep 600");
  Out({"train", "--detach"});
  AwaitStatus("1", "PENDING (Dependency)");
  AwaitStatus("1.1", "RUNNING");
  const Said killed = Muster({"kill", "1"});
  EXPECT_EQ(killed.exit_code, 0) << killed.err;
  EXPECT_EQ(StateOf("1"), "KILLED");
  EXPECT_EQ(StateOf("1.3"), "KILLED");
}

// No node has to reach the host that submits: neither its commands nor anything that they leave there.
TEST_F(SlurmExperiment, TheSubmittingHostMayBeOutOfReach) {
  login_ = "h4";
  ScriptGate gate(Aside("gate"));
  job_ = "nodes: 2, nodelist: \"h1,h2\"";
  WriteExperiment(absl::StrCat("run: 'read line <", gate.path(), "; echo through'"));
  Out({"train", "--detach"});
  AwaitStatus("1", "RUNNING, on h1, as of ");
  EXPECT_THAT(Muster({"status", "1"}).out,
              ContainsRegex(absl::StrCat("as of [0-9]+ s ago, job ", JobOf("1"), " of Slurm")));
  hosts().Cut("h4");
  gate.LetThrough();
  AwaitEnd("1");
  EXPECT_THAT(Muster({"logs", "1"}).out, HasSubstr("through"));
  EXPECT_THAT(Muster({"status", "1"}).out, HasSubstr("FINISHED"));
  hosts().Heal("h4");
}

}  // namespace
}  // namespace muster::slurm_experiment_test
