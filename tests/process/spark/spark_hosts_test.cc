// `muster train --on spark` on a standalone cluster of Spark over two hosts: its GPUs, and what is killed or stands
// still: its master, its driver, the driver's JVM, agents.
// All that holds on every engine is run there by the tests for every engine.
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/launch/system/pid_fd.h"
#include "tests/process/testing/job_experiments.h"
#include "tests/process/testing/spark_cluster.h"

namespace muster::spark_hosts_test {
namespace {

using ::testing::AllOf, ::testing::AnyOf, ::testing::Contains, ::testing::ContainsRegex, ::testing::ElementsAre,
    ::testing::HasSubstr, ::testing::Not, ::testing::StartsWith;

// A process that stands still from its construction on. It is killed at the latest when the object goes.
class Stopped {
 public:
  explicit Stopped(pid_t pid) : fd_(OpenPidFd(pid)) {
    EXPECT_EQ(SignalPidFd(fd_, SIGSTOP), 0) << pid;
    end_.Add(pid);
  }
  ~Stopped() {
    SignalPidFd(fd_, SIGKILL);
    close(fd_);
  }
  Stopped(const Stopped&) = delete;
  Stopped& operator=(const Stopped&) = delete;

  // Waits until somebody else has killed it.
  void AwaitEnd() const { end_.WaitForEnds(); }

 private:
  const int fd_;
  Watched end_;
};

class SparkOnHosts : public JobExperiments {
 protected:
  static void TearDownTestSuite() { OfSuite().reset(); }
  void SetUp() override {
    if (const std::string why = SparkCluster::WhyNot(); !why.empty()) GTEST_SKIP() << why;
    if (OfSuite() == nullptr) OfSuite() = std::make_unique<Suite>();
    gate_ = std::make_unique<ScriptGate>(absl::StrCat(OfSuite()->hosts.shared(), "/gate", ++OfSuite()->tests));
  }
  void TearDown() override {
    if (OfSuite() != nullptr) spark().AwaitNothingElse();
  }

  static SimulatedHosts& hosts() { return OfSuite()->hosts; }
  static SparkCluster& spark() { return OfSuite()->spark; }
  std::vector<std::string> Command(const std::vector<std::string>& arguments) const override {
    const std::vector<std::string> words = ExperimentsTest::Command(arguments);
    return OfSuite()->hosts.On("h0", Joined(Joined({"env"}, spark().Variables()), words));
  }
  std::string MoreOfFile() const override { return SparkCluster::Lines(nodes_) + conf_ + "grace: 10s\n"; }
  // What a task does until the test lets it through.
  std::string Waits() const { return absl::StrCat("read line < ", gate_->path()); }
  const ScriptGate& gate() const { return *gate_; }
  // Returns the JVM of the only job's driver, which must have begun its application.
  static pid_t Jvm() {
    const std::vector<pid_t> found = spark().OnH0(kJvm);
    EXPECT_EQ(found.size(), 1U);
    return found.empty() ? -1 : found.front();
  }

  size_t nodes_ = 2;
  std::string conf_;  // more settings of Spark, in lines; behind them more keys of `spark`
  static constexpr char kJvm[] = "org.apache.spark.deploy.SparkSubmit";

 private:
  struct Suite {
    SimulatedHosts hosts{2};
    SparkCluster spark{hosts, {4, 4}, {{"h2", {"GPU-aaaa", "GPU-bbbb"}}}};
    int tests = 0;
  };
  static std::unique_ptr<Suite>& OfSuite() {
    static std::unique_ptr<Suite> suite;
    return suite;
  }

