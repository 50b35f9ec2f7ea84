// `muster run --on slurm` in an allocation of a real Slurm, as a user runs it: from the host of salloc, and from within
// a step on a node.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/system/shell_word.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/killed_run.h"
#include "tests/process/testing/slurm_cluster.h"

namespace muster::slurm_run_test {
namespace {

using ::testing::AllOf, ::testing::ContainsRegex, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::Not,
    ::testing::SizeIs;

// The exit code where nothing has been started.
constexpr int kNothingStarted = 2;
constexpr char kDescription[] = "of Slurm: 3 nodes with 4, 2, 3 CPUs";

// Prefix of each script: sets $task to "worker:1", for example.
constexpr char kWhoAmI[] =
    "type=${TF_CONFIG##*\\\"type\\\":\\\"}; type=${type%%\\\"*}; "
    "index=${TF_CONFIG##*\\\"index\\\":}; task=$type:${index%%[,\\}]*}; ";

// The chief ends once all others have written their lines.
constexpr char kSaysWhere[] =
    "echo $(hostname) $MUSTER_PROCESSORS ${SLURM_JOB_ID:+of a job} ${SLURM_PROCID:+as a task} $KEPT; : >wrote.$task; "
    "[ $task = worker:0 ] || exit 0; "
    "until [ -e wrote.ps:0 ] && [ -e wrote.worker:1 ] && [ -e wrote.worker:2 ]; do :; done; exit 7";

// The hosts and their Slurm are those of the whole suite.
struct Suite {
  SimulatedHosts hosts{3};
  SlurmCluster slurm{hosts, {4, 2, 3}};
};

class SlurmRun : public ::testing::Test {
 protected:
  static std::unique_ptr<Suite>& OfSuite() {
    static std::unique_ptr<Suite> suite;
    return suite;
  }
  static void TearDownTestSuite() { OfSuite().reset(); }
  void SetUp() override {
    if (const std::string why = SlurmCluster::WhyNot(); !why.empty()) GTEST_SKIP() << why;
    if (OfSuite() == nullptr) OfSuite() = std::make_unique<Suite>();
    folder_ = hosts().shared() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directory(folder_);
  }
  // Nothing of a run may be left: no step, no process, no file.
  void TearDown() override {
    if (OfSuite() == nullptr) return;
    if (!job_.empty()) {
      // slurmctld hears of a step's end a moment later.
      for (const absl::Time give_up = absl::Now() + absl::Seconds(30);
           !slurm().StepsOf(job_).empty() && absl::Now() < give_up;) {
      }
      EXPECT_EQ(slurm().StepsOf(job_), "");
      slurm().Cancel(job_);
    }
    for (const std::string& host : hosts().names()) slurm().AwaitNothingElseOn(host);
    for (const std::string& name : EntriesOf(folder_)) EXPECT_FALSE(absl::StartsWith(name, ".muster")) << name;
  }

  static SimulatedHosts& hosts() { return OfSuite()->hosts; }
  static SlurmCluster& slurm() { return OfSuite()->slurm; }
  static std::vector<std::string> Script(const std::string& script) { return {"sh", "-c", kWhoAmI + script}; }
  std::string Shared(const std::string& name) const { return folder_ + "/" + name; }

