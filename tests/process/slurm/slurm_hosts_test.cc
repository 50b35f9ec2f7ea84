// Jobs of Slurm, several hosts that submit them, and nodes that fail.
#include <gmock/gmock.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/slurm/slurm_experiments.h"

namespace muster::slurm_hosts_test {
namespace {

using ::testing::Contains, ::testing::ContainsRegex, ::testing::HasSubstr, ::testing::SizeIs;

class SlurmHosts : public SlurmExperiment {
 protected:
  // From now on commands run on this host, with an index of its own.
  void LogInTo(const std::string& host) {
    login_ = host;
    environment_ = {absl::StrCat("MUSTER_INDEX=", home(), ".index of ", host)};
  }
  std::string MoreOfFile() const override { return SlurmExperiment::MoreOfFile() + more_; }
  // Writes an experiment whose evaluator is alone on h3, and whose master and worker on h1 run `trainers`. Neither has
  // a "'".
  void WriteEvaluated(const std::string& trainers, const std::string& evaluator) {
    job_ = "nodes: 2, nodelist: \"h1,h3\"";
    more_ = "placement: {master: h1, worker: h1, evaluator: h3}\n";
    WriteCluster("{master: 1, worker: 1, evaluator: true}",
                 absl::StrCat("case $TF_CONFIG in *\\\"type\\\":\\\"evaluator\\\"*) ", evaluator, ";; *) ", trainers,
                              ";; esac"));
  }
  static void Do(const std::string& host, const std::string& script) {
    Process process(hosts().On(host, {"sh", "-ec", script}));
    EXPECT_EQ(process.Wait(), 0) << process.err;
  }
  static void SetState(const std::string& node, const std::string& state) {
    slurm().Ask({"scontrol", "update", "NodeName=" + node, "State=" + state, "Reason=test"});
  }

