// Jobs of Slurm, several hosts that submit them, and nodes that fail.
#include <gmock/gmock.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/process/slurm/slurm_experiments.h"

namespace muster::slurm_hosts_test {
namespace {

using ::testing::HasSubstr, ::testing::SizeIs;

class SlurmHosts : public SlurmExperiment {
 protected:
  // From now on commands run on this host, with an index of its own.
  void LogInTo(const std::string& host) {
    login_ = host;
    environment_ = {absl::StrCat("MUSTER_INDEX=", home(), ".index of ", host)};
  }
  static void SetState(const std::string& node, const std::string& state) {
    slurm().Ask({"scontrol", "update", "NodeName=" + node, "State=" + state, "Reason=test"});
  }
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

}  // namespace
}  // namespace muster::slurm_hosts_test