  static std::vector<std::string> Run(const std::vector<std::string>& flags, const std::vector<std::string>& program,
                                      const std::string& muster = BinFolder() + "/muster") {
    return Joined(Joined({muster, "run", "--on", "slurm"}, flags), Joined({"--"}, program));
  }
  // Starts a command on h0, in the shared folder.
  std::unique_ptr<Process> Start(const std::vector<std::string>& words) const {
    return std::make_unique<Process>(slurm().On("h0", words), ProcessOptions{.directory = folder_});
  }
  // Starts it as in the shell of a job of all nodes.
  std::unique_ptr<Process> StartInJob(const std::vector<std::string>& words) {
    job_ = slurm().Allocate();
    return Start(Joined(Joined({"env"}, slurm().ShellOf(job_)), words));
  }
  // Starts training that never ends by itself, with a ps on h1 and a worker on each node, and waits until it goes on.
  // `before`: words before those of the program.
  std::unique_ptr<Process> Train(const std::vector<std::string>& flags = {},
                                 const std::vector<std::string>& before = {}) {
    const std::vector<std::string> usual = {"--ps",        "1",           "--workers",    "3",
                                            "--muster-ps", "--model_dir", Shared("model")};
    auto run = StartInJob(
        Run(Joined(usual, flags), Joined(Joined(before, ToyThatCounts()), {"--steps=1000000000", "--log_steps=100"})));
    for (const std::string worker : {"0", "1", "2"}) run->WaitForErrLine("[worker:" + worker + "] ", "loss = ", 0);
    return run;
  }
  // Returns what runs on a host but Slurm itself and has `text` in its words.
  static std::vector<pid_t> Find(const std::string& host, const std::string& text) {
    std::vector<pid_t> found;
    for (const SimulatedHosts::Running& running : hosts().ProcessesOf(host))
      if (!absl::StrContains(running.words, "slurm") && absl::StrContains(running.words, text))
        found.push_back(running.pid);
    return found;
  }
  static void KillOn(const std::string& host, const std::string& text, int signal = SIGKILL) {
    for (const pid_t pid : Find(host, text)) kill(pid, signal);
  }
  // Waits until the chief has logged more steps.
  static void AwaitSteps(Process& run, size_t at) {
    for (int line = 0; line < 5; ++line) at = run.WaitForErrLine("[worker:0] ", "loss = ", at);
  }
  static void EndTraining(Process& run) {
    run.Signal(SIGINT);
    EXPECT_EQ(run.Wait(), 0) << run.err;
    EXPECT_THAT(run.err, Not(HasSubstr("first failure")));
  }
  std::vector<std::string> StepsOfJob() const { return absl::StrSplit(slurm().StepsOf(job_), '\n', absl::SkipEmpty()); }
  void CancelJob() { slurm().Cancel(std::exchange(job_, "")); }
  static void ExpectAllSaid(const Process& run, const std::string& what) {
    const std::vector<std::pair<std::string, std::string>> places = {
        {"ps:0", "h1 4"}, {"worker:0", "h1 4"}, {"worker:1", "h2 2"}, {"worker:2", "h3 3"}};
    for (const auto& [task, host] : places)
      EXPECT_THAT(After(run.out, "[" + task + "] "), ElementsAre(host + what)) << run.err;
  }