 private:
  std::string more_;  // lines of the file
};

TEST_F(SlurmHosts, TwoSubmitAtOnce) {
  constexpr int kEach = 2;
  WriteExperiment("run: echo done");
  std::vector<std::unique_ptr<Process>> commands;
  for (int i = 0; i < kEach; ++i) {
    for (const char* host : {"h0", "h4"}) {
      LogInTo(host);
      commands.push_back(StartMuster({"train", "--detach", "--json"}));
    }
  }
  std::set<std::string> ids;
  for (const auto& command : commands) {
    EXPECT_EQ(command->Wait(), 0) << command->err;
    ids.insert(nlohmann::json::parse(command->out)["id"].get<std::string>());
  }
  EXPECT_THAT(ids, SizeIs(2 * kEach));
  for (const std::string& id : ids) AwaitEnd(id);
  for (const char* host : {"h0", "h4"}) {
    LogInTo(host);
    for (const std::string& id : ids) EXPECT_EQ(StateOf(id), "FINISHED") << host;
  }
}

// It reaches no node and no controller, and has neither Slurm's commands nor the shared folder as its home.
TEST_F(SlurmHosts, ALaptopNeedsOnlyTheLoginHost) {
  const std::vector<std::string> out_of_reach = {"h0", "h1", "h2"};
  const ScriptGate gate(Aside("gate"));
  LogInTo("h4");
  job_ = "nodes: 2, nodelist: \"h1,h2\"";
  WriteCluster("{worker: 2}", absl::StrCat("echo begins; read line <", gate.path(), "; echo through"));
  Out({"train", "--detach"});
  // What a login there finds.
  Do("h4", absl::StrCat("mkdir -p ~/.ssh; echo 'MUSTER_HOME=", home(), "\n", environment_[0], "\n", slurm().variable(),
                        "\nPATH=/usr/sbin:/usr/bin:/bin' >~/.ssh/environment"));
  AwaitStatus("1", "RUNNING, on h1, ");
  hosts().CutFrom("h3", out_of_reach);
  const auto on_laptop = [](const std::vector<std::string>& arguments) {
    return hosts().On("h3",
                      Joined(Joined({BinFolder() + "/muster"}, arguments), {"--ssh_config", hosts().ssh_config()}));
  };
  Process status(on_laptop({"status", "h4:1"}));
  EXPECT_EQ(status.Wait(), 0) << status.err;
  EXPECT_THAT(status.out,
              ContainsRegex("experiment h4:1 of project toy: RUNNING, on h1, as of [0-9]+ s ago, job [0-9]+ of Slurm"));
  Process logs(on_laptop({"logs", "h4:1", "-f"}));
  logs.WaitForOut("begins");
  gate.LetThrough(2);
  EXPECT_EQ(logs.Wait(), 0) << logs.err;
  for (const char* task : {"1.master", "1.worker.1"}) EXPECT_THAT(LinesOf(logs.out, task), Contains("through")) << task;
  hosts().HealFrom("h3", out_of_reach);
  Do("h4", "rm -r ~/.ssh");
}

// Its supervisor is gone with it.
TEST_F(SlurmHosts, ABatchHostThatFailsIsNamed) {
  const auto train = Train(2);
  AwaitStatus("1", "RUNNING");
  hosts().Crash("h1");
  SetState("h1", "DOWN");
  AwaitStatus("1", "FAILED");  // before Slurm forgets it
  EXPECT_EQ(train->Wait(), 137) << train->err;
  hosts().Restart("h1");
  slurm().StartNode("h1");
  SetState("h1", "IDLE");
  EXPECT_THAT(Json({"status", "1"})["reason"].get<std::string>(), HasSubstr("NODE_FAIL"));
}

// Slurm itself requeues the job, and would let it wait for two minutes, in which its nodes forget its first life.
TEST_F(SlurmHosts, AfterANodeHasFailedItsJobBeginsAnew) {
  const auto train = Train(2, "nodes: 2, max_requeues: 1");
  AwaitStatus("1", "RUNNING");
  SetState("h2", "DOWN");
  AwaitStatus("1", "BeginTime");
  slurm().Ask({"scontrol", "update", "JobId=" + JobOf("1"), "ExcNodeList=h1,h2", "StartTime=now"});
  EXPECT_EQ(train->Wait(), 0) << train->err << Read("experiments/1/job.out");
  SetState("h2", "IDLE");
  EXPECT_THAT(train->out, HasSubstr("start 2\n"));
  EXPECT_EQ(nlohmann::json::parse(Read("experiments/1/job"))["requeues"], 1);
}

// No agent has room for its folder on the evaluator's node.
TEST_F(SlurmHosts, NobodyWaitsForTheNodeOfAnEvaluator) {
  WriteEvaluated("echo trained", "echo evaluates on $(uname -n)");
  Do("h3",
     "mkdir -p /tmp/muster-0; mount -t tmpfs -o size=64k,mode=700 none /tmp/muster-0; "
     "! head -c 1M /dev/zero >/tmp/muster-0/fill");
  const Said said = Muster({"train"});
  Do("h3", "umount /tmp/muster-0");
  EXPECT_EQ(said.exit_code, 0) << said.err << Read("experiments/1/job.out");
  EXPECT_THAT(said.out, ContainsRegex("h3 isn't used: [^\n]*; evaluator runs on h1 instead\n"));
  EXPECT_THAT(LinesOf(said.out, "1.evaluator"), Contains("evaluates on h1"));
  for (const std::string task : {"1.master", "1.worker.1"}) EXPECT_THAT(LinesOf(said.out, task), Contains("trained"));
}

// Slurm itself hasn't noticed yet.
TEST_F(SlurmHosts, AnEvaluatorsNodeThatIsUnpluggedDuringTrainingEndsNobody) {
  const ScriptGate gate(Aside("gate"));
  WriteEvaluated(absl::StrCat("read line <", gate.path(), "; echo trained"),
                 "echo evaluates on $(uname -n); exec sleep 1000");
  const auto train = StartMuster({"train"});
  train->WaitForOut("evaluates on h3");
  hosts().Cut("h3");
  train->WaitForOut("h3 hasn't been heard for 3s");
  gate.LetThrough(2);
  train->WaitForOut("evaluator is out of reach, and isn't waited for");
  hosts().Heal("h3");
  EXPECT_EQ(train->Wait(), 0) << train->err << Read("experiments/1/job.out");
  for (const std::string task : {"1.master", "1.worker.1"}) EXPECT_THAT(LinesOf(train->out, task), Contains("trained"));
  EXPECT_EQ(StateOf("1"), "FINISHED");
}

}  // namespace
}  // namespace muster::slurm_hosts_test