  std::unique_ptr<ScriptGate> gate_;
};

// Spark gives each application devices of its own, and none to one that asks for none.
TEST_F(SparkOnHosts, RunsAtATimeHaveGpusOfTheirOwn) {
  nodes_ = 1;
  WriteExperiment(
      "parameters: {x: [1, 2]}\nconcurrency: 2\nresources: {gpus: 1}\nrun: echo has $CUDA_VISIBLE_DEVICES; " + Waits());
  const auto train = StartMuster({"train"});
  std::vector<std::string> seen;
  for (const char* task : {"1.1.master", "1.2.master"}) {
    AwaitLines(*train, task, 2);
    seen.push_back(LinesOf(train->out, task)[1]);
  }
  EXPECT_THAT(seen, ::testing::UnorderedElementsAre("has GPU-aaaa", "has GPU-bbbb"));
  gate().LetThrough(2);
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err;
  nodes_ = 2;
  WriteExperiment("torchrun: {workers: 2}\nrun: echo has $CUDA_VISIBLE_DEVICES.");
  const Said none = Muster({"train"});
  EXPECT_EQ(none.exit_code, 0) << none.out << none.err;
  for (const char* task : {"2.worker.1", "2.worker.2"})
    EXPECT_THAT(LinesOf(none.out, task), ElementsAre("--> RUNNING", "has .", "--> FINISHED"));
}

TEST_F(SparkOnHosts, AnExperimentGoesOnWhileTheMasterIsStartedAgain) {
  WriteCluster("{worker: 2}", "echo begins; " + Waits());
  const auto train = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1"}) AwaitLines(*train, task, 2);
  spark().KillMaster();
  const Said refused = Muster({"train"});
  EXPECT_NE(refused.exit_code, 0) << refused.out;
  EXPECT_THAT(refused.err, HasSubstr("no master of Spark answers at spark://10.77.0.11:7077 (10.77.0.11:7077: "));
  spark().StartMaster();
  gate().LetThrough(2);
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err;
  for (const auto& task : TasksOf("1")) EXPECT_EQ(task["restarts"], 0) << task;
  gate().LetThrough(2);
  EXPECT_EQ(Muster({"train"}).exit_code, 0) << "it gets executors of the new master";
}

// The tasks go on under an agent's next life. When its guard is killed with it, they end, with the child that has
// nothing of theirs, and begin again under another agent, while the tasks of the other host go on.
TEST_F(SparkOnHosts, AgentsAndGuardsThatAreKilledLeaveNothing) {
  const std::string first = gate().path() + ".first", second = gate().path() + ".second";
  const auto waits_for = [](const std::string& file) {
    return absl::StrCat("until [ -e ", file, " ]; do sleep 0.1; done");
  };
  WriteCluster("{worker: 2}", absl::StrCat("setsid env -i sleep 1000 & echo begins; ", waits_for(first),
                                           "; echo goes on; ", waits_for(second)));
  const auto train = StartMuster({"train"});
  const auto await_lines = [&train](size_t of_master, size_t of_worker) {
    AwaitLines(*train, "1.master", of_master);
    AwaitLines(*train, "1.worker.1", of_worker);
  };
  await_lines(2, 2);
  AwaitStatus("1", "RUNNING");
  const std::string host = TasksOf("1")["1.worker.1"]["host"];
  ASSERT_THAT(host, AnyOf("h1", "h2"));
  EXPECT_EQ(KillProcessesOn(hosts(), host, "agent --serve"), 1);
  std::ofstream(first) << "\n";
  await_lines(3, 3);
  EXPECT_GE(KillProcessesOn(hosts(), host, "run-guard agent"), 1);
  KillProcessesOn(hosts(), host, "agent --serve");
  await_lines(3, 6);
  std::ofstream(second) << "\n";
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err;
  EXPECT_THAT(LinesOf(train->out, "1.master"), ElementsAre("--> RUNNING", "begins", "goes on", "--> FINISHED"));
  EXPECT_THAT(Read("experiments/1/job.out"), Not(HasSubstr("Spark's stage has ended")));
}

// One that has the secret is taken, and waits for slots: this master has no workers.
TEST_F(SparkOnHosts, AMasterWithAnotherSecretIsNamedAsThat) {
  const auto master = spark().StartMasterWithSecret("of-this-cluster");
  nodes_ = 1;
  const auto write_with = [this](const std::string& secret) {
    conf_ = "    spark.authenticate: true\n    spark.authenticate.secret: " + secret + "\n";
    WriteExperiment("run: 'true'");
  };
  const std::vector<std::string> words = {"train", "--address", SparkCluster::address_with_secret()};
  write_with("of-another-one");
  const Said refused = Muster(words);
  EXPECT_EQ(refused.exit_code, 2) << refused.out << refused.err;
  EXPECT_THAT(
      Json({"status", "1"})["reason"].get<std::string>(),
      AllOf(HasSubstr("Spark at " + SparkCluster::address_with_secret() + " doesn't have the secret of this job"),
            HasSubstr("SaslException: ")));
  spark().AwaitNothingElse();
  write_with("of-this-cluster");
  const auto train = StartMuster(words);
  AwaitStatus("2", "waits for 1 task of Spark at once; now there are 0 of 1 slot");
  EXPECT_EQ(Muster({"kill", "2"}).exit_code, 0);
  EXPECT_EQ(train->Wait(), 130) << train->err;
  spark().EndMasterWithSecret(*master);
}

// A task fills a host, and there are two.
TEST_F(SparkOnHosts, NobodyWaitsForTheSlotOfAnEvaluator) {
  nodes_ = 3;
  conf_ = "    spark.executor.cores: 4\n";
  WriteCluster(
      "{master: 1, worker: 1, evaluator: true}",
      "case $TF_CONFIG in *\\\"type\\\":\\\"evaluator\\\"*) echo evaluates on $(hostname);; *) echo trained;; esac; " +
          Waits());
  const auto train = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1", "1.evaluator"}) AwaitLines(*train, task, 2);
  EXPECT_THAT(train->out,
              HasSubstr("begins with 2 of 3 tasks of Spark, as nobody waits for that of the evaluator: there are 2 "
                        "of 3 slots now\n"));
  EXPECT_THAT(Read("experiments/1/job.out"),
              HasSubstr("muster: waits for 3 tasks of Spark at once; now there are 2 of 3 slots\n"));
  gate().LetThrough(3);
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err << Read("experiments/1/job.out");
  EXPECT_THAT(LinesOf(train->out, "1.evaluator"), Contains(AnyOf("evaluates on h1", "evaluates on h2")));
  for (const char* task : {"1.master", "1.worker.1"}) EXPECT_THAT(LinesOf(train->out, task), Contains("trained"));
}

// Nobody else looks after its executors.
TEST_F(SparkOnHosts, ADriverThatIsKilledLeavesNothing) {
  WriteCluster("{worker: 2}", "setsid env -i sleep 1000 & echo begins; " + Waits());
  const auto train = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1"}) AwaitLines(*train, task, 2);
  EXPECT_EQ(spark().KillOnH0("spark_driver.py"), 1);
  EXPECT_EQ(train->Wait(), 1) << train->err;  // nobody has waited for it
  EXPECT_THAT(Json({"status", "1"})["reason"].get<std::string>(),
              ContainsRegex("its job .+ of Spark has ended: its driver has ended, spark.log says more"));
  EXPECT_THAT(EntriesOf(home() + "/experiments/1"), Not(Contains(StartsWith(".muster-")))) << "has a secret";
  spark().AwaitNothingElse();
}

TEST_F(SparkOnHosts, ADriverThatIsToldToEndKillsTheExperiment) {
  WriteCluster("{worker: 2}", "echo begins; " + Waits());
  const auto train = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1"}) AwaitLines(*train, task, 2);
  AwaitStatus("1", "RUNNING");
  const std::vector<pid_t> drivers = spark().OnH0("spark_driver.py");
  ASSERT_EQ(drivers.size(), 1U);
  EXPECT_EQ(kill(drivers.front(), SIGTERM), 0);
  EXPECT_EQ(train->Wait(), 130) << train->out << train->err;
  EXPECT_EQ(StateOf("1"), "KILLED");
}

// The hosts have two executors of so many cores, which a busy machine starts within half of the time-out. No call of
// the JVM fails, since its connections stay.
TEST_F(SparkOnHosts, AJvmThatStandsStillWhileSlotsAreWaitedForEndsTheExperiment) {
  nodes_ = 3;
  conf_ = "    spark.executor.cores: 4\n  start_timeout: 2m\n";
  WriteCluster("{worker: 3}", "echo never");
  const auto train = StartMuster({"train"});
  AwaitStatus("1", "waits for 3 tasks of Spark at once; now there are 2 of 3 slots");
  const Stopped jvm(Jvm());
  EXPECT_EQ(train->Wait(), 2) << train->out << train->err;
  EXPECT_THAT(Json({"status", "1"})["reason"].get<std::string>(), HasSubstr("Spark's JVM doesn't answer any more: "));
  EXPECT_THAT(train->out, Not(HasSubstr("never")));
  jvm.AwaitEnd();
}

TEST_F(SparkOnHosts, AJvmThatIsKilledWhileSlotsAreWaitedForEndsTheExperiment) {
  nodes_ = 3;
  conf_ = "    spark.executor.cores: 4\n";
  WriteCluster("{worker: 3}", "echo never");
  const auto train = StartMuster({"train"});
  AwaitStatus("1", "waits for 3 tasks of Spark at once; now there are 2 of 3 slots");
  EXPECT_EQ(spark().KillOnH0(kJvm), 1);
  EXPECT_EQ(train->Wait(), 2) << train->out << train->err;
  EXPECT_THAT(Json({"status", "1"})["reason"].get<std::string>(), HasSubstr("Spark's JVM has died: "));
}

// The driver and its tasks have their own connections, and at the end the driver kills it.
TEST_F(SparkOnHosts, TasksGoOnToTheirEndsWhileTheJvmStandsStill) {
  WriteCluster("{worker: 2}", absl::StrCat("echo begins; ", Waits(), "; echo goes on"));
  const auto train = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1"}) AwaitLines(*train, task, 2);
  AwaitStatus("1", "RUNNING");
  const Stopped jvm(Jvm());
  gate().LetThrough(2);
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err;
  for (const char* task : {"1.master", "1.worker.1"})
    EXPECT_THAT(LinesOf(train->out, task), ElementsAre("--> RUNNING", "begins", "goes on", "--> FINISHED"));
  jvm.AwaitEnd();
}

// Nobody begins the application anew, so the tasks aren't waited for as those of a host that may come back.
TEST_F(SparkOnHosts, AJvmThatIsKilledEndsTheExperimentWithThatReason) {
  WriteCluster("{worker: 2}", "setsid env -i sleep 1000 & echo begins; " + Waits());
  const auto train = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1"}) AwaitLines(*train, task, 2);
  AwaitStatus("1", "RUNNING");
  EXPECT_EQ(spark().KillOnH0(kJvm), 1);
  EXPECT_EQ(train->Wait(), 1) << train->out << train->err;
  EXPECT_THAT(Json({"status", "1"})["reason"].get<std::string>(),
              AllOf(HasSubstr(" could not be started again: "), HasSubstr("Spark's JVM has died: ")));
}

}  // namespace
}  // namespace muster::spark_hosts_test