 private:
  std::string folder_, job_;
};

TEST_F(SlurmRun, TasksRunOnTheNodesOfSalloc) {
  const auto run = Start(Joined({"env", "KEPT=kept", "salloc", "--nodes=3", "--exclusive"},
                                Run({"--ps", "1", "--workers", "3"}, Script(kSaysWhere))));
  EXPECT_EQ(run->Wait(), 7) << run->err;
  ExpectAllSaid(*run, " of a job kept");
  EXPECT_THAT(run->err, AllOf(HasSubstr(kDescription), HasSubstr(" on h2 at 10.77.0.12:")));
}

TEST_F(SlurmRun, ARunMayBeginWithinAStepOnANode) {
  const auto run =
      Start(Joined({"env", "KEPT=kept", "salloc", "--nodes=3", "--exclusive", "srun", "--nodes=1", "--ntasks=1"},
                   Run({"--ps", "1", "--workers", "3"}, Script(kSaysWhere))));
  EXPECT_EQ(run->Wait(), 7) << run->err;
  ExpectAllSaid(*run, " of a job kept");
  EXPECT_THAT(run->err, AllOf(HasSubstr(kDescription), HasSubstr(" on h1 at 10.77.0.11:")));
}

TEST_F(SlurmRun, ManyLinesComeWholeAndInOrder) {
  const auto run = StartInJob(Run({"--ps", "0", "--workers", "3"}, Script("seq 1 50000")));
  EXPECT_EQ(run->Wait(), 0) << run->err;
  for (const std::string worker : {"0", "1", "2"}) {
    const std::vector<std::string> lines = After(run->out, "[worker:" + worker + "] ");
    ASSERT_EQ(lines.size(), 50000) << run->err;
    for (size_t i = 0; i < lines.size(); ++i) ASSERT_EQ(lines[i], std::to_string(i + 1));
  }
  EXPECT_THAT(run->err, Not(HasSubstr("srun"))) << "what tasks print comes from their agents alone";
}

TEST_F(SlurmRun, AKilledAgentsTasksGoOnInTheSameStep) {
  const auto run = Train();
  KillOn("h1", "agent --serve");
  const size_t died = run->WaitForErr("the agent on h1 was killed; another goes on with its 2 tasks", 0);
  AwaitSteps(*run, died);
  EXPECT_THAT(StepsOfJob(), SizeIs(1));
  EndTraining(*run);
  EXPECT_THAT(run->err, Not(HasSubstr("starting it again")));
}

// Slurm follows parents and loses it: the node's next agent finds it, by the mark of the one that was killed.
TEST_F(SlurmRun, WhatHasASessionOfItsOwnAndNoEnvironmentEndsWithAKilledGuardAndAgent) {
  const auto run = Train({}, {"sh", "-c", "env -i setsid sleep 7777 & exec \"$@\"", "sh"});
  const std::vector<pid_t> strays = Find("h2", "sleep 7777");
  ASSERT_THAT(strays, SizeIs(1));
  Watched stray;
  stray.Add(strays[0]);
  KillOn("h2", "agent --serve", SIGSTOP);
  KillOn("h2", "run-guard");
  KillOn("h2", "agent --serve");
  const size_t died = run->WaitForErr("the agent on h2 has died, and its tasks with it", 0);
  run->WaitForErrLine("[worker:1] ", "loss = ", died);
  stray.WaitForEnds();
  EXPECT_THAT(Find("h2", "sleep 7777"), AllOf(SizeIs(1), Not(ElementsAre(strays[0]))))
      << "that of the task's next life";
  EndTraining(*run);
}

TEST_F(SlurmRun, ANodeOnWhichAllIsKilledGetsAStepOfItsOwnAndItsTaskAgain) {
  const auto run = Train();
  KillOn("h2", "");
  const size_t died = run->WaitForErr("the agent on h2 has died, and its tasks with it", 0);
  run->WaitForErrLine("[worker:1] ", "loss = ", died);
  AwaitSteps(*run, run->err.size());
  EXPECT_THAT(StepsOfJob(), SizeIs(2));
  EndTraining(*run);
}

TEST_F(SlurmRun, WhenItIsToldToEndNothingIsLeft) {
  const auto run = Train();
  run->Signal(SIGTERM);
  EXPECT_EQ(run->Wait(), 0) << run->err;
  EXPECT_THAT(run->err, Not(HasSubstr("first failure")));
}

// But for the file that says where it was.
TEST_F(SlurmRun, OfAKilledRunNothingIsLeftAfterTheGrace) {
  const auto run = Train({"--grace", "10"});
  run->Signal(SIGKILL);
  run->Wait();
  for (const std::string& host : hosts().names()) slurm().AwaitNothingElseOn(host);
  for (const absl::Time give_up = absl::Now() + absl::Minutes(1); !StepsOfJob().empty() && absl::Now() < give_up;) {
  }
  size_t left = 0;
  for (const std::string& name : EntriesOf(Shared("")))
    left += absl::StartsWith(name, ".muster-") && std::filesystem::remove(Shared(name)) ? 1 : 0;
  EXPECT_EQ(left, 1U);
}

TEST_F(SlurmRun, ARunEndsWithItsJob) {
  const auto run = Train();
  CancelJob();
  EXPECT_EQ(run->Wait(), 1) << run->err;
  EXPECT_THAT(run->err, AllOf(HasSubstr("[muster] first failure: "), HasSubstr("the job has ended: srun: error: ")));
}

TEST_F(SlurmRun, ANodeThatIsAwaitedIsNamedWithTheAddressAndTheErrorOfItsAgent) {
  const auto rule = [](const std::string& verb) {
    Process ip(hosts().On("h2", {"ip", "rule", verb, "priority", "10", "to", SimulatedHosts::AddressOf("h0"), "ipproto",
                                 "tcp", "dport", "40000-40002", "prohibit"}));
    EXPECT_EQ(ip.Wait(), 0) << ip.err;
  };
  rule("add");
  const auto run = StartInJob(Run({"--ps", "0", "--workers", "3", "--ports", "40000-40002"}, {"true"}));
  const size_t begin = run->WaitForErr("waiting for h2 since 10s: ", 0);
  run->WaitForErr("\n", begin);
  run->Signal(SIGINT);
  EXPECT_NE(run->Wait(), 0);
  rule("del");
  EXPECT_THAT(run->err, ContainsRegex("waiting for h2 since 10s: [^\n]*can't reach the supervisor at "
                                      "10\\.77\\.0\\.10:4000[0-2]: permission denied"));
}

TEST_F(SlurmRun, ABatchScriptMayRunIt) {
  ASSERT_EQ(mkfifo(Shared("end").c_str(), 0600), 0);
  std::string script = "#!/bin/sh\nset --";
  for (const std::string& word : Run({"--ps", "1", "--workers", "3"}, Script(kSaysWhere)))
    absl::StrAppend(&script, " ", QuotedWord(word));
  std::ofstream(Shared("script")) << script << "\n\"$@\" >out 2>err; echo $? >end\n";
  slurm().Ask({"sbatch", "--nodes=3", "--exclusive", "--output=/dev/null", "--chdir=" + Shared(""),
               "--export=ALL,KEPT=kept", Shared("script")});
  const auto run = Start({"sh", "-c", "read -r code <end; cat out; cat err >&2; exit $code"});
  EXPECT_EQ(run->Wait(), 7) << run->err;
  ExpectAllSaid(*run, " of a job kept");
}

TEST_F(SlurmRun, OutsideOfAnAllocationItSaysHowToGetOne) {
  const auto run = Start(Run({}, {"true"}));
  EXPECT_EQ(run->Wait(), kNothingStarted);
  EXPECT_THAT(run->err, HasSubstr("muster run: --on slurm: this isn't within an allocation of Slurm; get one with "
                                  "salloc -N 2"));
}

TEST_F(SlurmRun, AJobThatHasEndedIsSaidOnce) {
  const auto run = Start(Joined(Joined({"env"}, slurm().ShellOf("4711")), Run({}, {"true"})));
  EXPECT_EQ(run->Wait(), kNothingStarted);
  EXPECT_THAT(After(run->err, "muster run: "),
              ElementsAre(AllOf(HasSubstr("the job has ended: srun: error: "), HasSubstr("Invalid job id specified"))))
      << run->err;
}

TEST_F(SlurmRun, NodesThatDontSeeMusterAreNamed) {
  const ScratchFolder own;  // the nodes have a /tmp of their own
  std::filesystem::copy_file(BinFolder() + "/muster", own / "muster");
  const auto run = StartInJob(Run({}, {"true"}, own / "muster"));
  EXPECT_EQ(run->Wait(), kNothingStarted);
  const std::vector<std::string> lines = After(run->err, "muster run: ");
  ASSERT_EQ(lines.size(), 3U) << run->err;
  for (int i = 0; i < 3; ++i)
    EXPECT_THAT(lines[i], HasSubstr(absl::StrCat("h", i + 1, " has no ", own / "muster",
                                                 ": put muster into a folder that all nodes see")));
}

}  // namespace
}  // namespace muster::slurm_run_test
