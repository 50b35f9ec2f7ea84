// Experiments whose supervisor is killed (-9) at any stage: `status` tells the truth, no task is left (the fixture
// looks for them), and nothing later is blocked. The tests wait for events (a line, a FIFO, a lock), never for time.
#include <gmock/gmock.h>
#include <signal.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/process/testing/engines.h"

namespace muster::experiment_lost_test {
namespace {

using nlohmann::json;
using ::testing::AllOf, ::testing::AnyOf, ::testing::Contains, ::testing::HasSubstr, ::testing::Not;

constexpr char kLost[] = "its supervisor was killed";
// A task that ends at no signal that it can ignore.
constexpr char kStubborn[] = "trap '' TERM INT HUP; echo ready; while :; do sleep 1000; done";

// In a job of Slurm, Ray or Kubernetes a supervisor that is killed begins again (tests/process/slurm). Tasks on hosts
// live on for their grace, so they may still wait at a gate when the experiment has FAILED.
class ExperimentLost : public OnEveryEngine {
 protected:
  // The test's hosts have their processes on this machine, so stderr says there which tasks still run.
  json StatusOf(const std::string& id) {
    const Said said = Muster({"status", id, "--json"});
    EXPECT_EQ(said.exit_code, 0) << said.err;
    if (!on_hosts()) {
      EXPECT_EQ(said.err, "");
    }
    return json::parse(said.out);
  }
  void KillSupervisorOf(const std::string& id) {
    const json supervisor = StatusOf(id)["supervisor"];
    ASSERT_TRUE(supervisor.is_number()) << id;
    ASSERT_EQ(kill(supervisor.get<pid_t>(), SIGKILL), 0);
  }
  void ExpectLost(const json& run) {
    EXPECT_EQ(run["state"], "FAILED") << run;
    EXPECT_EQ(run["reason"], kLost) << run;
    EXPECT_EQ(run["supervisor"], nullptr) << run;
  }
};

INSTANTIATE_TEST_SUITE_P(, ExperimentLost, ::testing::Values("local", "ssh"), EngineName);

TEST_P(ExperimentLost, WhereverItIsOnItsWay) {
  WriteExperiment(absl::StrCat("run: ", kStubborn));
  int number = 0;
  for (const std::string state : {"PENDING", "STARTING", "RUNNING"}) {
    const std::string id = absl::StrCat(++number);
    const auto train = StartMuster({"train", "--json"});  // which has all states
    train->WaitForOut("\"text\":\"" + state + "\"");
    KillSupervisorOf(id);
    EXPECT_EQ(train->Wait(), 137) << train->out;
    EXPECT_THAT(train->err, HasSubstr(kLost));
    const json status = StatusOf(id);
    ExpectLost(status);
    for (const json& task : status["tasks"]) EXPECT_EQ(task["state"], "FAILED") << task;
  }
}

TEST_P(ExperimentLost, ABuildIsBegunAnewByTheNext) {
  const ScriptGate gate(Aside("gate"));
  WriteExperiment("install: [echo building, 'read line < " + gate.path() + "']\nrun: echo ran");
  const auto train = StartMuster({"train"});
  train->WaitForOut("building\n");
  KillSupervisorOf("1");
  EXPECT_EQ(train->Wait(), 137);
  const json status = StatusOf("1");
  ExpectLost(status);
  EXPECT_EQ(status["tasks"][0]["id"], "1.build");
  EXPECT_EQ(status["tasks"][0]["state"], "FAILED");
  gate.LetThrough(2);  // the process being killed may take one
  const Said again = Muster({"train"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(LinesOf(again.out, "2.build"), Contains("building")) << "half of it isn't taken for a whole";
  EXPECT_THAT(LinesOf(again.out, "2.master"), Contains("ran"));
}

TEST_P(ExperimentLost, WhoWaitsForItsBuildTakesItOver) {
  const ScriptGate gate(Aside("gate"));
  WriteExperiment("install: [echo building, 'read line < " + gate.path() + "']\nrun: echo ran");
  const auto first = StartMuster({"train"});
  first->WaitForOut("building\n");
  const auto second = StartMuster({"train"});
  second->WaitForOut("another experiment is building the same");
  KillSupervisorOf("1");
  EXPECT_EQ(first->Wait(), 137);
  gate.LetThrough(2);  // the process being killed may take one
  EXPECT_EQ(second->Wait(), 0) << second->out;
  EXPECT_THAT(LinesOf(second->out, "2.build"), AllOf(Contains("building"), Contains("--> FINISHED")));
}

TEST_P(ExperimentLost, ARunOfAGridIsLostAloneAndTheGridGoesOn) {
  const ScriptGate gate(Aside("gate"));
  WriteExperiment("parameters: {x: [1, 2, 3]}\nconcurrency: 2\nrun: echo begun $X; read line < " + gate.path());
  const auto train = StartMuster({"train"});
  train->WaitForOut("begun 1");
  train->WaitForOut("begun 2");
  KillSupervisorOf("1.1");
  train->WaitForOut("begun 3");
  gate.LetThrough(3);  // the process being killed takes one, or may
  EXPECT_NE(train->Wait(), 0);
  const json status = StatusOf("1");
  EXPECT_EQ(status["state"], "FAILED");
  EXPECT_EQ(status["reason"], "1 of 3 runs failed");
  ExpectLost(status["run_list"][0]);
  EXPECT_EQ(status["run_list"][1]["state"], "FINISHED");
  EXPECT_EQ(status["run_list"][2]["state"], "FINISHED");
}

TEST_P(ExperimentLost, WithItsGridAllRunsEnd) {
  const ScriptGate gate(Aside("gate"));
  WriteExperiment("parameters: {x: [1, 2, 3]}\nconcurrency: 2\nrun: echo begun $X; read line < " + gate.path());
  const auto train = StartMuster({"train"});
  train->WaitForOut("begun 1");
  train->WaitForOut("begun 2");
  KillSupervisorOf("1");
  for (const std::string run : {"1.1", "1.2"}) AwaitEnd(run);
  EXPECT_NE(train->Wait(), 0);
  EXPECT_THAT(train->out, Not(HasSubstr("begun 3")));
  const json status = StatusOf("1");
  ExpectLost(status);
  for (const json& run : status["run_list"])
    EXPECT_THAT(run["state"].get<std::string>(), AnyOf("FAILED", "KILLED")) << run;
}

TEST_P(ExperimentLost, WhoWaitsForItsEndIsToldTheTruth) {
  WriteExperiment(absl::StrCat("run: ", kStubborn));
  const auto train = StartMuster({"train", "--stop-grace", "100000"});
  train->WaitForOut("ready");
  const auto kill = StartMuster({"kill", "1"});
  kill->WaitForOut("ending master");
  KillSupervisorOf("1");
  EXPECT_EQ(kill->Wait(), 0) << kill->err;
  EXPECT_THAT(kill->out, HasSubstr("experiment 1: FAILED\n"));
  EXPECT_EQ(train->Wait(), 137);
  ExpectLost(StatusOf("1"));
}

}  // namespace
}  // namespace muster::experiment_lost_test
